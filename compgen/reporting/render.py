"""Shows a report as Markdown or as what becomes JSON."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from compgen.reporting import report_tables
from compgen.reporting.choice import choice
from compgen.reporting.comparison import METHOD, Comparisons
from compgen.reporting.curves import Curve
from compgen.reporting.pictures import Figure
from compgen.reporting.report import Report
from compgen.reporting.report_tables import Table
from compgen.reporting.runs import ScoreName

RUN = ("seed", "updates", "minutes", "command", "machine")


def markdown(
    report: Report,
    comparisons: Comparisons,
    curves: Sequence[Curve] = (),
    figures: Sequence[Figure] = (),
    page: Path | None = None,
    folder: Path = Path(),
) -> str:
    """The tables of a report; its figures as links, its curves as a link or their last values.

    Args:
        report, comparisons, curves, figures: what is shown; what is empty is left out.
        page: the HTML page that draws the curves, to link to.
        folder: where the Markdown will lie: links are relative to it.
    """
    table = report_tables.methods_table(report)
    parts = [_table(table), *table.notes]
    for table in report_tables.score_tables(report, comparisons):
        parts += [f"### {table.title}", _table(table)]
        parts += ["\n".join(f"`{code}`" for code in table.codes)] if table.codes else []
    if comparisons.found:
        table = report_tables.comparison_table(comparisons)
        parts += [f"### {table.title}", _table(table), *table.notes]
        parts += [f"`{mark}` {text}" if mark else text for mark, text in METHOD]
    for table in (report_tables.data_table(report), report_tables.runs_table(report)):
        parts += [f"### {table.title}", _table(table)]
    if curves and page is None:
        table = report_tables.last_values_table(report, curves)
        parts += [f"### {table.title}", _table(table)]
    elif page and curves:
        parts.append(f"Learning curves: [{page.name}]({_link(page, folder)})")
    if figures:
        parts.append("### Figures")
        parts += [
            f"![{_escaped(f.caption or f.path.stem)}]({_link(f.path, folder)})" for f in figures
        ]
    return "\n\n".join(parts) + "\n"


def as_json(report: Report, comparisons: Comparisons) -> dict[str, Any]:
    """The report as JSON has it: rows with their runs, settings and statistics, and the tests."""
    return {
        "rows": [
            {
                "label": row.label,
                "settings": row.settings,
                "runs": [
                    {
                        "path": str(run.path),
                        **{name: getattr(run, name) for name in RUN},
                        "chosen": choice(run),
                    }
                    for run in row.runs
                ],
                "scores": [
                    {**_score(score), **summary.numbers(), "values": list(summary.values)}
                    for score in report.scores
                    if (summary := row.summary(score))
                ],
                "cases": {case: summary.numbers() for case, summary in row.cases().items()},
            }
            for row in report.rows
        ],
        "baseline": comparisons.baseline,
        "comparisons": [
            {**asdict(one), **_score(one.score), "marks": one.marks} for one in comparisons.found
        ],
        "differing": list(report.differing),
        "signatures": [
            {**_score(score), "signature": report.signature(score)} for score in report.scores
        ],
    }


def _score(score: ScoreName) -> dict[str, str]:
    return {"score": score.name, "checkpoint": score.checkpoint}


def _link(path: Path, folder: Path) -> str:
    return quote(Path(os.path.relpath(path, folder)).as_posix())


def _table(table: Table) -> str:
    lines = [
        table.columns,
        ["---"] * len(table.columns),
        *([cell.text for cell in row] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")
