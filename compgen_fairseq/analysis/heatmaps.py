"""Attention maps as pictures: every layer and head of a sentence, or of two side by side."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from compgen import plotting

DIFFERENCE = 0.1  # cells whose weights differ by more are outlined
TOKEN = 0.125  # inches for a token beside a map
LEGIBLE = 0.085  # inches that a label needs; where a token has less, some labels are left out
LONGEST = 24.0  # inches of a picture's longer side


class Sentence(NamedTuple):
    """A sentence with one kind of attention.

    Args:
        title: what stands above its maps.
        weights: ``(layers, heads, queries, keys)``.
        queries: the tokens that attend.
        keys: the tokens that are attended to.
    """

    title: str
    weights: np.ndarray
    queries: Sequence[str]
    keys: Sequence[str]


def draw(sentences: Sequence[Sentence], title: str) -> Any:
    """Draw the maps of one sentence, or of two whose maps have the same shape.

    A row is a layer and a column a head; in a map a row is a query. Where two sentences' weights
    differ by more than :data:`DIFFERENCE`, the cell is outlined in both.
    """
    layers, heads, queries, keys = sentences[0].weights.shape
    panel = np.maximum(np.array([keys, queries]) * TOKEN, 0.8)
    margin = max(len(token) for s in sentences for token in (*s.queries, *s.keys)) * 0.07 + 0.5
    wanted = np.array(
        [len(sentences) * (heads * (panel[0] + 0.1) + margin) + 0.6, layers * (panel[1] + 0.15)]
    ) + np.array([0.0, margin + 0.8])
    scale = min(1.0, LONGEST / wanted.max())
    made = plotting.new(*(wanted * scale))
    made.suptitle(title, fontsize=9)
    parts = np.atleast_1d(made.subfigures(1, len(sentences), wspace=0.02))
    differs = abs(sentences[0].weights - sentences[-1].weights) > DIFFERENCE  # of one: nowhere
    cells = panel * scale / np.array([keys, queries])
    step_x, step_y = np.ceil(LEGIBLE / cells).astype(int)
    for part, sentence in zip(parts, sentences, strict=True):
        part.suptitle(sentence.title, fontsize=8)
        grid = part.subplots(layers, heads, squeeze=False)
        for (layer, head), axes in np.ndenumerate(grid):
            image = _map(axes, sentence.weights[layer, head], differs[layer, head])
            _label(axes.xaxis, sentence.keys if layer + 1 == layers else (), step_x)
            _label(axes.yaxis, sentence.queries if head == 0 else (), step_y)
            if layer == 0:
                axes.set_title(f"head {head + 1}", fontsize=7)
            if head == 0:
                axes.set_ylabel(f"layer {layer + 1}", fontsize=7)
    bar = parts[-1].colorbar(image, ax=grid[:, -1], shrink=0.8, aspect=30)
    bar.ax.tick_params(labelsize=6)
    bar.set_label("attention weight", fontsize=7)
    return made


def _map(axes: Any, weights: np.ndarray, outlined: np.ndarray) -> Any:
    """One map, with some of its cells outlined."""
    from matplotlib.patches import Rectangle

    image = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.spines[:].set_visible(True)
    for query, key in np.argwhere(outlined):
        corner = (key - 0.45, query - 0.45)
        cell = Rectangle(corner, 0.9, 0.9, fill=False, edgecolor=plotting.COLOURS[4], linewidth=1.0)
        axes.add_patch(cell)
    return image


def _label(axis: Any, tokens: Sequence[str], step: int) -> None:
    """Write every ``step``-th token along an axis, or nothing where there are none."""
    axis.set_ticks(range(0, len(tokens), step), tokens[::step], fontsize=6)
    axis.set_tick_params(length=0, pad=1)
    if axis.axis_name == "x":
        axis.set_tick_params(labelrotation=90)
