"""Pictures: how they look and how they are written.

What colour says, a marker, a hatch or a label says too. The colours are those of Okabe and Ito
(2008), which people with any colour vision can tell apart.
"""

import io
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

from compgen.output import write_bytes, write_csv, write_json

COLOURS = (
    "#0072b2 #e69f00 #009e73 #cc79a7 #d55e00 #56b4e9 #000000 #f0e442".split()  # blue first
)
MARKERS = "o s ^ D v P X * < > p h".split()
LINES = ["-", "--", ":", "-."]
HATCHES = ["", "//", "..", "xx", "\\\\", "++", "oo", "--"]
DPI = 150
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Arial")


def new(width: float = 6.4, height: float = 4.8) -> Any:
    """An empty ``matplotlib.figure.Figure``, in inches, with parts laid out without overlaps, and
    with fonts for as many scripts as this machine has."""
    for chatty in ("matplotlib", "fontTools"):  # at its import fairseq asks all for every detail
        logging.getLogger(chatty).setLevel(logging.ERROR)
    import matplotlib
    from matplotlib import font_manager
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    installed = set(font_manager.get_font_names())
    matplotlib.rcParams.update(
        {
            "font.family": [name for name in FONTS if name in installed],
            "font.size": 9,
            "text.parse_math": False,  # words may be dollars
            "pdf.fonttype": 42,
            "svg.hashsalt": "the same figure gives the same bytes",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
    )
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_all(figure: Any, folder: Path | str, name: str, rows: Any, data: Any) -> list[Path]:
    """Write a figure, its rows as ``name.csv`` and what is said of it as ``name.json``."""
    out = Path(folder)
    told, listed = write_json(out / f"{name}.json", data), write_csv(out / f"{name}.csv", rows)
    return [*save(figure, out, name), listed, told]


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as ``name.png`` and ``name.pdf``; the same figure gives the same bytes.

    The PNG carries the figure's title as its description, which is the caption in a report.

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


def line(index: int) -> dict[str, str]:
    """``color`` and ``linestyle`` of a group's line: up to 32 differ."""
    turn, colour = divmod(index, len(COLOURS))
    return {"color": COLOURS[colour], "linestyle": LINES[(colour + turn) % len(LINES)]}


def hatch(index: int) -> dict[str, str]:
    """``color``, ``hatch`` and ``edgecolor`` of a group's bars: the first 8 differ by hatches."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "hatch": HATCHES[index % len(HATCHES)],
        "edgecolor": "white",
    }
