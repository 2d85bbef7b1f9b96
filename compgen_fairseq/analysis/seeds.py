"""``compgen-analyze seeds``: how a score spreads over the seeds of each method."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compgen import plotting
from compgen.reporting.report import Summary, report_of
from compgen.reporting.runs import CHECKPOINTS, ScoreName

TOP, BINS = 100.0, 20  # scores are percentages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this kind."""
    add = parser.add_argument
    add("runs", nargs="+", metavar="RUN", help="folders of runs, as for compgen-report")
    add("--score", help="such as exact_match or 'cter instance' (default: the first there is)")
    text = "the chosen one or the last (default: %(default)s)"
    add("--checkpoint", choices=CHECKPOINTS, default=CHECKPOINTS[0], help=text)
    add("--title", help="above the picture")
    text = "settings in which the runs may differ, as for compgen-report"
    add("--allow-differences", metavar="NAME,...", default="", help=text)


def run(args: argparse.Namespace) -> list[Path]:
    """Read the runs and write the picture and the numbers.

    Raises:
        ValueError: if no method has the score, or the runs cannot stand side by side.
    """
    found = report_of(args.runs, args.allow_differences)
    of_checkpoint = [score for score in found.scores if score.checkpoint == args.checkpoint]
    score = next((score for score in of_checkpoint if args.score in (None, score.name)), None)
    if score is None:
        names = ", ".join(dict.fromkeys(score.name for score in of_checkpoint)) or "none"
        asked = f"--checkpoint {args.checkpoint}" if args.score is None else f"--score {args.score}"
        raise ValueError(f"{asked}: the runs' scores are {names}; evaluate.sh makes them")
    pairs = ((row.label, row.summary(score)) for row in found.rows)
    summaries = {label: one for label, one in pairs if one is not None}
    rows = [
        {"method": label, "score": score.name, "checkpoint": score.checkpoint}
        | one.numbers()
        | {"values": " ".join(f"{value:.2f}" for value in one.values)}
        for label, one in summaries.items()
    ]
    drawn = draw(summaries, score)
    if args.title:
        drawn.suptitle(args.title, fontsize=10)
    return plotting.save_all(drawn, args.out, "seeds", rows, rows)


def draw(summaries: Mapping[str, Summary], score: ScoreName) -> Any:
    """A histogram for each method, one under the other; a line at the mean, dots at the median."""
    made = plotting.new(5.6, 0.7 + 1.3 * len(summaries))
    panels = made.subplots(len(summaries), sharex=True, sharey=True, squeeze=False)[:, 0]
    edges = np.linspace(0, TOP, BINS + 1)
    for i, (axes, (label, one)) in enumerate(zip(panels, summaries.items(), strict=True)):
        axes.hist(np.clip(one.values, 0, TOP), bins=edges, **plotting.hatch(i))
        axes.axvline(one.mean, color="black", linewidth=1)
        axes.axvline(one.median, color="black", linewidth=1, linestyle=":")
        told = f"{label}: mean {one.spread} (line), median {one.median:.2f} (dots)"
        axes.set_title(told, fontsize=8, loc="left")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel(f"seeds (of {one.n})", fontsize=8)
    panels[-1].set(xlim=(0, TOP), xlabel=f"{score.name} (%), {score.checkpoint} checkpoint")
    return made
