"""By what validation chose a run's checkpoint, and what it scored there."""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compgen.reporting.curves import points_of, read_log
from compgen.reporting.runs import Run

# Where a training forgets its best score: Proto-Transformer's stage 1 was a plain Transformer.
ANEW = re.compile(r"\| prototypes: stage 1 is over|\| the best checkpoint is chosen anew")
SAVED = re.compile(r"\| Saved checkpoint .* @ (\d+) updates, ")


def choice(run: Run) -> dict[str, Any] | None:
    """What a run's chosen checkpoint was chosen by.

    A result keeps it; of a run its settings and its log of fairseq-train tell.

    Returns:
        ``metric`` and ``subset`` of the validation, the part of the data that this is ``from``,
        and the ``value`` there after how many ``updates`` (both None where the log does not tell);
        None of a run whose settings do not name metric and subset.
    """
    if "chosen" in run.record:
        return run.record["chosen"]
    names = ("best_checkpoint_metric", "maximize_best_checkpoint_metric")
    metric, highest = (run.settings.get(f"checkpoint.{name}") for name in names)
    subset = str(run.settings.get("dataset.valid_subset", "")).partition(",")[0]
    if not (metric and subset):
        return None
    log = ANEW.split(read_log(run.path))[-1]
    saved = {int(updates) for updates in SAVED.findall(log)}
    points = points_of(log).get((subset, metric), ())
    # only where validation left a checkpoint; the later one of equals, as fairseq has it
    points = tuple(p for p in points if p[0] in saved and math.isfinite(p[1]))
    sign = 1 if highest else -1
    best = max(points, key=lambda point: (sign * point[1], point[0]), default=(None, None))
    return {
        "metric": metric,
        "subset": subset,
        "from": (run.prepared.get("settings") or {}).get("valid"),
        "value": best[1],
        "updates": best[0],
    }


def told(choices: Iterable[dict[str, Any]]) -> str:
    """``Checkpoints were chosen by exact_match on valid (test20).``"""
    by = dict.fromkeys(f"{one['metric']} on {one['subset']}{_origin(one)}" for one in choices)
    return f"Checkpoints were chosen by {', '.join(by)}."


def _origin(chosen: dict[str, Any]) -> str:
    """Where a validation set is from: a part's name, how many pairs were held out, or files."""
    valid = chosen["from"]
    if isinstance(valid, list):
        valid = " ".join(Path(name).name for name in valid)
    elif isinstance(valid, int):
        valid = f"{valid} pairs held out"
    return f" ({valid})" if valid not in (None, "", chosen["subset"]) else ""
