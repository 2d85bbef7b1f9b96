"""What a run made of each test sentence, from the log that its scores were counted on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compgen.reporting.runs import DATA, Run, ScoreName
from compgen.reporting.verdicts import unpack
from compgen.scoring.bleu import SCORES, BleuOptions
from compgen.scoring.generate_log import read
from compgen.scoring.metrics import BleuMetric, CogsMetric, CterMetric, ExactMatchMetric, Metric

TOLERANCE = 0.01  # in percentage points, between a score's file and its log
COGS, CTER = "cogs", "cter"


class NoOutcomes(ValueError):
    """There is no value for each sentence; the message says why."""


class BrokenLog(NoOutcomes):
    """The log is there, and cannot be read or gives another score than the file beside it."""


@dataclass(frozen=True)
class Outcomes:
    """A run's values of one score, unit by unit.

    Args:
        sources: what the system was given, to see that two are about the same.
        values: between 0 and 1 for each sentence, or each compound for CTER; none for BLEU and
            chrF.
        hypotheses, references: for BLEU and chrF, which have no value for a sentence.
        options: for them, how they were counted.
    """

    sources: Sequence[str]
    values: Sequence[float] = ()
    hypotheses: Sequence[str] = ()
    references: Sequence[str] = ()
    options: BleuOptions | None = None


def outcomes(run: Run, score: ScoreName) -> Outcomes:
    """Read the log behind a score, or what a result keeps of it.

    Raises:
        NoOutcomes: if the log or a file of the data is missing or unfit, if the log gives another
            score than the run's file, or if the score is an average of averages.
    """
    if run.path.is_file():
        return _kept(run, score)
    said = run.scores[score]
    subset = said.file.name.partition(".")[0]
    reference = said.options.get("reference")
    if subset == score.metric:  # the metric's own file
        subset = Path(reference).stem if reference else "test"
    try:
        metric = _metric(run, score.metric, subset, dict(said.options))
        file = said.file.with_name(f"{subset}.{score.checkpoint}.log")
        if not file.exists():
            raise NoOutcomes(f"{file}: No such file or directory")
        try:
            log = read(file)
        except ValueError as error:
            raise BrokenLog(str(error)) from None
        if isinstance(metric, BleuMetric):
            _agree(run, score, metric.score(log).numbers["score"])
            return Outcomes(log.sources, (), log.hypotheses, metric.references(log), metric.how)
        values = metric.values(log).get(score.number)
    except NoOutcomes:
        raise
    except (ValueError, OSError, TypeError) as error:
        raise NoOutcomes(str(error)) from None
    if values is None:
        raise NoOutcomes(f"{score.name} has no value for a sentence")
    return _checked(run, score, log.sources, values)


def _metric(run: Run, name: str, subset: str, options: dict[str, Any]) -> Metric:
    """The metric that a score is by, with the files of the run's data."""
    named = options.pop("reference", None)
    reference = run.data / "raw" / named if named else None
    if name == "exact_match":
        return ExactMatchMetric(reference)
    if name == COGS:
        return CogsMetric(run.data / "cases" / f"{subset}.case", reference)
    if name == CTER:
        folder = run.data / "cter"
        return CterMetric(folder / f"{subset}.compound", folder / "lexicon", **options)
    if name in SCORES:
        return BleuMetric(BleuOptions(score=name, **options), reference)
    raise ValueError(f"{name} has no value for a sentence")


def _kept(run: Run, score: ScoreName) -> Outcomes:
    """What a result keeps: values for some scores of the chosen checkpoint."""
    kept = run.record["verdicts"] if score.checkpoint == "best" else {}
    name = score.name
    if name not in kept:
        name = name.replace("cter aggregate", "cter instance")
    verdicts = kept.get(name)
    if verdicts is None:
        of = "chosen" if score.checkpoint == "best" else "last"
        raise NoOutcomes(
            f"{run.path} does not keep {score.name} of each sentence for the {of} checkpoint"
        )
    try:
        values = unpack(verdicts["bits"], verdicts["of"])
    except (ValueError, LookupError, TypeError) as error:
        raise NoOutcomes(f"{run.path}: its verdicts cannot be read ({error})") from None
    if name != score.name:
        values = [float(value > 0) for value in values]
    return _checked(run, score, [f"{run.settings[DATA]} {i}" for i in range(len(values))], values)


def _checked(run: Run, score: ScoreName, sources: Sequence[str], values: list[float]) -> Outcomes:
    if not values:
        raise NoOutcomes(f"the log of {run.path} has no sentences of {score.name}")
    _agree(run, score, 100 * sum(values) / len(values))
    return Outcomes(sources, values)


def _agree(run: Run, score: ScoreName, found: float) -> None:
    """Refuse a log that is not the one that was scored."""
    said = run.scores[score]
    if abs(found - said.value) > TOLERANCE:
        raise BrokenLog(
            f"{said.file} says {said.value:.2f} but the log beside it gives {found:.2f}; "
            "evaluate the run again"
        )
