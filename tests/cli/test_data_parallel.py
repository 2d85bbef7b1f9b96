"""Two workers hold the same model, and it is the one that a single process trains."""

import pytest
import torch
from fairseq_commands import different, every_worker_saves, load, start_workers, statuses
from logs import figures
from small_models import PREDICTORS, SIZES

TERMS = [
    f"{term}_{side}"
    for term in (
        *("mmi_cross_entropy", "mmi_entropy", "commitment", "code_prediction"),
        *("code_attraction", "codes_used", "code_entropy"),
    )
    for side in ("source", "target")
]


@pytest.fixture
def train(tiny_data, plugin, tmp_path):
    """Train with some flags on one or two workers; the model of each, and what each logged."""
    user_dir = every_worker_saves(tmp_path)
    common = [
        *(tiny_data, *plugin, "--user-dir", user_dir, "--task", "compgen_translation"),
        *(*SIZES, *PREDICTORS, "--criterion", "structural_cross_entropy"),
        *("--num-workers", 0, "--seed", 5, "--required-batch-size-multiple", 1),
        *("--max-update", 20, "--disable-validation", "--no-epoch-checkpoints"),
    ]

    def train(name: str, workers: int, *flags: object) -> list[tuple[dict, str]]:
        folders = [tmp_path / f"{name}{rank}" for rank in range(workers)]
        assert set(statuses(start_workers(workers, *common, *flags, folders=folders))) == {0}
        return [
            (load(folder / "checkpoint_last.pt")["model"], (folder / "log").read_text())
            for folder in folders
        ]

    return train


@pytest.mark.parametrize(
    "size, attention, terms",
    [
        (15, "srl", TERMS),
        pytest.param(24, "srl", TERMS, marks=pytest.mark.long),
        (15, "sal", ("commitment_target",)),
    ],
)
def test_two_workers_equal_one_with_twice_the_batch(size, attention, terms, train):
    """Unshuffled, two consecutive batches of a size are one of twice the size. 285 pairs are 19
    batches of 15, so that one worker repeats a batch as a dummy, or 12 batches of 24."""
    flags = [
        *("--arch", "sq_transformer_scan", "--attention", attention),
        *(("--quantizer", "vq") if attention == "sal" else ()),  # masks would be drawn anew
        *("--dropout", 0, "--curriculum", 100, "--optimizer", "sgd", "--lr", 0.1),
    ]
    (first, log), (second, _) = train("two", 2, *flags, "--batch-size", size)
    ((alone, log_alone),) = train("one", 1, *flags, "--batch-size", 2 * size)
    assert different(first, second) == []
    torch.testing.assert_close(first, alone, rtol=0, atol=1e-5)
    for name in (*terms, "loss"):
        assert len(figures(log, name)) > 1, f"no {name} is logged"
        assert figures(log, name) == pytest.approx(figures(log_alone, name), abs=2e-3), name


def test_batches_of_one_update_may_be_real_and_dummy(train):
    """19 batches: in the last update of an epoch one worker has two, the other one and a dummy."""
    flags = "--arch sq_transformer_scan --attention plain --dropout 0 --curriculum 100".split()
    flags += ["--optimizer", "sgd", "--lr", 0.1, "--batch-size", 15]
    (first, log), _ = train("two", 2, *flags, "--update-freq", 2)
    ((alone, log_alone),) = train("one", 1, *flags, "--update-freq", 4)
    torch.testing.assert_close(first, alone, rtol=0, atol=1e-5)
    for name in ("loss", "bsz"):
        assert figures(log, name) == pytest.approx(figures(log_alone, name), abs=2e-3), name


def test_workers_agree_on_everything_random(train):
    """With dropout, masked positions and an odd number of batches."""
    flags = "--arch sq_transformer_scan".split()
    adam = "--optimizer adam --lr 0.01 --batch-size 15".split()
    (first, _), (second, _) = train("masked", 2, *flags, *adam)
    assert different(first, second) == []
