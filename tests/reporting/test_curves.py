"""What is read of a training's log."""

import re

import pytest

from compgen.reporting.curves import curves, mean, points_of, read_log, thinned
from compgen.reporting.report import Report, Row
from compgen.reporting.runs import Run

TIME = "2026-11-21 19:17:05 | INFO | "
SIMPLE = [
    "fairseq_cli.train | {'_name': None, 'common': {'seed': 1}}",
    "train_inner | epoch 001:    100 / 250 loss=0.7, nll_loss=1e-05, ppl=1.33, num_updates=100, "
    "lr=0.003, train_wall=8, wall=135, time left 1 min",
    "train_inner | epoch 001:    200 / 250 loss=-0.5, nll_loss=nan, num_updates=200, wall=142",
    "train | epoch 001 | loss 0.1 | nll_loss 0.2 | num_updates 250 | train_wall 9",
    "valid | epoch 001 | valid on 'valid' subset | loss 1.5 | exact_match 12.5 | "
    "num_updates 250 | best_exact_match 12.5",
    "valid1 | epoch 001 | valid on 'valid1' subset | loss 2.5 | num_updates 250",
    "train_inner | epoch 002:     50 / 250 loss=0.25, nll_loss=0.125, num_updates=300",
]


def log_of(lines, folder):
    path = folder / "train.log"
    text = "".join(f"{TIME}{line}\n" for line in lines)
    path.write_bytes(text.encode() + b"Traceback \xe4\xb8\n")  # cut within a character
    return folder


def test_a_simple_log(tmp_path):
    found = points_of(read_log(log_of(SIMPLE, tmp_path)))
    assert found.pop(("training", "nll_loss"))[::2] == ((100, 1e-05), (300, 0.125))
    assert found == {
        ("training", "loss"): ((100, 0.7), (200, -0.5), (300, 0.25)),
        ("valid", "loss"): ((250, 1.5),),
        ("valid", "exact_match"): ((250, 12.5),),
        ("valid1", "loss"): ((250, 2.5),),
    }


def test_a_json_log(tmp_path):
    lines = [
        'train_inner | {"epoch": 1, "update": 0.4, "loss": "0.7", "num_updates": "100"}',
        'train | {"epoch": 1, "train_loss": "0.1", "train_num_updates": "250"}',
        'valid | {"epoch": 1, "valid_loss": "1.5", "valid_num_updates": "250"}',
    ]
    assert points_of(read_log(log_of(lines, tmp_path))) == {
        ("training", "loss"): ((100, 0.7),),
        ("valid", "loss"): ((250, 1.5),),
    }


def test_a_short_training_has_the_values_of_its_epochs(tmp_path):
    found = points_of(read_log(log_of([SIMPLE[3]], tmp_path)))
    assert found == {("training", "loss"): ((250, 0.1),), ("training", "nll_loss"): ((250, 0.2),)}


def test_what_a_resumed_training_logs_again_counts(tmp_path):
    again = "train_inner | epoch 001:    200 / 250 loss=9, num_updates=200"
    found = points_of(read_log(log_of([*SIMPLE, again], tmp_path)))
    assert found["training", "loss"] == ((100, 0.7), (200, 9.0), (300, 0.25))


def test_a_million_updates(tmp_path):
    line = SIMPLE[1].replace("num_updates=100", "num_updates=1e+06")
    found = points_of(read_log(log_of([line], tmp_path)))
    assert found["training", "loss"] == ((1_000_000, 0.7),)


def test_a_training_without_a_log_has_no_points(tmp_path):
    assert points_of(read_log(tmp_path)) == {}


def test_a_log_of_fairseq_train(tiny_model):
    found = points_of(read_log(tiny_model))
    assert {stage for stage, _ in found} == {"training", "valid"}
    log = (tiny_model / "train.log").read_text()
    printed = re.findall(r"\| exact_match ([\d.]+) .*?num_updates (\d+)", log)
    assert len(printed) == 8
    assert found["valid", "exact_match"] == tuple((int(n), float(v)) for v, n in printed)


def test_means_are_taken_where_all_runs_have_a_value():
    runs = [((10, 1.0), (20, 2.0), (30, 5.0)), ((10, 3.0), (30, 1.0))]
    assert mean(runs) == ((10, 2.0), (30, 3.0))


def test_many_points_are_thinned_and_the_ends_are_kept():
    points = tuple((i, float(i)) for i in range(1001))
    few = thinned(points, most=100)
    assert 90 < len(few) <= 102 and (few[0], few[-1]) == (points[0], points[-1])
    assert thinned(points[:5]) == points[:5]
    assert thinned(points[:1]) == points[:1]


@pytest.fixture
def two_rows(tmp_path) -> Report:
    """A row of two seeds that log a loss, and a row of one that logs exact match as well."""

    def made(name: str, lines: list[str]) -> Run:
        folder = tmp_path / name
        folder.mkdir()
        log_of(lines, folder)
        return Run(folder, name[:-2], int(name[-1]), {}, 300, 1.0, {})

    training = [line for line in SIMPLE if line.startswith("train_inner")]
    higher = [line.replace("loss=0.25", "loss=0.75") for line in training]
    rows = {"a<b": [made("a.1", training), made("a.2", higher)], "c": [made("c.1", SIMPLE)]}
    return Report(tuple(Row(label, tuple(runs)) for label, runs in rows.items()), ())


def test_validation_comes_first_and_scores_before_losses(two_rows):
    found = curves(two_rows)
    assert [(curve.stage, curve.metric) for curve in found] == [
        *(("valid", "exact_match"), ("valid", "loss"), ("valid1", "loss")),
        *(("training", "loss"), ("training", "nll_loss")),
    ]
    assert [found[3].last(row) for row in (0, 1)] == [0.5, 0.25]
    assert [found[0].last(row) for row in (0, 1)] == [None, 12.5]
