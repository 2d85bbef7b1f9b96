"""Exact match: how many whole sentences equal their reference, case and all."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExactMatch:
    """The score of some sentences.

    Args:
        correct: how many sentences equal their reference.
        total: how many sentences were compared.
    """

    correct: int
    total: int

    @property
    def percent(self) -> float:
        """100 * correct / total; 0 when nothing was compared."""
        return 100.0 * self.correct / self.total if self.total else 0.0

    def __str__(self) -> str:
        return f"ExactMatch = {self.percent:.2f} ({self.correct} / {self.total})"


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> ExactMatch:
    """Compare sentences as strings, case-sensitively.

    fairseq writes an unknown word as ``<unk>`` in a hypothesis and as ``<<unk>>`` in a reference,
    so two unknown words never match.

    Args:
        hypotheses: one sentence each.
        references: one sentence each, in the same order.
    """
    correct = sum(h == r for h, r in zip(hypotheses, references, strict=True))
    return ExactMatch(correct, len(hypotheses))


def warn_of_lost_matches(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Warn of references with unknown words, and if most wrong hypotheses are beginnings of theirs.

    fairseq ends a search once as many hypotheses as the beam is wide have ended, however unlikely
    they are, and at ``--max-len-b``.

    Args:
        hypotheses: one sentence each.
        references: one sentence each, in the same order.
    """
    if unknown := sum("<<unk>>" in words for words in references):
        logger.warning(
            "%d of %d references have words that the dictionary lacks, so no output can match them",
            unknown,
            len(references),
        )
    wrong = [pair for pair in zip(hypotheses, references, strict=True) if pair[0] != pair[1]]
    cut = sum(reference.startswith(f"{words} ".lstrip()) for words, reference in wrong)
    if 2 * cut > len(wrong):
        logger.warning(
            "%d of %d wrong sentences are beginnings of their references: the model ends too soon, "
            "or the search did, by a --beam above 1 or by --max-len-b",
            cut,
            len(wrong),
        )
