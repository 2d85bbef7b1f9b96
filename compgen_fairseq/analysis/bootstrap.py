"""Error bars: how far a rate would move with other test sentences of the same kind."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Rate(NamedTuple):
    """A rate with its 95% interval, all in percent.

    Args:
        percent: of the lines, hits.
        low: the interval's lower end; None where there are fewer than two units.
        high: its upper end.
        lines: how many lines were counted.
        units: how many units they belong to.
    """

    percent: float
    low: float | None
    high: float | None
    lines: int
    units: int


def rate(
    hits: Sequence[bool] | np.ndarray, units: Sequence[int] | np.ndarray, resamples: int, seed: int
) -> Rate:
    """The share of hits, with a percentile bootstrap over units (Efron and Tibshirani, 1993).

    What is drawn with replacement are units, groups of lines that are not independent of each
    other; the rate of a resample is that of all lines of its units.

    Args:
        hits: for each line.
        units: the unit of each line.
        resamples: how many.
        seed: of the resamples.

    Raises:
        ValueError: if there are no lines.
    """
    if not len(hits):
        raise ValueError("no lines have no rate")
    _, which, counts = np.unique(units, return_inverse=True, return_counts=True)
    found = np.bincount(which, weights=np.asarray(hits, dtype=float))
    percent = 100 * float(found.sum() / counts.sum())
    if len(counts) < 2:
        return Rate(percent, None, None, len(hits), len(counts))

    def statistic(found: np.ndarray, counts: np.ndarray, axis: int = -1) -> np.ndarray:
        return 100 * found.sum(axis) / counts.sum(axis)

    low, high = stats.bootstrap(
        (found, counts),
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=resamples,
        batch=100,  # keeps memory at 100 x units values
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Rate(percent, float(low), float(high), len(hits), len(counts))
