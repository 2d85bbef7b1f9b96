"""``compgen-analyze errors``: where systems go wrong, from their saved logs."""

import argparse
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compgen import plotting
from compgen.ranges import SEED, Range
from compgen.scoring import cter_rates
from compgen.scoring.cogs import CASES, IN_DISTRIBUTION, read_cases
from compgen.scoring.generate_log import Generation, read
from compgen.scoring.metrics import CterMetric, ExactMatchMetric
from compgen_fairseq.analysis.bootstrap import Rate, rate

MOST_BINS = 12  # of lengths; more different ones are put together
CTER = {
    "compound-length": "compound length (words)",
    "context-length": "context length (tokens outside the compound)",
    "modifier": "modifier (he liked, at the store, on the floor)",
    "type": "type of the compound",
}
EXACT_MATCH = {
    "case": "generalization case",
    "output-length": "length of the reference (tokens)",
    "input-length": "length of the source (tokens)",
}
NOTE = "error bars: 95% bootstrap intervals"
ORDERED = ("compound-length", "context-length", "output-length", "input-length")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this kind."""
    add = parser.add_argument
    add("logs", nargs="+", metavar="LOG", help="what fairseq-generate printed for each system")
    add("--label", nargs="+", metavar="NAME", help="what the systems are called in the picture")
    text = f"CTER by {', '.join(CTER)}; exact match by {', '.join(EXACT_MATCH)}"
    add("--by", required=True, choices=(*CTER, *EXACT_MATCH), help=text)
    text = (
        "the prepared data folder: its cter/ or cases/ is needed for all but lengths of reference "
        "and source"
    )
    add("--data", metavar="DATA", help=text)
    add("--subset", help="with --data: that was translated (default: test)")
    text = "of the bootstrap (default: %(default)s)"
    add("--resamples", type=Range(1, 10**6, closed=True).whole, default=1000, help=text)
    add("--seed", type=SEED.whole, default=1, help="of the bootstrap (default: %(default)s)")


@dataclass(frozen=True)
class Verdicts:
    """What is known about each line of a test set.

    Args:
        hits: by system, for each line: it is wrong (CTER) or right (exact match).
        units: lines of the same number are not independent of each other.
        keys: the group of each line.
        order: the groups.
    """

    hits: Mapping[str, Sequence[bool]]
    units: Sequence[int]
    keys: Sequence[str]
    order: Sequence[str]


def run(args: argparse.Namespace) -> list[Path]:
    """Score the logs and write the picture and the numbers.

    Raises:
        ValueError: if a log or what belongs to it is not there or does not fit.
    """
    labels = args.label or [str(Path(log).with_suffix("")) for log in args.logs]
    if args.by in ("input-length", "output-length") and (args.data or args.subset):
        raise ValueError(f"--by {args.by} reads the logs alone: leave out --data and --subset")
    if len(labels) != len(args.logs) or len(set(labels)) != len(labels):
        raise ValueError(f"--label: name each of the {len(args.logs)} logs differently")
    systems = {label: read(log) for label, log in zip(labels, args.logs, strict=True)}
    first = systems[labels[0]]
    for log, system in zip(args.logs, systems.values(), strict=True):
        if (system.sources, system.targets) != (first.sources, first.targets):
            raise ValueError(f"{args.logs[0]} and {log} are not about the same sentences")
    by_cter = args.by in CTER
    verdicts = (cter_verdicts if by_cter else exact_match_verdicts)(args, systems)
    rates = {"instance CTER" if by_cter else "exact match": rates_of(verdicts, args)}
    if by_cter:
        rates["aggregate CTER"] = rates_of(by_compound(verdicts), args)
    return _write(args, rates, verdicts.order)


def cter_verdicts(args: argparse.Namespace, systems: Mapping[str, Generation]) -> Verdicts:
    """Which lines are wrong by the rules of CTER's lexicon; units are the lines of a compound.

    Raises:
        ValueError: if the data folder lacks what is needed, or has it for other sentences.
    """
    file = _file(args, "cter", "compound", "prepare/cognition.sh")
    metric = CterMetric(file, file.with_name("lexicon"))
    judged = {label: metric.judge(system) for label, system in systems.items()}
    hits = {label: found.wrong for label, found in judged.items()}
    first, name = next(iter(judged.values())), args.by.replace("-", "_")
    if name not in metric.rules.groupings:
        raise ValueError(f"--by {args.by}: compounds of your own have no modifiers")
    unit_of: dict[Hashable, int] = {}
    units = [unit_of.setdefault(first.group_of(i), len(unit_of)) for i in range(len(first.lines))]
    keys = [str(cter_rates.GROUPINGS[name](line)) for line in first.lines]
    order = list(cter_rates.groups(first.lines, first.wrong, names=[name])[name])
    return Verdicts(hits, units, keys, order)


def by_compound(verdicts: Verdicts) -> Verdicts:
    """One line for all of a compound's lines in a group: it is wrong if any of them is."""
    places: dict[tuple[int, str], list[int]] = {}
    for i, place in enumerate(zip(verdicts.units, verdicts.keys, strict=True)):
        places.setdefault(place, []).append(i)
    hits = {
        label: [any(wrong[i] for i in members) for members in places.values()]
        for label, wrong in verdicts.hits.items()
    }
    return Verdicts(hits, [u for u, _ in places], [k for _, k in places], verdicts.order)


def exact_match_verdicts(args: argparse.Namespace, systems: Mapping[str, Generation]) -> Verdicts:
    """Which hypotheses equal their reference in the log; every sentence is a unit.

    Raises:
        ValueError: if the logs have no references, or the cases are not those of the sentences.
    """
    first, metric = next(iter(systems.values())), ExactMatchMetric()
    hits = {
        label: list(map(bool, metric.values(system)["score"])) for label, system in systems.items()
    }
    units = range(len(first.targets))
    if args.by == "case":
        keys = read_cases(_file(args, "cases", "case", "prepare/cogs.sh"), len(units))
        cases, there = dict.fromkeys((*CASES, IN_DISTRIBUTION, *keys)), set(keys)
        return Verdicts(hits, units, keys, [case for case in cases if case in there])
    texts = first.targets if args.by == "output-length" else first.sources
    lengths = [len(text.split()) for text in texts]
    name = bins(lengths)
    order = list(dict.fromkeys(name(length) for length in sorted(set(lengths))))
    return Verdicts(hits, units, [name(length) for length in lengths], order)


def bins(lengths: Sequence[int]) -> Callable[[int], str]:
    """Names for lengths: each its own, or where there are more than 12 different ones, ranges of
    equal width."""
    low, high = min(lengths), max(lengths)
    if len(set(lengths)) <= MOST_BINS:
        return str
    width = math.ceil((high - low + 1) / MOST_BINS)

    def name(length: int) -> str:
        start = low + (length - low) // width * width
        return f"{start}-{start + width - 1}"

    return name


def rates_of(verdicts: Verdicts, args: argparse.Namespace) -> dict[str, dict[str, Rate]]:
    """The rate of every system in every group, with its interval."""
    keys, units = np.array(verdicts.keys), np.array(verdicts.units)
    return {
        label: {
            key: rate(np.array(hits)[keys == key], units[keys == key], args.resamples, args.seed)
            for key in verdicts.order
        }
        for label, hits in verdicts.hits.items()
    }


def _file(args: argparse.Namespace, folder: str, suffix: str, script: str) -> Path:
    """A file of the data folder."""
    if not args.data:
        raise ValueError(f"--by {args.by} needs --data DATA, a folder of {script}")
    file = Path(args.data, folder, f"{args.subset or 'test'}.{suffix}")
    if not file.is_file():
        raise ValueError(f"{file} is not there: --by {args.by} needs a folder of {script}")
    return file


def _write(
    args: argparse.Namespace, rates: Mapping[str, dict[str, dict[str, Rate]]], order: Sequence[str]
) -> list[Path]:
    """Write the picture of the first measure, and the numbers of all."""
    rows = [
        {"measure": measure, "system": label, args.by: key, **one._asdict()}
        for measure, systems in rates.items()
        for label, groups in systems.items()
        for key, one in groups.items()
    ]
    settings = {name: getattr(args, name) for name in ("by", "logs", "resamples", "seed")}
    measure, systems = next(iter(rates.items()))
    drawn = (_lines if args.by in ORDERED else _bars)(systems, order)
    axes, title = drawn.axes[0], (CTER | EXACT_MATCH)[args.by]
    n = {one.lines for groups in systems.values() for one in groups.values()}
    each = f" of {n.pop()} lines each" if len(n) == 1 else ""
    if args.by in ORDERED:
        axes.set(xlabel=f"{title}{each}\n{NOTE}", ylabel=f"{measure} (%)")
    else:
        axes.set(xlabel=f"{measure} (%)\n{NOTE}")
        axes.set_title(f"{title}{each}", fontsize=9)
    drawn.legend(loc="outside upper center", ncols=min(len(systems), 3))
    told = {**settings, "rates": rows}
    return plotting.save_all(drawn, args.out, f"errors-{args.by}", rows, told)


def _reach(groups: Sequence[Rate]) -> np.ndarray:
    """How far the intervals reach below and above the rates, ``(2, n)``; 0 where there is none."""
    percent, low, high = np.array([one[:3] for one in groups], dtype=float).T  # None is NaN
    return np.fmax([percent - low, high - percent], 0)


def _named(systems: Mapping[str, Mapping[str, Rate]], order: Sequence[str], end: str) -> list[str]:
    """The groups' names with their number of lines, which is left out where all have the same."""
    lines = [next(iter(systems.values()))[key].lines for key in order]
    ends = [end.format(n) if len(set(lines)) > 1 else "" for n in lines]
    return [f"{key.replace('_', ' ')}{text}" for key, text in zip(order, ends, strict=True)]


def _top(systems: Mapping[str, Mapping[str, Rate]]) -> float:
    """Where the axis of rates ends."""
    ends = [one.high or one.percent for groups in systems.values() for one in groups.values()]
    return min(103.0, 1.1 * max(*ends, 10.0))


def _lines(systems: Mapping[str, Mapping[str, Rate]], order: Sequence[str]) -> Any:
    """A line with markers for each system over groups that have an order."""
    made = plotting.new(max(4.8, 1.5 + 0.5 * len(order)), 3.8)
    axes = made.subplots()
    for i, (label, groups) in enumerate(systems.items()):
        found = [groups[key] for key in order]
        places = np.arange(len(order)) + 0.08 * (i - (len(systems) - 1) / 2)
        axes.errorbar(
            places,
            [one.percent for one in found],
            yerr=_reach(found),
            label=label,
            capsize=2,
            linewidth=1,
            markersize=4,
            **plotting.style(i),
        )
    axes.set_xticks(range(len(order)), _named(systems, order, "\nn={}"))
    axes.tick_params("x", labelsize=7)
    axes.set_ylim(0, _top(systems))
    return made


def _bars(systems: Mapping[str, Mapping[str, Rate]], order: Sequence[str]) -> Any:
    """A hatched bar for each system and group."""
    made = plotting.new(6.8, 1.6 + len(order) * (0.1 + 0.14 * len(systems)))
    axes = made.subplots()
    thick = 0.8 / len(systems)
    for i, (label, groups) in enumerate(systems.items()):
        found = [groups[key] for key in order]
        places = np.arange(len(order)) + thick * (i - (len(systems) - 1) / 2)
        axes.barh(
            places,
            [one.percent for one in found],
            thick,
            xerr=_reach(found),
            error_kw={"capsize": 2, "linewidth": 1},
            label=label,
            **plotting.hatch(i),
        )
    axes.set_yticks(range(len(order)), _named(systems, order, " (n={})"))
    axes.tick_params("y", labelsize=8)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(0, _top(systems))
    return made
