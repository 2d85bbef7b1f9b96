"""The tables of a report, before they are Markdown or HTML."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compgen.reporting.choice import choice, told
from compgen.reporting.comparison import Comparison, Comparisons
from compgen.reporting.curves import Curve
from compgen.reporting.report import Report, Row, Summary, described, span
from compgen.reporting.runs import ScoreName

CHECKPOINT_NAMES = {"best": "chosen", "last": "last"}  # "best" is also a column
NONE = "-"


@dataclass(frozen=True)
class Cell:
    """What stands in a table.

    Args:
        text: as it is read.
        order: what a column is sorted by, if not the text.
    """

    text: str
    order: float | None = None


@dataclass(frozen=True)
class Table:
    """One table: a title, the columns' names, the rows, and what is said below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    codes: Sequence[str] = ()  # signatures, shown as code


def methods_table(report: Report) -> Table:
    """The rows of the report: seeds, updates, minutes, validation and what sets them apart."""
    choices = [list(map(choice, row.runs)) for row in report.rows]
    rows = [
        [
            Cell(row.label),
            Cell(", ".join(str(run.seed) for run in row.runs), len(row.runs)),
            Cell(span([run.updates for run in row.runs]), max(run.updates for run in row.runs)),
            _mean_minutes(row),
            _validation(chosen),
            Cell(described(row, _differing(report))),
        ]
        for row, chosen in zip(report.rows, choices, strict=True)
    ]
    columns = ["method", "seeds", "updates", "minutes", "validation", "settings that differ"]
    kept = len(columns) if _differing(report) else 5
    known = [one for chosen in choices for one in chosen if one]
    notes = [told(known)] if known else []
    return Table("Methods", columns[:kept], [row[:kept] for row in rows], notes)


def score_tables(report: Report, comparisons: Comparisons) -> list[Table]:
    """A table for each score, with the statistics over the seeds and the marks of the tests."""
    columns = ["method", "checkpoint", "n", "mean ± std", "median", "best", "worst", "by seed"]
    tables = []
    for name in dict.fromkeys(score.name for score in report.scores):
        of_name = [score for score in report.scores if score.name == name]
        rows = [
            [
                Cell(row.label),
                Cell(CHECKPOINT_NAMES[score.checkpoint]),
                *_statistics(summary, comparisons.of(row.label, score)),
            ]
            for row in report.rows
            for score in of_name
            if (summary := row.summary(score))
        ]
        stamps = list(dict.fromkeys(map(report.signature, of_name)))
        tables.append(Table(_title(of_name[0]), columns, rows, codes=stamps))
    return [*tables, *_cases_table(report)]


def _cases_table(report: Report) -> Iterable[Table]:
    """Exact match of the chosen checkpoints by case, if the runs have cases."""
    found = {row.label: row.cases() for row in report.rows}
    names = dict.fromkeys(case for cases in found.values() for case in cases)
    rows = [
        [
            Cell(case),
            *(_spread(cases[case]) if case in cases else Cell(NONE) for cases in found.values()),
        ]
        for case in names
    ]
    if rows:
        yield Table("exact_match by case, chosen checkpoints", ["case", *found], rows)


def comparison_table(comparisons: Comparisons) -> Table:
    """Every row beside the baseline."""
    rows = [
        [
            Cell(_title(one.score)),
            Cell(CHECKPOINT_NAMES[one.score.checkpoint]),
            Cell(one.label),
            Cell(f"{one.difference:+.2f}{one.marks}", one.difference),
            Cell("[{:+.2f}, {:+.2f}]".format(*one.interval) if one.interval else NONE),
            Cell(_p(one.p_sentences), one.p_sentences),
            Cell(_p(one.p_seeds), one.p_seeds),
        ]
        for one in comparisons.found
    ]
    columns = ["score", "checkpoint", "method", "difference", "95% interval"]
    columns += ["p over sentences", "p over seeds"]
    reasons = dict.fromkeys(one.untested for one in comparisons.found if one.untested)
    notes = [f"Not tested over sentences: {reason}." for reason in reasons]
    return Table(f"Against {comparisons.baseline}", columns, rows, notes)


def last_values_table(report: Report, curves: Sequence[Curve]) -> Table:
    """The last value of each learning curve, the mean over a row's seeds."""
    rows = []
    for curve in curves:
        last = [curve.last(i) for i in range(len(report.rows))]
        cells = [Cell(NONE) if value is None else _number(value, 4) for value in last]
        rows.append([Cell(curve.metric), Cell(curve.stage), *cells])
    columns = ["metric", "stage", *(row.label for row in report.rows)]
    return Table("Last values of the learning curves, mean over seeds", columns, rows)


def runs_table(report: Report) -> Table:
    """Where each run lies, what machine it was trained on, and with which command."""
    rows = [
        [Cell(row.label), Cell(str(run.seed), run.seed)]
        + [Cell(str(value)) for value in (run.path, run.machine, run.command)]
        for row in report.rows
        for run in row.runs
    ]
    return Table("Runs", ["method", "seed", "folder", "machine", "command"], rows)


def data_table(report: Report) -> Table:
    """What the runs were trained on, by their data's record."""
    rows: dict[str, list[Cell]] = {}
    for row in report.rows:
        for run in row.runs:
            record = run.prepared
            cells = [
                Cell(str(record.get("command") or "not recorded")),
                *(Cell(_pairs(record.get(name))) for name in ("pairs", "vocabulary", "versions")),
                Cell(str(run.settings.get("data"))),
            ]
            rows.setdefault(cells[-1].text, cells)
    columns = ["prepared by", "pairs", "vocabulary", "with", "fingerprint"]
    return Table("Data", columns, list(rows.values()))


def settings_table(report: Report) -> Table:
    """Every setting that may change a score, the ones in which rows differ first."""
    names = dict.fromkeys([*report.differing, *(n for row in report.rows for n in row.settings)])
    rows = [
        [Cell(name), *(Cell(str(row.settings.get(name, NONE))) for row in report.rows)]
        for name in names
    ]
    return Table("All settings", ["setting", *(row.label for row in report.rows)], rows)


def _title(score: ScoreName) -> str:
    return f"{score.name} (lower is better)" if score.lower_is_better else score.name


def _statistics(summary: Summary, comparison: Comparison | None) -> Iterable[Cell]:
    marks = f" {comparison.marks}" if comparison and comparison.marks else ""
    yield Cell(str(summary.n), summary.n)
    yield _spread(summary, marks)
    yield from (_number(v, 2) for v in (summary.median, summary.best, summary.worst))
    yield Cell(", ".join(f"{value:.2f}" for value in summary.values), summary.mean)


def _spread(summary: Summary, marks: str = "") -> Cell:
    return Cell(f"{summary.spread}{marks}", summary.mean)


def _mean_minutes(row: Row) -> Cell:
    known = [run.minutes for run in row.runs if run.minutes is not None]
    return _number(sum(known) / len(known), 1) if known else Cell(NONE)


def _validation(choices: Sequence[dict[str, Any] | None]) -> Cell:
    """The chosen checkpoints' score on the validation set, over the seeds."""
    values = [one["value"] for one in choices if one and one["value"] is not None]
    if not values or len(values) < len(choices):
        return Cell(NONE)
    summary = Summary(tuple(values), lower_is_better=False)
    spread = "" if summary.std is None else f" ± {summary.std:.2g}"
    return Cell(f"{summary.mean:.4g}{spread}", summary.mean)


def _number(value: float, digits: int) -> Cell:
    return Cell(f"{value:,.{digits}f}", value)


def _p(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


def _differing(report: Report) -> list[str]:
    """The settings that differ; of results only a fingerprint is known, which tells nobody."""
    return [name for name in report.differing if name != "settings"]


def _pairs(record: Any) -> str:
    if not isinstance(record, dict):
        return "not recorded"
    return ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
        for name, value in record.items()
    )
