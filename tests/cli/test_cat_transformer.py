"""CAT for translation through the real fairseq commands, on a part of SCAN."""

import json
import multiprocessing
import random
import re
import socket
from pathlib import Path
from unittest import mock

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu

import compgen_fairseq  # noqa: F401
from compgen.data.scan import generate
from compgen.scoring import generate_log
from compgen_fairseq.models.cat_transformer import CATTransformerModel

# a server that has imported fairseq: each of its processes starts at once
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["fairseq_cli.train", "fairseq_cli.generate"])

TERMS = ("reconstruction", "sparsity")
EVERY_WORKER_SAVES = """
from fairseq.trainer import Trainer
import compgen_fairseq

Trainer.should_save_checkpoint_on_current_rank = property(lambda self: True)
"""


def start(module: str, *flags: object):
    """Start a command of fairseq."""
    with mock.patch("sys.argv", [module, *map(str, flags)]):
        process = PROCESSES.Process(target=_main, args=(module,))
        process.start()
    return process


def _main(module: str) -> None:
    __import__(f"fairseq_cli.{module}", fromlist=["cli_main"]).cli_main()


def train(*flags: object) -> int | None:
    """The exit status of ``fairseq-train``."""
    process = start("train", *flags)
    process.join()
    return process.exitcode


def load(path: Path) -> dict[str, torch.Tensor]:
    return load_checkpoint_to_cpu(str(path))["model"]


def logged(log: str, of: str, name: str) -> list[float]:
    """The values of ``name`` in a log file's JSON lines about epochs (of train or valid)."""
    lines = [json.loads(line) for line in re.findall(r'^\{".*\}$', log, re.MULTILINE)]
    key = f"{of}_{name}"
    values = {line["epoch"]: float(line[key]) for line in lines if key in line}
    return [values[epoch] for epoch in sorted(values)]


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
def own(flags) -> list[object]:
    """The same with the terms trained, without dropout."""
    return [*flags, "--criterion", "composition_cross_entropy", "--dropout", 0]


@pytest.fixture(scope="module")
def trained(own, tmp_path_factory) -> Path:
    """The folder of a trained model; what training printed is in ``log``."""
    folder = tmp_path_factory.mktemp("trained")
    recipe = ["--optimizer", "adam", "--lr", 0.005, "--batch-size", 30, "--max-epoch", 30]
    save = ["--save-dir", folder, "--log-file", folder / "log"]
    assert train(*own, *recipe, "--validate-interval", 10, *save) == 0
    return folder


def test_training_logs_every_term_and_learns(trained):
    log = (trained / "log").read_text()
    for name in TERMS:
        values = logged(log, "train", name)
        assert len(values) == 30 and all(0 < value < 10 for value in values)
        assert logged(log, "valid", name)[-1] == pytest.approx(values[-1], abs=0.1)
    losses = logged(log, "train", "nll_loss")
    assert losses[-1] < losses[0] / 2


def test_the_checkpoint_is_all_that_generation_needs(trained, scan, plugin, tmp_path):
    flags = ["--path", trained / "checkpoint_last.pt", "--results-path", tmp_path]
    process = start("generate", scan, *plugin, *flags, "--scoring", "exact_match")
    process.join()
    assert process.exitcode == 0
    text = (tmp_path / "generate-test.txt").read_text()
    parsed = generate_log.parse(text.splitlines(keepends=True))
    assert len(re.findall(r"^H-", text, re.MULTILINE)) == 20 and parsed is not None
    hub = CATTransformerModel.from_pretrained(str(trained), "checkpoint_last.pt", str(scan))
    command = re.search(r"^S-0\t(.*)$", text, re.MULTILINE)[1]
    answer = re.search(r"^H-0\t\S+\t(.*)$", text, re.MULTILINE)[1]
    assert hub.translate(command, beam=5) == answer


def test_a_resumed_run_ends_as_the_whole_one(own, tmp_path):
    recipe = ["--optimizer", "adam", "--lr", 0.005, "--batch-size", 30, "--disable-validation"]
    for name, updates in (("whole", 12), ("parts", 7), ("parts", 12)):
        save = ["--save-dir", tmp_path / name]
        assert train(*own, *recipe, "--max-update", updates, *save) == 0
    whole, parts = (load(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert any(name.endswith("composition.codebook") for name in whole)


@pytest.mark.parametrize("size", [30, 25])
def test_two_workers_equal_one_with_twice_the_batch(size, own, tmp_path):
    """Unshuffled, two consecutive batches are one of twice the size; 150 pairs are 5 batches of
    30, so that one worker repeats a batch as a dummy, or 6 of 25."""
    user_dir = tmp_path / "every_worker_saves"
    user_dir.mkdir()
    (user_dir / "__init__.py").write_text(EVERY_WORKER_SAVES)
    common = [*own, "--user-dir", user_dir, "--curriculum", 100, "--disable-validation"]
    common += ["--optimizer", "sgd", "--lr", 0.1, "--max-update", 6]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    shared = "--distributed-backend gloo --ddp-backend legacy_ddp --distributed-world-size 2"
    shared += f" --distributed-init-method {address} --distributed-no-spawn --distributed-rank"
    runs = {
        "0": [*shared.split(), 0, "--batch-size", size],
        "1": [*shared.split(), 1, "--batch-size", size],
        "alone": ["--batch-size", 2 * size],
    }
    processes = []
    for name, flags in runs.items():
        (tmp_path / name).mkdir()
        save = ["--save-dir", tmp_path / name, "--log-file", tmp_path / f"{name}.log"]
        processes.append(start("train", *common, *flags, *save))
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    first, second, alone = (load(tmp_path / name / "checkpoint_last.pt") for name in runs)
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
        torch.testing.assert_close(value, alone[name], rtol=0, atol=5e-5)
    together, single = ((tmp_path / f"{name}.log").read_text() for name in ("0", "alone"))
    for name in (*TERMS, "loss"):
        expected = pytest.approx(logged(single, "train", name), abs=2e-3)
        assert logged(together, "train", name) == expected, name


def test_fairseqs_own_criterion_and_other_representations(flags, tmp_path):
    recipe = ["--optimizer", "adam", "--lr", 0.005, "--batch-size", 30, "--max-update", 3]
    for name in ("cont", "comp"):
        more = ["--criterion", "cross_entropy", "--representation", name]
        save = ["--save-dir", tmp_path / f"{name}.run", "--log-file", tmp_path / name]
        assert train(*flags, *recipe, *more, *save) == 0
        assert "train_sparsity" not in (tmp_path / name).read_text()
