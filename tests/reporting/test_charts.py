"""Learning curves as pictures."""

import base64

import pytest

from compgen import plotting
from compgen.reporting.charts import legend, line_chart
from compgen.reporting.curves import Curve
from compgen.reporting.report import Row

SEED = tuple((update, 0.5) for update in (1, 2, 3))
OTHER = ((1, 1.5), (2, float("nan")), (3, 1.5))


@pytest.fixture
def axes(monkeypatch) -> list:
    """What is drawn, figure by figure."""
    drawn = []
    new = plotting.new
    monkeypatch.setattr(plotting, "new", lambda *size: drawn.append(new(*size)) or drawn[-1])
    return drawn


def svg(address: str) -> str:
    kind, _, data = address.partition(",")
    assert kind == "data:image/svg+xml;base64"
    return base64.b64decode(data).decode()


def test_a_chart_has_a_line_for_each_run_and_one_for_the_mean(axes):
    text = svg(line_chart(Curve("valid", "loss", ((SEED, OTHER), (OTHER,)))))
    assert text.startswith("<?xml") and "<script" not in text
    lines = [line.get_xydata().tolist() for line in axes[0].axes[0].lines]
    assert lines == [
        *([[1, 0.5], [2, 0.5], [3, 0.5]], [[1, 1.5], [3, 1.5]]),  # two seeds
        *([[1, 1], [3, 1]], [[1, 1.5], [3, 1.5]]),  # their mean, and the other row
    ]
    colours = [line.get_color() for line in axes[0].axes[0].lines]
    assert colours[0] == colours[1] == colours[2] != colours[3]


@pytest.mark.parametrize(
    "values, scale, low",
    [((10, 1, 0.1), "log", None), ((5, 10), "linear", None), ((4, 10), "linear", 0)],
)
def test_the_scale_follows_the_values(values, scale, low, axes):
    points = tuple(enumerate(values))
    line_chart(Curve("training", "x", ((points, ()), ())))
    made = axes[0].axes[0]
    assert made.get_yscale() == scale
    assert (made.get_ylim()[0] == 0) == (low == 0)
    assert not any("$" in text.get_text() for text in made.get_yticklabels())


def test_nothing_finite_is_no_chart():
    points = ((10, float("nan")), (20, float("inf")))
    assert line_chart(Curve("valid", "x", ((points, ()), ((),)))) == ""


def test_the_legend_names_every_row(axes):
    rows = [Row(label, ()) for label in ("a<b", "c")]
    assert legend(rows) == legend(rows)
    assert [text.get_text() for text in axes[0].legends[0].get_texts()] == ["a<b", "c"]
