"""The YAML file that ships trains what it names, and the hub loads what was trained."""

import re
from pathlib import Path

import torch
from fairseq_commands import fits, load

REPOSITORY = Path(__file__).parents[2]


def test_the_shipped_yaml_trains_the_preset_in_bfloat16(tiny_data, run, tmp_path):
    small = {"encoder_layers": 1, "decoder_layers": 1, "encoder_embed_dim": 16}
    small |= {"encoder_ffn_embed_dim": 16, "decoder_ffn_embed_dim": 16, "max_target_positions": 12}
    log = run(
        "fairseq_cli.hydra_train",
        *("--config-dir", REPOSITORY / "examples" / "scan", "--config-name", "hydra"),
        *(f"task.data={tiny_data}", f"checkpoint.save_dir={tmp_path / 'save'}", "common.cpu=true"),
        *("common.bf16=true", "+criterion.encoder_commitment=0", "optimization.max_update=3"),
        f"hydra.run.dir={tmp_path / 'hydra'}",
        *(f"+model.{name}={value}" for name, value in small.items()),
        cwd=REPOSITORY,
    )
    assert re.search(r"valid on 'valid' subset .* exact_match [\d.]+ ", log)
    assert "commitment_target" in log and "commitment_source" not in log
    state = load(tmp_path / "save" / "checkpoint_last.pt")["model"]
    assert fits(state["encoder.stack.embedding.weight"], torch.bfloat16)
    codes = state["encoder.stack.quantizer.weight"]
    assert codes.shape == (7, 16) and not fits(codes, torch.bfloat16)
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
