"""COGS: exact match for each of its generalization cases (Kim and Linzen, 2020)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from compgen.scoring.exact_match import ExactMatch
from compgen.text import read_lines

# Section 3.2 and 3.3 of the COGS paper: known words in a new or deeper structure.
STRUCTURAL = ("obj_pp_to_subj_pp", "cp_recursion", "pp_recursion")
# Sections 3.1, 3.4 and 3.5: a known structure with a word that was not seen in that place.
LEXICAL = tuple(
    (
        "subj_to_obj_common subj_to_obj_proper obj_to_subj_common obj_to_subj_proper "
        "prim_to_subj_common prim_to_subj_proper prim_to_obj_common prim_to_obj_proper "
        "prim_to_inf_arg active_to_passive passive_to_active obj_omitted_transitive_to_transitive "
        "unacc_to_transitive do_dative_to_pp_dative pp_dative_to_do_dative "
        "only_seen_as_transitive_subj_as_unacc_subj "
        "only_seen_as_unacc_subj_as_obj_omitted_transitive_subj "
        "only_seen_as_unacc_subj_as_unerg_subj"
    ).split()
)
CASES = (*LEXICAL, *STRUCTURAL)
IN_DISTRIBUTION = "in_distribution"


@dataclass(frozen=True)
class CogsScore:
    """Exact match by case.

    Args:
        cases: the score of each generalization case that has sentences, in the order of ``CASES``;
            cases of one's own come last.
        in_distribution: the score of the sentences marked ``in_distribution``; they are part of
            no average below.
    """

    cases: dict[str, ExactMatch]
    in_distribution: ExactMatch

    @property
    def overall(self) -> ExactMatch:
        """All generalization sentences, each of the same weight: the number papers report."""
        scores = self.cases.values()
        return ExactMatch(sum(s.correct for s in scores), sum(s.total for s in scores))

    def average(self, names: Collection[str] | None = None) -> float | None:
        """The mean percentage of the named cases, or all, each of the same weight; None without."""
        names = self.cases if names is None else names
        percents = [score.percent for name, score in self.cases.items() if name in names]
        return sum(percents) / len(percents) if percents else None

    def __str__(self) -> str:
        width = max(map(len, (*self.cases, IN_DISTRIBUTION)))
        lines = [f"{name:{width}} {_row(score)}" for name, score in self.cases.items()]
        for name, names in (("lexical", LEXICAL), ("structural", STRUCTURAL), ("macro", None)):
            mean = self.average(names)
            lines.append(f"{name:{width}} {'-' if mean is None else f'{mean:.2f}':>6}")
        if self.in_distribution.total:
            lines.append(f"{IN_DISTRIBUTION:{width}} {_row(self.in_distribution)}")
        return "\n".join([*lines, f"{'overall':{width}} {_row(self.overall)}"])


def _row(score: ExactMatch) -> str:
    return f"{score.percent:6.2f} ({score.correct} / {score.total})"


def cogs(hypotheses: Sequence[str], references: Sequence[str], cases: Sequence[str]) -> CogsScore:
    """Count exact matches by generalization case.

    Args:
        hypotheses: one logical form each.
        references: one logical form each, in the same order.
        cases: the name of each sentence's case, in the same order; one that is none of COGS's is
            part of neither the lexical nor the structural average.
    """
    right: dict[str, list[bool]] = {case: [] for case in (*CASES, *cases, IN_DISTRIBUTION)}
    for hypothesis, reference, case in zip(hypotheses, references, cases, strict=True):
        right[case].append(hypothesis == reference)
    scores = {case: ExactMatch(sum(found), len(found)) for case, found in right.items()}
    rest = scores.pop(IN_DISTRIBUTION)
    return CogsScore({case: one for case, one in scores.items() if one.total}, rest)


def read_cases(path: Path | str, n: int) -> list[str]:
    """Read the name of each sentence's case: COGS's, the third column of its files, or one's own.

    Raises:
        ValueError: if the file cannot be read or has not ``n`` lines, one has no name, or COGS's
            cases stand beside others.
    """
    cases = [name.strip() for name in read_lines(path, n)]
    if "" in cases:
        raise ValueError(f"{path}, line {cases.index('') + 1}: it names no case")
    if not set(CASES).isdisjoint(cases):
        for number, name in enumerate(cases, start=1):
            if name not in (*CASES, IN_DISTRIBUTION):
                raise ValueError(
                    f"{path}, line {number}: {name!r} is not a generalization case of COGS, as the "
                    "others are"
                )
    return cases
