"""Shows a report as one HTML page that needs nothing else: no network, no other file."""

import shlex
from collections.abc import Sequence
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined

from compgen.reporting import charts, report_tables
from compgen.reporting.comparison import LEVEL, METHOD, Comparisons
from compgen.reporting.curves import TRAINING, Curve
from compgen.reporting.pictures import Figure
from compgen.reporting.report import Report
from compgen.scoring.signature import version


def html(
    report: Report,
    comparisons: Comparisons,
    curves: Sequence[Curve],
    figures: Sequence[Figure],
    command: Sequence[str],
) -> str:
    """The page: scores, tests, learning curves, figures, data and runs.

    Args:
        report, comparisons, curves, figures: what is shown; what is empty is left out.
        command: the words of the command that makes the page.

    Raises:
        ValueError: if a figure cannot be read.
    """
    loader = PackageLoader("compgen.reporting", "page")
    page = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    groups = _groups(curves)
    return page.get_template("report.html").render(
        title=title(report),
        summary=_summary(report),
        report=report,
        methods=report_tables.methods_table(report),
        scores=report_tables.score_tables(report, comparisons),
        tests=report_tables.comparison_table(comparisons),
        baseline=comparisons.baseline,
        level=LEVEL,
        method=METHOD,
        groups=groups,
        legend=charts.legend(report.rows) if groups else "",
        last=report_tables.last_values_table(report, curves),
        figures=[(figure, figure.data_uri()) for figure in figures],
        data=report_tables.data_table(report),
        runs=report_tables.runs_table(report),
        settings=report_tables.settings_table(report),
        command=shlex.join(command),
        version=version(),
    )


def title(report: Report) -> str:
    """``Results on scan addjump``: the data by the command that prepared it, or by its folder."""
    run = report.rows[0].runs[0]
    command = str(run.prepared.get("command") or "")
    script, *words = shlex.split(command) or [run.data.name or "unknown data"]
    name = script.rpartition("/")[2].removesuffix(".sh")
    which = words[: words.index("DEST")] if "DEST" in words else []
    return " ".join(["Results on", name, *which])


def _summary(report: Report) -> str:
    runs = [run for row in report.rows for run in row.runs]
    machines = dict.fromkeys(run.machine for run in runs)
    return (
        f"{_count(len(report.rows), 'method')}, {_count(len(runs), 'run')}, "
        f"{sum(run.minutes or 0 for run in runs):,.0f} minutes of training recorded. "
        f"Machine: {'; '.join(machines)}."
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _groups(curves: Sequence[Curve]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The metrics of each stage, under its heading: name and picture."""
    groups = []
    for stage, members in groupby(curves, lambda curve: curve.stage):
        heading = "Training" if stage == TRAINING else f"Validation on {stage}"
        drawn = [(curve.metric, charts.line_chart(curve)) for curve in members]
        if shown := [one for one in drawn if one[1]]:  # nothing finite is no chart
            groups.append((heading, shown))
    return groups
