"""Pictures: how they look and how they are written.

What colour says, a marker, a hatch or a label says too. The colours are those of Okabe and Ito
(2008), which people with any colour vision can tell apart.
"""

import functools
import io
import logging
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compgen_fairseq.analysis.writing import write_bytes

COLOURS = (
    "#0072b2 #e69f00 #009e73 #cc79a7 #d55e00 #56b4e9 #000000 #f0e442".split()  # blue first
)
MARKERS = "o s ^ D v P X * < > p h".split()
HATCHES = ["", "//", "..", "xx", "\\\\", "++", "oo", "--"]
DPI = 150
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Arial")


@functools.cache
def _matplotlib() -> Any:
    """matplotlib, without a window, with fonts for as many scripts as this machine has.

    Raises:
        ValueError: if it is not installed.
    """
    for chatty in ("matplotlib", "fontTools"):  # at its import fairseq asks all for every detail
        logging.getLogger(chatty).setLevel(logging.ERROR)
    try:
        import matplotlib
    except ImportError:
        raise ValueError(
            'matplotlib is not installed: pip install "compgen-fairseq[analysis]"'
        ) from None
    from matplotlib import font_manager

    matplotlib.use("Agg")
    installed = set(font_manager.get_font_names())
    matplotlib.rcParams.update(
        {
            "font.family": [name for name in FONTS if name in installed],
            "font.size": 9,
            "pdf.fonttype": 42,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
    )
    return matplotlib


def new(width: float = 6.4, height: float = 4.8) -> Any:
    """An empty ``matplotlib.figure.Figure`` whose parts are laid out without overlaps.

    Args:
        width: in inches.
        height: in inches.

    Raises:
        ValueError: if matplotlib is not installed.
    """
    _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plane(figure: Any) -> Any:
    """Axes whose numbers mean nothing, as those of t-SNE: only a frame."""
    axes = figure.add_subplot(xticks=[], yticks=[])
    axes.margins(0.08)
    axes.spines[:].set(visible=True, color="0.7")
    return axes


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as ``name.png`` and ``name.pdf``; the same figure gives the same bytes.

    The PNG carries the figure's title as its description, which is the caption in a report.

    Returns:
        the two files.

    Raises:
        ValueError: if one cannot be written.
    """
    titles = [axes.get_title(place) for axes in figure.axes for place in ("left", "center")]
    caption = " ".join(next(filter(None, [figure.get_suptitle(), *titles]), "").split())
    png = {"Software": None} | ({"Description": caption} if caption else {})
    files = []
    for form, metadata in (("png", png), ("pdf", {"CreationDate": None})):
        data = io.BytesIO()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figure.savefig(data, format=form, metadata=metadata)
        if form == "png" and any("missing from font" in str(w.message) for w in caught):
            print(
                f"{name}.png: no installed font has all its characters: install one, such as Noto "
                "Sans CJK; the JSON and CSV files have the words",
                file=sys.stderr,
            )
        files.append(write_bytes(Path(folder) / f"{name}.{form}", data.getvalue()))
    return files


def style(index: int) -> dict[str, str]:
    """``color`` and ``marker`` of a group: up to 96 differ, the first 12 by their markers alone."""
    turn, marker = divmod(index, len(MARKERS))
    return {"color": COLOURS[(marker + turn) % len(COLOURS)], "marker": MARKERS[marker]}


def hatch(index: int) -> dict[str, str]:
    """``color``, ``hatch`` and ``edgecolor`` of a group's bars: the first 8 differ by hatches."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "hatch": HATCHES[index % len(HATCHES)],
        "edgecolor": "white",
    }


def place_labels(
    axes: Any, points: np.ndarray, labels: Sequence[str], size: float = 7, reach: int = 4
) -> int:
    """Write labels beside points so that no two overlap and few cover a point.

    Each label takes the first free one of eight places around its point, then of eight further
    off, with a line to the point, and so on; one without a free place is left out. Call this when
    everything else is drawn and the limits of the axes are fixed.

    Args:
        axes: the axes that the points are on.
        points: ``(n, 2)``, in data coordinates.
        labels: of the first ``len(labels)`` points, the most important first.
        size: of the letters, in points.
        reach: how many rings of places are tried.

    Returns:
        how many labels were left out.
    """
    from matplotlib.patheffects import withStroke

    figure, outline = axes.figure, [withStroke(linewidth=1.5, foreground="white")]
    figure.draw_without_rendering()
    renderer, frame = figure.canvas.get_renderer(), axes.get_window_extent()
    places = axes.transData.transform(points)
    radius = 3 * figure.dpi / 72
    taken = np.empty((0, 4))
    dots = np.concatenate([places - radius, places + radius], axis=1)
    left_out = 0
    for place, label in zip(places, labels, strict=False):
        text = axes.annotate(label, (0, 0), fontsize=size, annotation_clip=False)
        extent = text.get_window_extent(renderer)
        text.remove()
        found = _free(place, (extent.width, extent.height), radius, reach, taken, dots, frame)
        if found is None:
            left_out += 1
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
    return left_out


def _free(
    place: np.ndarray,
    extent: tuple[float, float],
    radius: float,
    reach: int,
    taken: np.ndarray,
    dots: np.ndarray,
    frame: Any,
) -> tuple[np.ndarray, int] | None:
    """The first place for a label in pixels ``(x0, y0, x1, y1)``, and in which ring it is."""
    width, height = extent
    covering = None
    for ring in range(reach):
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
