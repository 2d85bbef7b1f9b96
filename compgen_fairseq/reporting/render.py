"""Shows a report as Markdown or as what becomes JSON."""

from collections.abc import Sequence
from typing import Any

from compgen_fairseq.reporting.report import Report, Row, Summary
from compgen_fairseq.reporting.runs import ScoreName, short

CHECKPOINT_NAMES = {"best": "chosen", "last": "last"}  # "best" is also a column


def markdown(report: Report) -> str:
    """One table of the methods, and one per score with its statistics over the seeds."""
    methods = [
        (
            row.label,
            ", ".join(str(run.seed) for run in row.runs),
            _span([run.updates for run in row.runs]),
            f"{sum(run.minutes for run in row.runs) / len(row.runs):.1f}",
            _settings(report, row),
        )
        for row in report.rows
    ]
    columns = ["method", "seeds", "updates", "minutes", "settings that differ"]
    parts = [_table(columns if report.differing else columns[:4], methods)]
    columns = ["method", "checkpoint", "n", "mean ± std", "median", "best", "worst", "by seed"]
    for name in dict.fromkeys(score.name for score in report.scores):
        scores = [score for score in report.scores if score.name == name]
        lines = [
            (row.label, CHECKPOINT_NAMES[score.checkpoint], *_statistics(summary))
            for row in report.rows
            for score in scores
            if (summary := row.summary(score))
        ]
        heading = f"### {name}" + (" (lower is better)" if scores[0].lower_is_better else "")
        stamps = dict.fromkeys(map(report.signature, scores))
        parts += [heading, _table(columns, lines), "\n".join(f"`{stamp}`" for stamp in stamps)]
    return "\n\n".join(parts) + "\n"


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON has it: rows with their runs, settings and statistics."""
    return {
        "rows": [
            {
                "label": row.label,
                "settings": row.settings,
                "runs": [
                    {
                        "path": str(run.path),
                        "seed": run.seed,
                        "updates": run.updates,
                        "minutes": run.minutes,
                    }
                    for run in row.runs
                ],
                "scores": [
                    {"score": score.name, "checkpoint": score.checkpoint, **_numbers(summary)}
                    for score in report.scores
                    if (summary := row.summary(score))
                ],
            }
            for row in report.rows
        ],
        "differing": list(report.differing),
        "signatures": [_signature(report, score) for score in report.scores],
    }


def _signature(report: Report, score: ScoreName) -> dict[str, str]:
    return {
        "score": score.name,
        "checkpoint": score.checkpoint,
        "signature": report.signature(score),
    }


def _numbers(summary: Summary) -> dict[str, Any]:
    names = ("n", "mean", "std", "median", "best", "worst")
    return {name: getattr(summary, name) for name in names} | {"values": list(summary.values)}


def _statistics(summary: Summary) -> tuple[str, ...]:
    std = "" if summary.std is None else f" ± {summary.std:.2f}"
    shown = (summary.median, summary.best, summary.worst)
    return (
        str(summary.n),
        f"{summary.mean:.2f}{std}",
        *(f"{value:.2f}" for value in shown),
        ", ".join(f"{value:.2f}" for value in summary.values),
    )


def _settings(report: Report, row: Row) -> str:
    missing = "not set"
    return ", ".join(f"{short(n)}={row.settings.get(n, missing)}" for n in report.differing)


def _span(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *(row[: len(columns)] for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
