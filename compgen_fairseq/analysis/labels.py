"""Scatter plots of words: a plane without numbers, and labels that do not overlap."""

from collections.abc import Sequence
from typing import Any

import numpy as np

RINGS = 4  # of places that are tried


def plane(figure: Any) -> Any:
    """Axes whose numbers mean nothing, as those of t-SNE: only a frame."""
    axes = figure.add_subplot(xticks=[], yticks=[])
    axes.margins(0.08)
    axes.spines[:].set(visible=True, color="0.7")
    return axes


def place_labels(axes: Any, points: np.ndarray, labels: Sequence[str], size: float = 7) -> None:
    """Write labels beside points so that no two overlap and few cover a point.

    Each label takes the first free one of eight places around its point, then of eight further
    off, with a line to the point, and so on; one without a free place is left out. Call this when
    everything else is drawn and the limits of the axes are fixed.

    Args:
        axes: the axes that the points are on.
        points: ``(n, 2)``, in data coordinates.
        labels: of the first ``len(labels)`` points, the most important first.
        size: of the letters, in points.
    """
    from matplotlib.patheffects import withStroke

    figure, outline = axes.figure, [withStroke(linewidth=1.5, foreground="white")]
    figure.draw_without_rendering()
    renderer, frame = figure.canvas.get_renderer(), axes.get_window_extent()
    places = axes.transData.transform(points)
    radius = 3 * figure.dpi / 72
    taken = np.empty((0, 4))
    dots = np.concatenate([places - radius, places + radius], axis=1)
    for place, label in zip(places, labels, strict=False):
        text = axes.annotate(label, (0, 0), fontsize=size, annotation_clip=False)
        extent = text.get_window_extent(renderer)
        text.remove()
        found = _free(place, (extent.width, extent.height), radius, taken, dots, frame)
        if found is None:
            continue
        box, ring = found
        taken = np.concatenate([taken, [box]])
        data = axes.transData.inverted()
        line = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.5} if ring > 0 else None
        axes.annotate(
            label,
            data.transform(place),
            data.transform(box[:2]),
            fontsize=size,
            arrowprops=line,
            verticalalignment="bottom",
            path_effects=outline,
        ).set_in_layout(False)


def _free(
    place: np.ndarray,
    extent: tuple[float, float],
    radius: float,
    taken: np.ndarray,
    dots: np.ndarray,
    frame: Any,
) -> tuple[np.ndarray, int] | None:
    """The first place for a label in pixels ``(x0, y0, x1, y1)``, and in which ring it is."""
    width, height = extent
    covering = None
    for ring in range(RINGS):
        away = radius * (1 + 3 * ring)
        for right, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)):
            x = place[0] + right * away - width * (1 - right) / 2
            y = place[1] + up * away - height * (1 - up) / 2
            box = np.array([x, y, x + width, y + height])
            inside = x >= frame.x0 and y >= frame.y0 and box[2] <= frame.x1 and box[3] <= frame.y1
            if not inside or _overlap(box, taken):
                continue
            if not _overlap(box, dots):
                return box, ring
            covering = covering or (box, ring)
    return covering


def _overlap(box: np.ndarray, others: np.ndarray) -> bool:
    """Whether a box ``(4,)`` and any of ``(n, 4)`` have a point in common."""
    apart = (others[:, :2] >= box[2:]) | (others[:, 2:] <= box[:2])
    return bool((~apart.any(axis=1)).any())
