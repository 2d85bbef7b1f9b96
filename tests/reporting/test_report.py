"""Which runs form a row, which may stand in one table, and the statistics over seeds."""

from pathlib import Path

import pytest

from compgen.reporting.comparison import Comparisons
from compgen.reporting.render import as_json, markdown
from compgen.reporting.report import Summary, report
from compgen.reporting.report_tables import methods_table, score_tables
from compgen.reporting.runs import Run, Score, ScoreName

BEST, LAST = (ScoreName("exact_match", name) for name in ("best", "last"))
CTER = ScoreName("cter instance", "best")


def run(name: str, seed: int = 1, scores=(50.0, 40.0), updates: int = 90, **changes) -> Run:
    """A run of ``runs/NAME.SEED``; ``changes`` replace settings of the model, data or budget."""
    settings = {
        "optimization.max_update": 90,
        "checkpoint.best_checkpoint_metric": "exact_match",
        "model.attention": name,
        "model.dropout": 0.3,
        "data": "0a",
    }
    for option, value in changes.items():
        settings[next((s for s in settings if s.endswith(option)), f"model.{option}")] = value
    values = dict(zip((BEST, LAST), scores, strict=True))
    return Run(
        path=Path(f"runs/{name}.{seed}"),
        label=name,
        seed=seed,
        settings=settings,
        updates=updates,
        minutes=10.0 + seed,
        scores={key: Score(value, "m:e|n:2") for key, value in values.items()},
    )


def test_statistics():
    summary = Summary((2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0), lower_is_better=False)
    assert (summary.n, summary.mean, summary.median) == (8, 5, 4.5)
    assert summary.std == pytest.approx((32 / 7) ** 0.5)  # of a sample, n - 1
    assert (summary.best, summary.worst) == (9, 2)
    errors = Summary((20.0, 30.0), lower_is_better=True)
    assert (errors.best, errors.worst) == (20, 30)
    assert Summary((3.0,), False).std is None


def refused(*runs: Run, allowed: str = "") -> str:
    with pytest.raises(ValueError) as error:
        report(runs, frozenset(allowed.split()))
    return str(error.value)


def test_one_row_never_mixes_settings():
    both = "runs/sal.1 and runs/sal.2 both are 'sal' but differ in "
    assert refused(run("sal", 1), run("sal", 2, dropout=0.1, heads=4)) == (
        f"{both}dropout (0.3 and 0.1), heads (not set and 4); "
        "if that is meant, say --allow-differences dropout,heads"
    )
    runs = run("sal", 1), run("sal", 2, dropout=0.1)
    assert refused(*runs) == (
        f"{both}dropout (0.3 and 0.1); if that is meant, say --allow-differences dropout"
    )
    found = report(runs, frozenset({"dropout"}))
    assert [row.label for row in found.rows] == ["sal (dropout=0.3)", "sal (dropout=0.1)"]


@pytest.mark.parametrize(
    ("option", "value"),
    [("max_update", 500), ("data", "0b"), ("dropout", 0.1), ("best_checkpoint_metric", "loss")],
)
def test_rows_must_agree_in_data_and_budget(option, value):
    runs = run("sal"), run("plain", **{option: value})
    said = f"runs/sal.1 and runs/plain.1 cannot be compared: they differ in {option} ("
    assert said in refused(*runs)
    allowed = report(runs, frozenset({option}))
    assert [row.label for row in allowed.rows] == ["sal", "plain"]
    assert any(name.endswith(option) for name in allowed.differing)


def test_a_rate_is_named_once_though_three_sections_have_it():
    runs = [run("sal"), run("sal")]
    for one, rate in zip(runs, (0.1, 0.2), strict=True):
        one.settings.update({f"{section}.lr": [rate] for section in ("optimization", "optimizer")})
    found = report(runs, frozenset({"lr"}))
    assert [row.label for row in found.rows] == ["sal (lr=0.1)", "sal (lr=0.2)"]
    assert [row[-1].text for row in methods_table(found).rows] == ["lr=0.1", "lr=0.2"]


def test_what_only_one_kind_of_model_has_may_differ():
    assert len(report([run("sal"), run("lstm", encoder_layers=2, posterior="cosine")]).rows) == 2


def test_runs_must_have_got_equally_far():
    runs = run("sal", 1), run("sal", 2, updates=80)
    assert "runs/sal.1 was trained for 90 updates and runs/sal.2 for 80" in refused(*runs)
    found = report(runs, frozenset({"updates"}))
    assert len(found.rows) == 1 and "| 80 to 90 |" in markdown(found, Comparisons(""))


def test_scores_must_be_counted_in_one_way():
    other = run("plain")
    other.scores[BEST] = Score(60.0, "m:e|n:1")
    message = refused(run("sal"), other)
    assert "exact_match of runs/sal.1 and runs/plain.1 was not counted in the same way" in message
    assert "(m:e|n:2 and m:e|n:1)" in message
    found = report([run("sal"), other], frozenset({"signature"}))
    assert found.signature(BEST) == "m:e|n:1; m:e|n:2"
    runs = run("sal"), run("plain"), run("lstm")
    for one, rules in zip(runs[1:], "ab", strict=True):  # of a score that the first has not
        one.scores[CTER] = Score(20.0, f"m:c|{rules}")
    assert "cter instance of runs/plain.1 and runs/lstm.1 was not counted" in refused(*runs)


def test_every_run_of_a_row_needs_every_score():
    poor = run("sal", 2)
    del poor.scores[LAST]
    assert "runs/sal.2 has no exact_match of checkpoint_last.pt, unlike runs/sal.1" in refused(
        run("sal", 1), poor
    )


def test_a_seed_counts_once():
    assert "have the same settings and the same seed, 1" in refused(run("sal"), run("sal"))
    assert refused() == "there are no runs to report"


def test_equal_settings_are_one_row_whatever_the_folders_are_called():
    runs = run("sq", 1, attention="srl"), run("srl", 2)
    assert [row.label for row in report(runs).rows] == ["sq / srl"]


def test_exact_match_by_case(tmp_path):
    rows = run("sal", 1), run("sal", 2), run("plain")
    for i, one in enumerate(rows[:2], 1):
        file = tmp_path / f"{i}.json"
        file.write_text(f'{{"cases": {{"a": {{"score": {10.0 * i}}}, "b{i}": {{"score": 1}}}}}}')
        one.scores[ScoreName("cogs", "best")] = Score(50.0, "m:c", file)
    *_, table = score_tables(report(rows), Comparisons(""))
    assert table.columns == ["case", "sal", "plain"]
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "15.00 ± 7.07", "-"]]


def test_markdown():
    runs = [run("sal", 1, (90, 50)), run("sal", 2, (70.5, 60)), run("plain")]
    runs[2].scores[CTER] = Score(20.0, "m:c")
    assert (
        markdown(report(runs), Comparisons(""))
        == """\
| method | seeds | updates | minutes | validation | settings that differ |
| --- | --- | --- | --- | --- | --- |
| sal | 1, 2 | 90 | 11.5 | - | attention=sal |
| plain | 1 | 90 | 11.0 | - | attention=plain |

### cter instance (lower is better)

| method | checkpoint | n | mean ± std | median | best | worst | by seed |
| --- | --- | --- | --- | --- | --- | --- | --- |
| plain | chosen | 1 | 20.00 | 20.00 | 20.00 | 20.00 | 20.00 |

`m:c`

### exact_match

| method | checkpoint | n | mean ± std | median | best | worst | by seed |
| --- | --- | --- | --- | --- | --- | --- | --- |
| sal | chosen | 2 | 80.25 ± 13.79 | 80.25 | 90.00 | 70.50 | 90.00, 70.50 |
| sal | last | 2 | 55.00 ± 7.07 | 55.00 | 60.00 | 50.00 | 50.00, 60.00 |
| plain | chosen | 1 | 50.00 | 50.00 | 50.00 | 50.00 | 50.00 |
| plain | last | 1 | 40.00 | 40.00 | 40.00 | 40.00 | 40.00 |

`m:e|n:2`

### Data

| prepared by | pairs | vocabulary | with | fingerprint |
| --- | --- | --- | --- | --- |
| not recorded | not recorded | not recorded | not recorded | 0a |

### Runs

| method | seed | folder | machine | command |
| --- | --- | --- | --- | --- |
| sal | 1 | runs/sal.1 | not recorded | not recorded |
| sal | 2 | runs/sal.2 | not recorded | not recorded |
| plain | 1 | runs/plain.1 | not recorded | not recorded |
"""
    )


def test_json():
    found = as_json(report([run("sal", 2, (70, 60)), run("sal", 1, (90, 50))]), Comparisons(""))
    (row,) = found["rows"]
    assert row["label"] == "sal" and row["settings"]["data"] == "0a"
    assert [r["path"] for r in row["runs"]] == ["runs/sal.1", "runs/sal.2"]
    assert row["scores"][0] == {
        **{"score": "exact_match", "checkpoint": "best", "n": 2, "mean": 80, "median": 80},
        **{"std": pytest.approx(200**0.5), "best": 90, "worst": 70, "values": [90, 70]},
    }
    assert found["differing"] == []
    last = {"score": "exact_match", "checkpoint": "last", "signature": "m:e|n:2"}
    assert found["signatures"][1] == last
