"""Tests of each row of a report against one of them, the baseline.

Two questions are kept apart. *Over sentences*: would these trained models differ on other
sentences of this kind? *Over seeds*: would models trained with other seeds differ on these
sentences? A small p-value of the one says nothing about the other.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compgen.reporting.outcomes import NoOutcomes, Outcomes, outcomes
from compgen.reporting.report import Report, Row
from compgen.reporting.runs import Run, ScoreName

Read = Callable[[Run, ScoreName], Outcomes]

LEVEL = 0.05
SENTENCES, SEEDS = "*", "†"  # the marks
METHOD = (  # the marks, and what is said of them below a table of the tests
    (
        SENTENCES,
        f"over sentences, p < {LEVEL}: the trained models differ on the test sentences by more "
        "than chance. A sentence's value is its mean over the row's seeds. The test is the "
        "two-sided paired permutation test of the mean, exact or with 10,000 permutations "
        "(McNemar's exact test where each row has one seed), for CTER on the groups of lines that "
        "share a compound; the interval is a 95% percentile bootstrap over the same units, 1,000 "
        "resamples. BLEU has no value for a sentence: there the runs whose score is the median of "
        "their row (the lower one of two) are compared by sacreBLEU's paired bootstrap.",
    ),
    (
        SEEDS,
        f"over seeds, p < {LEVEL}: the seeds' scores differ by more than they do when the same "
        "runs are divided into two rows at random (permutation test of the difference of means, "
        "two-sided, exact up to 10,000 divisions). With four seeds in each row its smallest "
        "p-value is 0.029, with three 0.1.",
    ),
    ("", "No p-value is corrected for the number of comparisons."),
)


@dataclass(frozen=True)
class Comparison:
    """One score of one row beside the baseline's.

    Args:
        label: the row.
        score: the score.
        difference: the row's mean minus the baseline's.
        interval: its 95% confidence interval over sentences; None for BLEU and without logs.
        p_sentences: p-value over sentences; None without logs.
        p_seeds: p-value over seeds; None where a row has a single one.
        untested: why there is no p-value over sentences.
    """

    label: str
    score: ScoreName
    difference: float
    interval: tuple[float, float] | None = None
    p_sentences: float | None = None
    p_seeds: float | None = None
    untested: str = ""

    @property
    def marks(self) -> str:
        """The marks of the tests that say that the rows differ."""
        pairs = ((SENTENCES, self.p_sentences), (SEEDS, self.p_seeds))
        return "".join(mark for mark, p in pairs if p is not None and p < LEVEL)


@dataclass(frozen=True)
class Comparisons:
    """Every other row beside the baseline; with one row there are none."""

    baseline: str
    found: tuple[Comparison, ...] = ()

    def of(self, label: str, score: ScoreName) -> Comparison | None:
        """The comparison of one row and score."""
        pairs = (one for one in self.found if (one.label, one.score) == (label, score))
        return next(pairs, None)


def compare(report: Report, baseline: str | None = None) -> Comparisons:
    """Compare every row with the baseline, by every score that both have.

    Args:
        report: the rows.
        baseline: the label of the baseline; by default the first row that is a plain Transformer,
            or else the first row.

    Raises:
        ValueError: if there is no row of that label.
    """
    labels = [row.label for row in report.rows]
    if baseline is not None and baseline not in labels:
        raise ValueError(
            f"--baseline {baseline}: no row has this label; they are {', '.join(labels)}"
        )
    plain = next((row.label for row in report.rows if is_plain(row)), labels[0])
    first = report.rows[labels.index(baseline or plain)]
    read = functools.cache(outcomes)
    return Comparisons(
        first.label,
        tuple(
            _compare(first, row, score, read)
            for score in report.scores
            for row in report.rows
            if row is not first and row.summary(score) and first.summary(score)
        ),
    )


def is_plain(row: Row) -> bool:
    """Whether a row's model is a Transformer without anything of this package's methods."""
    settings = row.settings
    if "settings" in settings:  # a result, which is called by its METHOD, or METHOD-SETTING
        return row.runs[0].label.partition("-")[0] in ("plain", "transformer")
    if "model.attention" in settings:
        quantizer = settings.get("model.quantizer")
        return settings["model.attention"] == "plain" and quantizer in (None, "none")
    return str(settings.get("model._name", "")).partition("_")[0] == "transformer"


def _compare(first: Row, row: Row, score: ScoreName, read: Read) -> Comparison:
    a, b = ([run.scores[score].value for run in one.runs] for one in (first, row))
    difference = sum(b) / len(b) - sum(a) / len(a)
    p_seeds = over_seeds(a, b) if min(len(a), len(b)) > 1 else None
    try:
        interval, p_sentences = _over_sentences(first, row, score, read)
    except ValueError as error:  # NoOutcomes, or too few sentences or too many
        return Comparison(row.label, score, difference, None, None, p_seeds, str(error))
    return Comparison(row.label, score, difference, interval, p_sentences, p_seeds)


def over_seeds(a: list[float], b: list[float]) -> float:
    """The two-sided p-value of the permutation test of two rows' means; two runs each at least."""
    import numpy as np
    from scipy import stats

    if len({*a, *b}) == 1:
        return 1.0
    result = stats.permutation_test(
        (a, b),
        # rounded, or equal differences may count as unequal
        lambda x, y, axis: np.round(np.mean(x, axis=axis) - np.mean(y, axis=axis), 9),
        vectorized=True,
        n_resamples=10_000,
        rng=np.random.default_rng(1),
    )
    return float(result.pvalue)


def _over_sentences(
    first: Row, row: Row, score: ScoreName, read: Read
) -> tuple[tuple[float, float] | None, float]:
    """The interval of the difference, where there is one, and the p-value over sentences."""
    # imported here: a report of a single row, or without logs, starts at once
    from compgen.scoring.significance import compare_bleu, compare_paired

    a, b = ([read(run, score) for run in one.runs] for one in (first, row))
    for run, found in zip((*first.runs, *row.runs), (*a, *b), strict=True):
        if found.sources != a[0].sources:
            raise NoOutcomes(
                f"{first.runs[0].path} and {run.path} are not about the same sentences"
            )
    if not a[0].values:
        one, other = (_median(row, found, score) for row, found in ((first, a), (row, b)))
        if one.references != other.references or one.options is None:
            raise NoOutcomes(f"{first.label} and {row.label} have other references")
        tested = compare_bleu(one.hypotheses, other.hypotheses, one.references, one.options)
        return None, tested.p_value
    paired = compare_paired(pooled(a), pooled(b))
    return paired.interval, paired.p_value


def pooled(found: Sequence[Outcomes]) -> list[float]:
    """The value of each sentence, or group of them: the mean over the seeds."""
    return [sum(v) / len(v) for v in zip(*(one.values for one in found), strict=True)]


def _median(row: Row, found: list[Outcomes], score: ScoreName) -> Outcomes:
    """The outcomes of the run whose score is the median; the lower one of two."""
    by_run = zip(row.runs, found, strict=True)
    ordered = sorted(by_run, key=lambda pair: pair[0].scores[score].value)
    return ordered[(len(ordered) - 1) // 2][1]
