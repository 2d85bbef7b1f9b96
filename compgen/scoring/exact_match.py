"""Exact match: how many whole sentences equal their reference, case and all."""

from collections.abc import Sequence
from dataclasses import dataclass


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
