"""Small drawings as SVG: their looks are the page's style sheet's, by class.

``s0``, ``s1``, ... are the rows of the report, each with its colour and its dashes.
"""

from collections.abc import Iterator, Sequence
from math import ceil, floor, isfinite, log10

from markupsafe import Markup

from compgen.reporting.curves import Curve, Points, mean, thinned
from compgen.reporting.report import Row

STYLES = 8  # the style sheet has so many; further rows begin again
WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 10, 8, 24
LOGARITHMIC = 50  # from this ratio of the highest to the lowest value on


def style(row: int) -> str:
    """The class of a row."""
    return f"s{row % STYLES}"


def line_chart(curve: Curve, rows: Sequence[Row]) -> Markup:
    """One metric over the updates: a thin line for each run, a thick one for a row's mean."""
    points = [point for row in curve.rows for run in row for point in run if isfinite(point[1])]
    if not points:
        return Markup()
    x = _Axis(0, max(update for update, _ in points), LEFT, WIDTH - RIGHT)
    values = [value for _, value in points]
    y = _value_axis(min(values), max(values))
    parts = [*_grid(x, y)]
    for i, (row, logged) in enumerate(zip(rows, curve.rows, strict=True)):
        runs = [tuple(p for p in run if isfinite(p[1])) for run in logged]
        for run, line in zip(row.runs, runs, strict=True):
            if line:
                told = f"{row.label}, seed {run.seed}: {short(line[-1][1])} at {line[-1][0]:,}"
                kind = "seed" if len(runs) > 1 else "only"
                parts.append(_line(line, x, y, f"{style(i)} {kind}", told))
        if len(runs) > 1 and all(runs) and (line := mean(runs)):
            told = f"{row.label}, mean of {len(runs)} seeds: {short(line[-1][1])}"
            parts.append(_line(line, x, y, f"{style(i)} mean", told))
    about = f"{curve.metric} ({curve.stage}) over {x.high:,.0f} updates"
    about += ", logarithmic" if isinstance(y, _LogAxis) else ""
    return _svg(WIDTH, HEIGHT, parts, "chart", about)


def strip(row: int, values: Sequence[float], low: float, high: float) -> Markup:
    """The scores of a row's seeds as dots on a line from ``low`` to ``high``, and their mean."""
    width, height, margin = 120, 16, 5
    axis = _Axis(low, high, margin, width - margin)
    middle = axis.at(sum(values) / len(values))
    parts = [
        _element("line", "axis", x1=margin, x2=width - margin, y1=height / 2, y2=height / 2),
        _element("line", style(row), x1=middle, x2=middle, y1=1, y2=height - 1),
        *(_element("circle", style(row), cx=axis.at(v), cy=height / 2, r=3.5) for v in values),
    ]
    about = f"{', '.join(map(short, values))} between {short(low)} and {short(high)}"
    return _svg(width, height, parts, "strip", about)


def key(row: int) -> Markup:
    """A piece of the row's line, for the legend."""
    line = _element("line", f"{style(row)} only", x1=0, x2=36, y1=5, y2=5)
    return _svg(36, 10, [line], "key", None)


def short(value: float) -> str:
    """A number with at most four significant digits, and all of them before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


class _Axis:
    """Values from ``low`` to ``high`` on pixels from ``begin`` to ``end``."""

    def __init__(self, low: float, high: float, begin: float, end: float):
        self.low, self.high = (low, high) if high > low else (low - 0.5, high + 0.5)
        self.begin, self.end = begin, end

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def ticks(self, most: int) -> list[float]:
        """At most so many round numbers: multiples of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / most
        power = 10.0 ** floor(log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [round(i * step, 10) for i in range(first, last + 1)]


class _LogAxis(_Axis):
    """The same for positive values, by their logarithm."""

    def __init__(self, low: float, high: float, begin: float, end: float):
        super().__init__(log10(low), log10(high), begin, end)

    def at(self, value: float) -> float:
        return super().at(log10(value))

    def ticks(self, most: int) -> list[float]:
        """Powers of ten, not more than so many."""
        exponents = range(ceil(self.low - 1e-9), floor(self.high + 1e-9) + 1)
        return [10.0**e for e in exponents][:: max(1, ceil(len(exponents) / most))]


def _value_axis(low: float, high: float) -> _Axis:
    """From zero where the values are not far from it, logarithmic where they span much."""
    if 0 < low * LOGARITHMIC < high:
        return _LogAxis(low, high, HEIGHT - BOTTOM, TOP)
    if 0 < low < high / 2:
        low = 0
    margin = 0.04 * (high - low)
    return _Axis(low - (low < 0) * margin, high + margin, HEIGHT - BOTTOM, TOP)


def _grid(x: _Axis, y: _Axis) -> Iterator[Markup]:
    for value in y.ticks(5):
        yield _element("line", "grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y.at(value), y2=y.at(value))
        place = {"x": LEFT - 5, "y": y.at(value) + 3.5, "text-anchor": "end"}
        yield _element("text", "tick", _thousands(value), **place)
    yield _element("line", "axis", x1=LEFT, x2=WIDTH - RIGHT, y1=y.begin, y2=y.begin)
    for value in x.ticks(5):
        place = {"x": x.at(value), "y": HEIGHT - BOTTOM + 14, "text-anchor": "middle"}
        yield _element("text", "tick", _thousands(value), **place)


def _thousands(value: float) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


def _line(points: Points, x: _Axis, y: _Axis, name: str, told: str) -> Markup:
    places = " ".join(f"{x.at(update):g},{y.at(value):g}" for update, value in thinned(points))
    if len(points) == 1:
        ((update, value),) = points
        return _element(
            "circle", name, _element("title", "", told), cx=x.at(update), cy=y.at(value), r=3
        )
    return _element("polyline", name, _element("title", "", told), points=places)


def _element(tag: str, name: str, content: str = "", **attributes: object) -> Markup:
    pairs = {"class": name, **attributes} if name else attributes
    words = [tag, *(Markup('{}="{}"').format(key, value) for key, value in pairs.items())]
    return Markup("<{}>{}</{}>").format(Markup(" ").join(words), content, tag)


def _svg(width: int, height: int, parts: Sequence[Markup], name: str, about: str | None) -> Markup:
    told = {"role": "img", "aria-label": about} if about else {"aria-hidden": "true"}
    box = {"viewBox": f"0 0 {width} {height}"}
    return _element("svg", name, Markup().join(parts), **box, **told)
