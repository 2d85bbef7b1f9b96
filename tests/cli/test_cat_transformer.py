"""CAT for translation through the real fairseq commands, on small data."""

from pathlib import Path

import pytest
from fairseq_commands import status
from logs import logged

TERMS = ("reconstruction", "sparsity")


@pytest.fixture(scope="module")
def flags(tiny_data, plugin) -> list[object]:
    sizes = {"layers": 2, "ffn-embed-dim": 32, "attention-heads": 2}
    return [
        *(tiny_data, *plugin, "--task", "compgen_translation", "--encoder-embed-dim", 16),
        *("--arch", "cat_transformer_scan", "--codes", 12),
        *("--max-target-positions", 12),
        *(f"--{side}-{k}={v}" for side in ("encoder", "decoder") for k, v in sizes.items()),
        *("--num-workers", 0, "--seed", 3, "--required-batch-size-multiple", 1),
        *("--no-epoch-checkpoints", "--log-format", "json"),
    ]


@pytest.fixture(scope="module")
def trained(flags, tmp_path_factory) -> Path:
    """The folder of a trained model; what training printed is in ``log``."""
    folder = tmp_path_factory.mktemp("trained")
    recipe = ["--criterion", "composition_cross_entropy", "--dropout", 0, "--max-epoch", 15]
    recipe += ["--optimizer", "adam", "--lr", 0.005, "--batch-size", 30, "--validate-interval", 5]
    save = ["--save-dir", folder, "--log-file", folder / "log"]
    assert status("train", *flags, *recipe, *save) == 0
    return folder


def test_training_logs_every_term_and_learns(trained):
    log = (trained / "log").read_text()
    for name in TERMS:
        values = logged(log, f"train_{name}")
        assert len(values) == 15 and all(0 < value < 10 for value in values)
        assert logged(log, f"valid_{name}")[-1] == pytest.approx(values[-1], abs=0.1)
    losses = logged(log, "train_nll_loss")
    assert losses[-1] < losses[0] / 2
