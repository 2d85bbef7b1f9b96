"""Learning curves: what a training's log says about every metric over the updates."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compgen.reporting.report import Report

TRAINING = "training"
LINE = re.compile(r"\| INFO \| (\S+) \| (\{.*\}|epoch \d+.*)$", re.MULTILINE)
NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)"
PAIR = re.compile(rf"(?:^|[ ,|])([A-Za-z]\w*)[= ]({NUMBER})(?=,| \||$)", re.ASCII)
# What fairseq logs beside the metrics; ppl is 2 to the power of nll_loss.
SKIPPED = set(
    "epoch update num_updates ppl wps ups wpb bsz lr gnorm clip loss_scale train_wall wall "
    "gb_free".split()
)

Points = tuple[tuple[int, float], ...]  # (update, value), by update


@dataclass(frozen=True)
class Curve:
    """One metric of one stage, of all runs that have it.

    Args:
        stage: ``training``, or the name of a validation subset.
        metric: as fairseq logs it.
        rows: for each row of the report, the points of each of its runs; a run without the metric
            has none.
    """

    stage: str
    metric: str
    rows: tuple[tuple[Points, ...], ...]

    def last(self, row: int) -> float | None:
        """The mean over a row's runs of their last value; None where a run has none."""
        ends = [points[-1][1] for points in self.rows[row] if points]
        return sum(ends) / len(ends) if ends and len(ends) == len(self.rows[row]) else None


def curves(report: Report) -> list[Curve]:
    """The learning curves of a report: validation first, and there what training lacks first."""
    logs = [[points_of(read_log(run.path)) for run in row.runs] for row in report.rows]
    names = {name for row in logs for run in row for name in run}
    in_training = {metric for stage, metric in names if stage == TRAINING}

    def order(name: tuple[str, str]) -> tuple[bool, str, bool, bool, str]:
        stage, metric = name
        return stage == TRAINING, stage, metric in in_training, "loss" not in metric, metric

    return [
        Curve(*name, tuple(tuple(run.get(name, ()) for run in row) for row in logs))
        for name in sorted(names, key=order)
    ]


def read_log(folder: Path) -> str:
    """A run's log of fairseq-train; nothing of a training that kept none."""
    log = folder / "train.log"
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def points_of(log: str) -> dict[tuple[str, str], Points]:
    """The points of each stage and metric in a log of fairseq-train, ``simple`` or ``json``.

    Where a training was resumed from an earlier update, the later values count. The training's
    values are those of every ``--log-interval`` updates or, without any, of every epoch.
    """
    found: dict[tuple[str, str], dict[int, float]] = {}
    for stage, update, metric, value in _values(log):
        found.setdefault((stage, metric), {})[update] = value
    inner = any(stage == "train_inner" for stage, _ in found)
    named = {"train_inner" if inner else "train": TRAINING}
    return {
        (named.get(stage, stage), metric): tuple(sorted(values.items()))
        for (stage, metric), values in found.items()
        if stage in named or stage not in ("train", "train_inner")
    }


def _values(log: str) -> Iterator[tuple[str, int, str, float]]:
    for tag, text in LINE.findall(log):
        pairs = _from_json(tag, text) if text.startswith("{") else dict(PAIR.findall(text))
        if "num_updates" not in pairs:
            continue
        for metric, value in pairs.items():
            if metric not in SKIPPED and not metric.startswith("best_"):
                update = int(float(pairs["num_updates"]))  # 1e+06
                yield tag, update, metric, float(value)


def _from_json(tag: str, text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}  # the configuration is a dictionary, too, but not JSON
    return {name.removeprefix(f"{tag}_"): value for name, value in found.items()}


def thinned(points: Sequence[tuple[int, float]], most: int = 200) -> Points:
    """At most about so many of the points, evenly chosen, with the first and the last."""
    step = max(1, -(-len(points) // most))
    return (*points[:-1:step], *points[-1:])


def mean(runs: Sequence[Points]) -> Points:
    """The mean over runs, at the updates that all of them have."""
    values = [dict(points) for points in runs]
    shared = sorted(set.intersection(*map(set, values)))
    return tuple((update, sum(v[update] for v in values) / len(values)) for update in shared)
