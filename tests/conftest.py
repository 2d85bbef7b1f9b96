"""What several tests share: a tiny data set, a model trained on it, and the real commands."""

import logging
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from in_process import PLUGIN
from instant import instant
from small_models import MODELS, TRANSFORMER

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: tiny models, busy cores

WORDS = ["wif", "dax", "lug", "zup", "blick", "kiki"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make test-fast`` leaves out: what runs commands, by folder or fixtures."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "run" in fixtures or item.path.parent.name in ("benchmarks", "cli", "examples"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def own_log_levels() -> Iterator[None]:
    """Commands that a test runs in its own process quieten loggers: the next test hears them."""
    loggers = [logging.getLogger(name) for name in ("fairseq", "compgen", "compgen_fairseq")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="session")
def run() -> Callable[..., str]:
    """``run("fairseq_cli.train", "data-bin", "--cpu", status=0)``: run a module as a command.

    Returns what it printed on both streams, after checking its exit status; other keywords
    (``input=``, ``cwd=``) go to ``subprocess.run``. ``python=sys.executable`` has a new Python
    run it, which imports PyTorch and fairseq anew.
    """

    def run(
        module: str, *args: object, status: int = 0, python: str | None = None, **kwargs: object
    ) -> str:
        done = subprocess.run(
            [python or f"{instant()}/python", "-m", module, *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **kwargs,
        )
        assert done.returncode == status, f"{module} exited {done.returncode}:\n{done.stdout}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def plugin() -> list[str]:
    """The flags with which a fairseq command uses this package on the CPU, quietly."""
    return ["--user-dir", str(PLUGIN), "--cpu", "--no-progress-bar"]


@pytest.fixture(scope="session")
def tiny_training() -> list[str]:
    """Flags under which a tiny model learns some of the tiny data within a few epochs.

    Targets have 8 tokens; before it has learned to end them, a model decodes the longest it may.
    """
    return [
        *("--optimizer=adam", "--lr=0.01", "--max-tokens=200", "--seed=1"),
        "--max-target-positions=12",
    ]


@pytest.fixture(scope="session")
def tiny_data(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., str]) -> Path:
    """A ``fairseq-preprocess``ed folder, src-tgt; the target is the source in capitals.

    203 different training pairs and 40 copies each of two one-word pairs; 37 pairs of validation,
    of which the fourth has an unknown word, and the same as test.  The text lies beside the
    folder: ``tiny_data.parent / "test.src"``.
    """
    folder = tmp_path_factory.mktemp("tiny")
    draw = random.Random(1)
    sentences = {" ".join(draw.choices(WORDS, k=1 + i % 7)) for i in range(2000)}
    drawn = draw.sample(sorted(sentences - {"dax", "wif"}), 203 + 37)
    held_out = drawn[203:]
    held_out[3] = "dax fep lug"
    parts = {"train": drawn[:203] + 41 * ["dax", "wif"], "valid": held_out, "test": held_out}
    for part, lines in parts.items():
        (folder / f"{part}.src").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{part}.tgt").write_text("".join(f"{line.upper()}\n" for line in lines))
    prefixes = [f"--{part}pref={folder / part}" for part in parts]
    binarized = folder / "data-bin"
    run("fairseq_cli.preprocess", "-s", "src", "-t", "tgt", *prefixes, "--destdir", binarized)
    return binarized


@pytest.fixture(scope="session")
def tiny_model(
    tiny_data: Path, plugin: list[str], tiny_training: list[str], run: Callable[..., str]
) -> Path:
    """The checkpoints of a plain Transformer that fairseq-train trained on the tiny data.

    Its validation decodes with fairseq-generate's beam of 5; what it printed is in ``train.log``.
    """
    folder = tiny_data.parent / "checkpoints"
    task = "--task compgen_translation --train-batches mixed --eval-bleu --eval-exact-match"
    best = "--best-checkpoint-metric exact_match --maximize-best-checkpoint-metric"
    log = run(
        "fairseq_cli.train",
        *(tiny_data, *plugin, *TRANSFORMER, *tiny_training, *task.split(), *best.split()),
        *("--eval-exact-match-args", '{"beam": 5}', "--max-epoch", 8, "--save-dir", folder),
    )
    (folder / "train.log").write_text(log)
    return folder


@pytest.fixture(scope="session")
def plain(tiny_model: Path) -> str:
    """The last checkpoint of the plain Transformer."""
    return str(tiny_model / "checkpoint_last.pt")


@pytest.fixture(scope="session")
def sal(
    tiny_data: Path,
    plugin: list[str],
    tiny_training: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    run: Callable[..., str],
) -> str:
    """A checkpoint of an SQ-Transformer with two codes a side, trained with fairseq's own task."""
    folder = tmp_path_factory.mktemp("sal")
    run(
        *("fairseq_cli.train", tiny_data, *plugin, *tiny_training, *MODELS["sal"]),
        *("--encoder-layers", 2, "--decoder-layers", 2, "--source-codes", 2, "--target-codes", 2),
        *("--task", "translation", "--max-epoch", 3, "--save-dir", folder),
        *("--no-epoch-checkpoints", "--disable-validation"),
    )
    return str(folder / "checkpoint_last.pt")


@pytest.fixture(scope="session")
def with_prototypes(plain: str, tiny_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last checkpoint of the plain Transformer, with two prototypes per word."""
    from compgen_cli import prototypes

    output = tmp_path_factory.mktemp("prototypes") / "stage2.pt"
    flags = ["--cpu", "-k", "2", "--prototype-min-count", "5", "-o", str(output)]
    assert prototypes.main(["extract", plain, str(tiny_data), *flags]) == 0
    return output


@pytest.fixture(scope="session")
def tiny_log(tiny_data: Path, tiny_model: Path, plugin: list[str], run: Callable[..., str]) -> Path:
    """What fairseq-generate prints by default about the tiny test set, with exact match."""
    log = run(
        "fairseq_cli.generate",
        *(tiny_data, *plugin, "--path", tiny_model / "checkpoint_last.pt"),
        *("--scoring", "exact_match"),
    )
    path = tiny_model / "generate.log"
    path.write_text(log)
    return path


@pytest.fixture(scope="session")
def public() -> Callable[[str], Path]:
    """``public("cogs/data")``: of the public data sets in ``$COMPGEN_DATA``; not there: a skip."""

    def public(name: str) -> Path:
        path = Path(os.environ.get("COMPGEN_DATA", "/COMPGEN_DATA is not set"), name)
        if not path.exists():
            pytest.skip(f"{path} is not there")
        return path

    return public
