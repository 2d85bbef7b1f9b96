"""What chose a checkpoint, from a run's settings and its log of fairseq-train."""

from dataclasses import replace

import pytest

from compgen.reporting.choice import ANEW, choice, told
from compgen.reporting.report import Report, Row
from compgen.reporting.report_tables import methods_table
from compgen.reporting.runs import Run

VALID = "valid | epoch 001 | valid on 'valid' subset | exact_match {} | num_updates {}".format
SAVED = "fairseq.checkpoint_utils | Saved checkpoint b.pt (epoch 1 @ {} updates, score {})".format
SETTINGS = {
    "checkpoint.best_checkpoint_metric": "exact_match",
    "checkpoint.maximize_best_checkpoint_metric": True,
    "dataset.valid_subset": "valid,valid1",
}


@pytest.fixture
def run(tmp_path):
    """A run with these lines in its log."""

    def make(*lines: str, seed: int = 1, **record) -> Run:
        path = tmp_path / f"sal.{seed}"
        path.mkdir()
        log = "".join(f"2026-01-01 00:00:00 | INFO | {line}\n" for line in lines)
        (path / "train.log").write_text(log)
        prepared = {"settings": {"valid": "test20"}}
        return Run(path, "sal", seed, SETTINGS, 50, None, {}, prepared=prepared, record=record)

    return make


@pytest.mark.parametrize(("highest", "expected"), [(True, (30, 40)), (False, (20, 30))])
def test_a_validation_without_a_checkpoint_chooses_none(highest, expected, run):
    lines = [VALID(50, 10), VALID(30, 20), SAVED(20, 30.0), VALID(20, 30), SAVED(30, 20.0)]
    found = run(
        *lines, VALID(30, 40), SAVED(40, 30.0), VALID(10, 50), VALID("nan", 60), SAVED(60, 1)
    )
    options = {**SETTINGS, "checkpoint.maximize_best_checkpoint_metric": highest}
    chosen = choice(replace(found, settings=options))
    assert (chosen["value"], chosen["updates"]) == expected  # the later one of equals
    again = run(*lines, "prototypes: stage 1 is over, x", VALID(20, 40), SAVED(40, 20), seed=2)
    assert choice(again)["value"] == 20  # of what stage 1 had nothing is left
    assert told([chosen, chosen]) == "Checkpoints were chosen by exact_match on valid (test20)."


def test_a_result_keeps_its_choice(run):
    kept = {"metric": "loss", "subset": "valid", "from": 100, "value": 0.5, "updates": 10}
    found = run(VALID(50, 10), SAVED(10, 50.0), chosen=kept)
    assert choice(found) == kept
    assert told([kept]) == "Checkpoints were chosen by loss on valid (100 pairs held out)."


def test_the_report_has_the_mean_over_seeds_or_none(run):
    runs = [run(VALID(v, 10), SAVED(10, v), seed=s) for s, v in ((1, 90), (2, 80.5))]
    table = methods_table(Report((Row("sal", tuple(runs)),), ()))
    assert [cell.text for cell in table.rows[0]][-1] == "85.25 ± 6.7"
    table = methods_table(Report((Row("sal", (*runs, run(seed=3))),), ()))  # has no log
    assert [cell.text for cell in table.rows[0]][-1] == "-"


def test_a_checkpoint_chosen_anew_is_so_by_what_follows():
    said = "| fairseq | the best checkpoint is chosen anew, by exact_match\n"
    assert ANEW.split(f"before\n{said}after")[-1].endswith("after") and len(ANEW.split(said)) == 2
