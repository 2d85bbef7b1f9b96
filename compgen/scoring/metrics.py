"""Exact match, COGS, BLEU, chrF and CTER behind one interface, after sacreBLEU's.

A metric holds all that its scores depend on, and gives a system's output a score.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compgen.scoring import cter, cter_rules
from compgen.scoring.bleu import BleuOptions, bleu
from compgen.scoring.cogs import IN_DISTRIBUTION, LEXICAL, STRUCTURAL, cogs, read_cases
from compgen.scoring.cter_rates import Judged, groups, rates, table
from compgen.scoring.exact_match import ExactMatch, exact_match, warn_of_lost_matches
from compgen.scoring.generate_log import Generation
from compgen.scoring.signature import signature

File = Path | str
Values = dict[str, list[float]]


@dataclass(frozen=True)
class Score:
    """What a metric says of one system.

    Args:
        text: for people to read.
        numbers: percentages and counts by name, as JSON has them.
        signature: how they were counted, in sacreBLEU's form.
    """

    text: str
    numbers: dict[str, Any]
    signature: str


class Metric(ABC):
    """A way to score.

    Args:
        name: what ``--metric`` calls it.
        reference: a file with the references; by default they are the log's.
        options: what else was chosen, as JSON has it.
    """

    def __init__(self, name: str, reference: File | None = None, **options: Any) -> None:
        self.name, self.reference = name, reference
        self.about = {"ref": Path(reference).name} if reference else {}
        self.options = options | ({"reference": self.about["ref"]} if reference else {})

    @abstractmethod
    def score(self, system: Generation) -> Score:
        """Score a system.

        Raises:
            ValueError: if a file cannot be read or is not about the same sentences.
        """

    def values(self, system: Generation) -> Values:
        """For each number of the score that is a mean: the values it is the mean of, from 0 to 1.

        There is one for each sentence, or one for all sentences that share a compound.

        Raises:
            ValueError: as :meth:`score`, or if no number is such a mean.
        """
        raise ValueError(f"{self.name} has no value for a sentence")

    def signature(self, n: int, **settings: str) -> str:
        """The signature of a score of ``n`` sentences, or of a test."""
        return signature(self.name, n, **self.about, **settings)


class ExactMatchMetric(Metric):
    """How many sentences equal their reference."""

    def __init__(self, reference: File | None = None) -> None:
        super().__init__("exact_match", reference)

    def score(self, system: Generation) -> Score:
        references = system.references(self.reference, alike=True)
        found = exact_match(system.hypotheses, references)
        warn_of_lost_matches(system.hypotheses, references)
        return Score(str(found), _numbers(found), self.signature(found.total))

    def values(self, system: Generation) -> Values:
        pairs = zip(system.hypotheses, system.references(self.reference, alike=True), strict=True)
        return {"score": [float(hypothesis == reference) for hypothesis, reference in pairs]}


class CogsMetric(Metric):
    """Exact match by generalization case; ``cases`` is a file with the case of each sentence."""

    def __init__(self, cases: File, reference: File | None = None) -> None:
        super().__init__("cogs", reference)
        self.cases = cases

    def score(self, system: Generation) -> Score:
        cases = read_cases(self.cases, len(system.hypotheses))
        references = system.references(self.reference, alike=True)
        found = cogs(system.hypotheses, references, cases)
        warn_of_lost_matches(system.hypotheses, references)
        if not found.cases:
            raise ValueError(f"{self.cases} names no generalization case: --metric exact_match")
        numbers = {
            **_numbers(found.overall),
            "macro": found.average(),
            "lexical": found.average(LEXICAL),
            "structural": found.average(STRUCTURAL),
            "cases": {case: _numbers(score) for case, score in found.cases.items()},
        }
        if found.in_distribution.total:
            numbers["in_distribution"] = _numbers(found.in_distribution)
        stamp = self.signature(found.overall.total, cases=str(len(found.cases)))
        return Score(str(found), numbers, stamp)

    def values(self, system: Generation) -> Values:
        cases = read_cases(self.cases, len(system.hypotheses))
        right = ExactMatchMetric(self.reference).values(system)["score"]
        counted = zip(right, cases, strict=True)
        return {"score": [value for value, case in counted if case != IN_DISTRIBUTION]}


class BleuMetric(Metric):
    """BLEU or chrF through sacreBLEU; ``how`` it is counted."""

    def __init__(self, how: BleuOptions, reference: File | None = None) -> None:
        options = {name: value for name, value in asdict(how).items() if name != "score"}
        super().__init__(how.score, reference, **options)
        self.how = how

    def score(self, system: Generation) -> Score:
        from sacrebleu.metrics.bleu import BLEUScore  # takes its time

        references = self.references(system)
        found, stamp = bleu(system.hypotheses, references, self.how)
        numbers: dict[str, Any] = {"score": found.score, "total": len(references)}
        if isinstance(found, BLEUScore):
            numbers |= {"precisions": found.precisions, "brevity_penalty": found.bp}
        return Score(str(found), numbers, self.stamped(stamp))

    def references(self, system: Generation) -> list[str]:
        """The references; a word that the dictionary does not have (``<<unk>>``) is never matched.

        sacreBLEU would find an output's ``<unk>`` within it.
        """
        return [line.replace("<<unk>>", "⁇") for line in system.references(self.reference)]

    def stamped(self, stamp: str) -> str:
        """sacreBLEU's signature, behind the name and where the references are from."""
        return f"metric:{self.name}|ref:{self.about.get('ref', 'log')}|{stamp}"


class CterMetric(Metric):
    """The compound translation error rate.

    Args:
        compound: a file with the compound of each sentence.
        lexicon: the translations of the atoms, CoGnition's or own ones.
        strict: judge by the strict rules.
    """

    def __init__(self, compound: File, lexicon: File, strict: bool = False) -> None:
        super().__init__("cter", None, **({"strict": True} if strict else {}))
        self.rules = cter_rules.load(lexicon, strict)
        self.file, self.compounds = compound, self.rules.read_compounds(compound)
        self.about = {"rules": self.rules.name, "lexicon": cter.fingerprint(self.rules.lexicon)}

    def judge(self, system: Generation) -> Judged:
        """The verdict on each line.

        Raises:
            ValueError: as :func:`compgen.scoring.cter.align`.
        """
        try:
            lines = cter.align(system.sources, self.compounds, system.hypotheses, self.rules.parse)
        except ValueError as error:
            raise ValueError(f"{system.path} and {self.file}: {error}") from None
        return Judged(lines, list(map(self.rules.judge, lines)), self.rules.group_of(lines))

    def score(self, system: Generation) -> Score:
        return self.score_of(self.judge(system))

    def score_of(self, judged: Judged) -> Score:
        """The score of what :meth:`judge` gave."""
        total = rates(judged.wrong, None, judged.group_of)
        found = groups(judged.lines, judged.wrong, judged.group_of, self.rules.groupings)
        parts = {
            name: {key: rate.numbers for key, rate in members.items()}
            for name, members in found.items()
        }
        numbers = {**total.numbers, "groups": parts}
        return Score(table(total, found), numbers, self.signature(total.n))

    def values(self, system: Generation) -> Values:
        """As :meth:`Metric.values`: of each compound. The instance rate is a mean over compounds
        only if all have the same number of lines; else it has no values."""
        shared = self.judge(system).by_compound()
        equal = len(set(map(len, shared))) == 1
        instance = {"instance": [sum(wrong) / len(wrong) for wrong in shared]} if equal else {}
        return {**instance, "aggregate": [float(any(wrong)) for wrong in shared]}


def _numbers(score: ExactMatch) -> dict[str, Any]:
    return {"score": score.percent, "correct": score.correct, "total": score.total}
