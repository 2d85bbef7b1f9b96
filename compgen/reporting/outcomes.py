"""What a run made of each test sentence, from the log that its scores were counted on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compgen.reporting.runs import DATA, Run, ScoreName
from compgen.reporting.verdicts import unpack
from compgen.scoring import cter_rules, generate_log
from compgen.scoring.bleu import BleuOptions, bleu
from compgen.text import read_lines

TOLERANCE = 0.01  # in percentage points, between a score's file and its log
EXACT, BLEU, CHRF, COGS, CTER = "exact_match", "bleu", "chrf", "cogs", "cter"
IN_DISTRIBUTION = "in_distribution"  # COGS: not part of its score


class NoOutcomes(ValueError):
    """There is no value for each sentence; the message says why."""


@dataclass(frozen=True)
class Outcomes:
    """A run's values of one score, unit by unit.

    Args:
        sources: what the system was given, to see that two are about the same.
        values: between 0 and 1 for each sentence, or each group of five for CTER; none for BLEU
            and chrF.
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
    metric, _, number = score.name.partition(" (")[0].partition(" ")
    if metric not in READERS or (metric == COGS and number):
        raise NoOutcomes(f"{score.name} has no value for a sentence")
    file = run.scores[score].file
    stamp = dict(
        part.partition(":")[::2] for part in run.scores[score].signature.split("|") if ":" in part
    )
    subset = file.name.partition(".")[0]
    if (
        subset == metric
    ):  # the metric's own file; BLEU's and chrF's name their references: raw/test1.fr
        named = stamp.get("ref", "log") if metric in (BLEU, CHRF) else "log"
        subset = "test" if named == "log" else Path(named).stem
    try:
        log = generate_log.read(file.with_name(f"{subset}.{score.checkpoint}.log"))
        return READERS[metric](run, score, log, subset, stamp)
    except (ValueError, OSError) as error:
        raise NoOutcomes(str(error)) from None


def _kept(run: Run, score: ScoreName) -> Outcomes:
    """What a result keeps: values for some scores of the chosen checkpoint."""
    name = score.name.replace("cter aggregate", "cter instance")
    verdicts = run.record["verdicts"].get(name) if score.checkpoint == "best" else None
    if verdicts is None:
        raise NoOutcomes(f"{run.path} does not keep {score.name} of each sentence")
    try:
        values = unpack(verdicts["bits"], verdicts["of"])
    except (ValueError, LookupError, TypeError) as error:
        raise NoOutcomes(f"{run.path}: its verdicts cannot be read ({error})") from None
    if name != score.name:
        values = [float(value > 0) for value in values]
    return _checked(run, score, [f"{run.settings[DATA]} {i}" for i in range(len(values))], values)


def _exact(run, score, log, subset, stamp) -> Outcomes:
    references = _references(run, log, stamp)
    right = [float(h == r) for h, r in zip(log.hypotheses, references, strict=True)]
    return _checked(run, score, log.sources, right)


def _cogs(run, score, log, subset, stamp) -> Outcomes:
    cases = read_lines(run.data / "cases" / f"{subset}.case", len(log.sources))
    counted = [i for i, case in enumerate(cases) if case != IN_DISTRIBUTION]
    right = [float(log.hypotheses[i] == log.targets[i]) for i in counted]
    return _checked(run, score, [log.sources[i] for i in counted], right)


def _cter(run, score, log, subset, stamp) -> Outcomes:
    folder = run.data / "cter"
    rules = cter_rules.load(folder / "lexicon", strict=stamp.get("rules") == "strict")
    compounds = rules.read_compounds(folder / f"{subset}.compound")
    groups = rules.wrong(log.sources, compounds, log.hypotheses)
    aggregate = "aggregate" in score.name
    values = [float(any(g)) if aggregate else sum(g) / len(g) for g in groups]
    return _checked(run, score, log.sources, values)


def _bleu(run, score, log, subset, stamp) -> Outcomes:
    name, _, language = stamp.get("detok", "none").partition(".")
    lowercase = stamp["case"] == "lc"
    options = BleuOptions(
        stamp.get("tok", "13a"), name, language or "en", lowercase, stamp["metric"]
    )
    references = _references(run, log, stamp)
    _agree(run, score, bleu(log.hypotheses, references, options)[0].score)
    return Outcomes(log.sources, (), log.hypotheses, references, options)


READERS = {EXACT: _exact, COGS: _cogs, CTER: _cter, BLEU: _bleu, CHRF: _bleu}


def _references(run: Run, log: generate_log.Generation, stamp: dict[str, str]) -> list[str]:
    name = stamp.get("ref", "log")
    if name != "log":
        return read_lines(run.data / "raw" / name, len(log.sources))
    if not log.targets:
        raise NoOutcomes(f"the log of {run.path} has no references")
    return log.targets


def _checked(run: Run, score: ScoreName, sources: Sequence[str], values: list[float]) -> Outcomes:
    if not values:
        raise NoOutcomes(f"the log of {run.path} has no sentences of {score.name}")
    _agree(run, score, 100 * sum(values) / len(values))
    return Outcomes(sources, values)


def _agree(run: Run, score: ScoreName, found: float) -> None:
    """Refuse a log that is not the one that was scored."""
    said = run.scores[score]
    if abs(found - said.value) > TOLERANCE:
        raise NoOutcomes(
            f"{said.file} says {said.value:.2f} but the log beside it gives {found:.2f}; "
            "evaluate the run again"
        )
