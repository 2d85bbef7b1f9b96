"""The YAML file that ships trains what it names, and the hub loads what was trained."""

import re
from pathlib import Path

import torch

REPOSITORY = Path(__file__).parents[2]


def test_the_shipped_yaml_trains_the_preset(tiny_data, run, tmp_path):
    small = {"encoder_layers": 1, "decoder_layers": 1, "encoder_embed_dim": 16}
    small |= {"encoder_ffn_embed_dim": 16, "decoder_ffn_embed_dim": 16}
    log = run(
        "fairseq_cli.hydra_train",
        *("--config-dir", REPOSITORY / "examples" / "scan", "--config-name", "hydra"),
        *(f"task.data={tiny_data}", f"checkpoint.save_dir={tmp_path / 'save'}", "common.cpu=true"),
        *("optimization.max_update=3", f"hydra.run.dir={tmp_path / 'hydra'}"),
        *(f"+model.{name}={value}" for name, value in small.items()),
        cwd=REPOSITORY,
    )
    assert re.search(r"valid on 'valid' subset .* exact_match [\d.]+ ", log)
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
