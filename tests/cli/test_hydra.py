"""The YAML file that ships trains what it names, and the hub loads what was trained."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq_commands import fits, load

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def train(tiny_data, run, tmp_path) -> Callable[..., str]:
    """Train a small model as the file and the words say; return the log."""
    small = {"encoder_layers": 1, "decoder_layers": 1, "encoder_embed_dim": 16}
    small |= {"encoder_ffn_embed_dim": 16, "decoder_ffn_embed_dim": 16, "max_target_positions": 12}
    return lambda *words, **options: run(
        "fairseq_cli.hydra_train",
        *("--config-dir", REPOSITORY / "examples" / "scan", "--config-name", "hydra"),
        *(f"task.data={tiny_data}", f"checkpoint.save_dir={tmp_path / 'save'}", "common.cpu=true"),
        f"hydra.run.dir={tmp_path / 'hydra'}",
        *(f"+model.{name}={value}" for name, value in small.items()),
        *words,
        cwd=REPOSITORY,
        **options,
    )


def test_the_shipped_yaml_trains_the_preset_in_bfloat16(tiny_data, train, tmp_path):
    bfloat16 = ["common.bf16=true", "+criterion.encoder_commitment=0"]
    log = train(*bfloat16, "optimization.max_update=3")
    assert re.search(r"valid on 'valid' subset .* exact_match [\d.]+ ", log)
    assert "commitment_target" in log and "commitment_source" not in log
    state = load(tmp_path / "save" / "checkpoint_last.pt")["model"]
    assert fits(state["encoder.stack.embedding.weight"], torch.bfloat16)
    codes = state["encoder.stack.quantizer.weight"]
    assert codes.shape == (7, 16) and not fits(codes, torch.bfloat16)
    assert not fits(state["encoder.stack.quantizer.ema_offset"], torch.bfloat16)
    model = torch.hub.load(
        str(REPOSITORY),
        "sq_transformer",
        str(tmp_path / "save"),
        checkpoint_file="checkpoint_last.pt",
        data_name_or_path=str(tiny_data),
        source="local",
    )
    (trained,) = model.models
    assert trained.cfg.attention == "sal" and trained.cfg.source_codes == 6
    assert len(trained.encoder.stack.layers) == 1
    assert isinstance(model.translate("dax lug"), str)


def test_what_the_flags_must_not_say_the_file_must_not(train, tmp_path):
    said = train("task.eval_exact_match=false", "optimization.max_update=1", status=1)
    assert "--best-checkpoint-metric exact_match is a score of --eval-exact-match" in said
    assert not list((tmp_path / "save").glob("*.pt"))


def test_the_second_stage_restarts_as_the_file_says(train, tmp_path):
    log = train(
        *("model._name=proto_transformer", "+model.prototype_min_count=5"),
        "criterion._name=cross_entropy",
        *("+task.prototype_stage1_epochs=1", "+task.prototype_restart=true"),
        *("lr_scheduler.warmup_updates=10", "optimization.max_update=20"),
        *("dataset.max_tokens=null", "dataset.batch_size=30", "dataset.disable_validation=true"),
    )
    state = load(tmp_path / "save" / "checkpoint_last.pt")["model"]
    updates = 20 - int(state["encoder.prototypes.restarted"])
    assert 0 < updates < 11
    rate = re.findall(r" lr ([\d.e-]+) ", log)[-1]
    assert float(rate) == pytest.approx(0.0005 * (updates - 1) / 10)
