"""CAT for translation through the real fairseq commands, on a part of SCAN."""

import random
from pathlib import Path

import pytest
from fairseq_commands import status
from logs import logged

from compgen.data.scan import generate
from compgen.scoring import generate_log
from compgen_fairseq.models.cat_transformer import CATTransformerModel

TERMS = ("reconstruction", "sparsity")


@pytest.fixture(scope="module")
def scan(tmp_path_factory, run) -> Path:
    """150 of SCAN's shorter commands; 20 of them again to validate and test on."""
    folder = tmp_path_factory.mktemp("scan")
    pairs = [pair for pair in generate() if len(pair.command.split()) < 5]
    random.Random(1).shuffle(pairs)
    for part, chosen in (("train", pairs[:150]), ("test", pairs[:20])):
        (folder / f"{part}.src").write_text("".join(f"{pair.command}\n" for pair in chosen))
        (folder / f"{part}.tgt").write_text("".join(f"{pair.actions}\n" for pair in chosen))
    prefixes = [f"--{part}pref={folder / file}" for part, file in PARTS.items()]
    binarized = folder / "data-bin"
    run("fairseq_cli.preprocess", "-s", "src", "-t", "tgt", *prefixes, "--destdir", binarized)
    return binarized


PARTS = {"train": "train", "valid": "test", "test": "test"}


@pytest.fixture(scope="module")
def flags(scan, plugin) -> list[object]:
    sizes = {"layers": 2, "ffn-embed-dim": 32, "attention-heads": 2}
    return [
        *(scan, *plugin, "--task", "compgen_translation", "--encoder-embed-dim", 16),
        *("--arch", "cat_transformer_scan", "--codes", 12),
        *(f"--{side}-{k}={v}" for side in ("encoder", "decoder") for k, v in sizes.items()),
        *("--num-workers", 0, "--seed", 3, "--required-batch-size-multiple", 1),
        *("--no-epoch-checkpoints", "--log-format", "json"),
    ]


@pytest.fixture(scope="module")
def trained(flags, tmp_path_factory) -> Path:
    """The folder of a trained model; what training printed is in ``log``."""
    folder = tmp_path_factory.mktemp("trained")
    recipe = ["--criterion", "composition_cross_entropy", "--dropout", 0, "--max-epoch", 30]
    recipe += ["--optimizer", "adam", "--lr", 0.005, "--batch-size", 30, "--validate-interval", 10]
    save = ["--save-dir", folder, "--log-file", folder / "log"]
    assert status("train", *flags, *recipe, *save) == 0
    return folder


def test_training_logs_every_term_and_learns(trained):
    log = (trained / "log").read_text()
    for name in TERMS:
        values = logged(log, f"train_{name}")
        assert len(values) == 30 and all(0 < value < 10 for value in values)
        assert logged(log, f"valid_{name}")[-1] == pytest.approx(values[-1], abs=0.1)
    losses = logged(log, "train_nll_loss")
    assert losses[-1] < losses[0] / 2


def test_the_checkpoint_is_all_that_generation_needs(trained, scan, plugin, tmp_path):
    flags = ["--path", trained / "checkpoint_last.pt", "--results-path", tmp_path]
    assert status("generate", scan, *plugin, *flags, "--scoring", "exact_match") == 0
    text = (tmp_path / "generate-test.txt").read_text()
    parsed = generate_log.parse(text.splitlines(keepends=True))
    assert len(parsed.hypotheses) == 20
    hub = CATTransformerModel.from_pretrained(str(trained), "checkpoint_last.pt", str(scan))
    assert hub.translate(parsed.sources[0], beam=5) == parsed.hypotheses[0]
