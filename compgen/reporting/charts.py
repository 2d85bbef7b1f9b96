"""Learning curves as pictures in a page."""

import base64
import io
from collections.abc import Sequence
from math import isfinite
from typing import Any

from compgen import plotting
from compgen.reporting.curves import Curve, mean, thinned
from compgen.reporting.report import Row

WIDTH, HEIGHT = 3.6, 2.2  # inches
LOGARITHMIC = 50  # from this ratio of the highest to the lowest value on


def line_chart(curve: Curve) -> str:
    """One metric over the updates: a thin line for each run, a thick one for a row's mean.

    Returns:
        an SVG picture as a ``data:`` address; empty if no value is finite.
    """
    values = [v for row in curve.rows for run in row for _, v in run if isfinite(v)]
    if not values:
        return ""
    figure = plotting.new(WIDTH, HEIGHT)
    axes = figure.add_subplot()
    for i, logged in enumerate(curve.rows):
        runs = [tuple(p for p in run if isfinite(p[1])) for run in logged]
        look = plotting.line(i)
        thin = {"linewidth": 0.8, "alpha": 0.45} if len(runs) > 1 else {}
        for run in filter(None, runs):
            axes.plot(*zip(*thinned(run), strict=True), **look | thin, **_dot(run))
        if len(runs) > 1 and all(runs) and (line := mean(runs)):
            axes.plot(*zip(*thinned(line), strict=True), **look, **_dot(line))
    if 0 < min(values) * LOGARITHMIC < max(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:,g}")
    elif 0 < min(values) < max(values) / 2:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y", linewidth=0.4)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return _address(figure)


def legend(rows: Sequence[Row]) -> str:
    """The line of each row beside its label: an SVG picture as a ``data:`` address."""
    figure = plotting.new(WIDTH, 0.1 + 0.2 * len(rows))
    lines = figure.add_subplot().plot([[0] * len(rows)])
    for i, drawn in enumerate(lines):
        drawn.set(**plotting.line(i))
    figure.axes[0].set_visible(False)
    figure.legend(lines, [row.label for row in rows], loc="center left", handlelength=3)
    return _address(figure)


def _dot(points: Sequence[tuple[int, float]]) -> dict[str, str]:
    """How a line of one point is seen."""
    return {"marker": "o"} if len(points) == 1 else {}


def _address(figure: Any) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(data.getvalue()).decode()}"
