"""Is one system better than another on the same sentences, or is it luck of the draw?

NumPy, SciPy and sacreBLEU are imported where they compute: a command's --help need not wait.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest import mock

from compgen.scoring.bleu import BleuOptions, plain_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLEU_TESTS = {"bs": "paired bootstrap", "ar": "approximate randomization"}
MOST_DRAWN = 2**28  # sentences in all resamples of sacreBLEU, which draws them at once: 2 GiB
TIE = 1e-9  # values closer than that are equal, but for rounding
RESAMPLES = {"bs": 1000, "ar": 10000}  # sacreBLEU's defaults


@dataclass(frozen=True)
class PairedComparison:
    """Two systems on the same units, which are sentences or groups of sentences.

    Args:
        a: mean of the first system, in percent.
        b: mean of the second system, in percent.
        interval: 95% confidence interval of ``b - a``, in percentage points.
        a_higher: number of units on which the first system's value is the higher one.
        b_higher: the same of the second.
        n: number of units.
        p_value: of the two-sided permutation test of ``b - a``.
    """

    a: float
    b: float
    interval: tuple[float, float]
    a_higher: int
    b_higher: int
    n: int
    p_value: float


def compare_paired(
    a: Sequence[float], b: Sequence[float], resamples: int = RESAMPLES["bs"], seed: int = 12345
) -> PairedComparison:
    """Compare two systems by their values on the same units.

    The interval is a percentile bootstrap over units (Efron and Tibshirani, 1993). The p-value is
    that of the paired permutation test of the mean: how often is it as far from 0 when the systems
    are exchanged on units drawn at random? For right and wrong that is McNemar's exact test.

    Args:
        a: the first system's value between 0 and 1 for each unit.
        b: the second system's, in the same order.
        resamples: how many bootstrap resamples.
        seed: of the resamples.

    Raises:
        ValueError: if there are fewer than two units, or not as many of each, or a value is not
            between 0 and 1.
    """
    import numpy as np
    from scipy import stats

    first, second = _pairs(a, b)
    if first.size < 2:
        raise ValueError("fewer than two units cannot be resampled")
    if not all(((values >= 0) & (values <= 1)).all() for values in (first, second)):
        raise ValueError("the values to compare must lie between 0 and 1")
    differences = second - first
    differences[abs(differences) < TIE] = 0  # of equal means over seeds only rounding is left
    a_higher, b_higher = int((differences < 0).sum()), int((differences > 0).sum())
    low, high = stats.bootstrap(
        (differences,),  # resampling pairs and resampling their differences is the same
        np.mean,
        n_resamples=resamples,
        batch=100,  # keeps memory at 100 x n values
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return PairedComparison(
        a=100 * float(first.mean()),
        b=100 * float(second.mean()),
        interval=(100 * float(low), 100 * float(high)),
        a_higher=a_higher,
        b_higher=b_higher,
        n=first.size,
        p_value=_p_value(differences[differences != 0]),
    )


def _pairs(
    a: Sequence[float], b: Sequence[float]
) -> tuple["NDArray[np.float64]", "NDArray[np.float64]"]:
    """Both systems' values; a ValueError if there are not as many of each."""
    import numpy as np

    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"{len(first)} and {len(second)} values are not pairs")
    return first, second


def _p_value(differences: "NDArray[np.float64]") -> float:
    """Of the permutation test that turns the signs of differences, of which none is 0; of many
    that are not equally large 10,000 permutations are drawn."""
    import numpy as np
    from scipy import stats

    higher, n = int((differences > 0).sum()), len(differences)
    if not n:
        return 1.0
    if np.ptp(abs(differences)) < TIE:
        return float(stats.binomtest(higher, n).pvalue)
    found = stats.permutation_test(
        (differences, np.zeros(n)),
        # rounded, or equal means may count as unequal
        lambda x, y, axis: np.round(np.mean(x - y, axis=axis), 9),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES["ar"],
        batch=100,
        rng=np.random.default_rng(1),
    )
    return float(found.pvalue)


def relative_change(a: Sequence[float], b: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The change of the mean from ``a`` to ``b`` on the same units, in percent, and its 95%
    confidence interval, by a paired percentile bootstrap.

    Args:
        a: the first system's value for each unit; not all may be 0.
        b: the second system's, in the same order.

    Raises:
        ValueError: if there are not as many of each, or all of ``a`` are 0.
    """
    import numpy as np

    first, second = _pairs(a, b)
    if not first.any():
        raise ValueError("there is no relative change from 0")
    drawn = np.random.default_rng(12345).integers(first.size, size=(RESAMPLES["bs"], first.size))
    before, after = first[drawn].sum(axis=1), second[drawn].sum(axis=1)
    some = before > 0  # from nothing there is no relative change
    low, high = np.percentile(100 * (after[some] / before[some] - 1), (2.5, 97.5))
    return 100 * float(second.sum() / first.sum() - 1), (float(low), float(high))


@dataclass(frozen=True)
class BleuComparison:
    """sacreBLEU's paired test of two systems.

    Args:
        a: BLEU or chrF of the first system.
        b: that of the second system.
        a_interval: half the width of the first's 95% confidence interval; None for ``ar``.
        b_interval: the same of the second.
        p_value: of the hypothesis that both are equally good.
        signature: how it was counted; ends in sacreBLEU's own.
    """

    a: float
    b: float
    a_interval: float | None
    b_interval: float | None
    p_value: float
    signature: str


def compare_bleu(
    a: Sequence[str],
    b: Sequence[str],
    references: Sequence[str],
    options: BleuOptions,
    test: str = "bs",
    resamples: int | None = None,
    seed: int = 12345,
) -> BleuComparison:
    """Compare two systems by BLEU or chrF, through sacreBLEU's ``PairedTest``.

    Args:
        a: the first system's sentences.
        b: the second system's.
        references: the references; all three are detokenized here.
        options: how the score is counted.
        test: ``bs``, paired bootstrap (Koehn, 2004), or ``ar``, approximate randomization
            (Riezler and Maxwell, 2005).
        resamples: how many resamples or trials; by default sacreBLEU's 1,000 or 10,000.
        seed: of the resamples, at least 1: sacreBLEU takes 0 for no seed.

    Raises:
        ValueError: if the lengths differ, there are fewer than two sentences, the test is none of
            these, or the seed is not positive.
    """
    import numpy as np
    from sacrebleu.significance import PairedTest, Result

    def p_value(resampled: "NDArray[np.float64]", difference: float) -> float:
        """As sacreBLEU's, which counts larger differences alone: with few unlike sentences most
        trials of ``ar`` give the very same one."""
        return float((np.sum(resampled >= difference - TIE) + 1) / (len(resampled) + 1))

    if not len(a) == len(b) == len(references):
        raise ValueError(f"{len(a)}, {len(b)} and {len(references)} sentences are not pairs")
    if len(references) < 2:
        raise ValueError("fewer than two units cannot be resampled")
    if test not in BLEU_TESTS:
        raise ValueError(f"the test is one of {', '.join(BLEU_TESTS)}, not {test!r}")
    resamples = resamples or RESAMPLES[test]
    if resamples * len(references) > MOST_DRAWN:
        raise ValueError(
            f"--resamples {resamples} of {len(references)} sentences don't fit into memory: "
            f"at most {MOST_DRAWN // len(references)}"
        )
    if seed < 1:
        raise ValueError(f"the seed must be at least 1, not {seed}")
    texts = plain_text(a, options), plain_text(b, options)
    with (
        mock.patch.dict(os.environ, SACREBLEU_SEED=str(seed)),  # it is read from nowhere else
        mock.patch("sacrebleu.significance._compute_p_value", p_value),
    ):
        paired = PairedTest(
            list(zip("ab", texts, strict=True)),
            {options.score: options.metric()},
            [plain_text(references, options)],
            test_type=test,
            n_samples=resamples,
        )
        signatures, scores = paired()
    (name,) = signatures
    first, second = (result for result in scores[name] if isinstance(result, Result))
    assert second.p_value is not None  # only the first system, the baseline, has none
    return BleuComparison(
        a=float(first.score),  # some are NumPy's, which JSON cannot hold
        b=float(second.score),
        a_interval=None if first.ci is None else float(first.ci),
        b_interval=None if second.ci is None else float(second.ci),
        p_value=float(second.p_value),
        signature=f"{options.describe()}|n:{len(references)}|{signatures[name]}",
    )
