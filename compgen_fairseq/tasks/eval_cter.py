"""CTER in validation: which compound a sentence has, and counts that can be summed."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset
from fairseq.logging import metrics
from torch import Tensor

from compgen.scoring import cter
from compgen.scoring.cter_rates import CTER

COUNTS = "_cter"


class CompoundDataset(BaseWrapperDataset):
    """A parallel corpus whose batches say which compounds they hold.

    A batch gets ``sample["compounds"]``, one string per sentence, and ``sample["groups"]``, the
    number of compounds of the whole corpus.

    Args:
        dataset: the parallel corpus to wrap.
        compounds: the compound of each sentence; five consecutive ones share it.

    Raises:
        ValueError: if there are not as many compounds as sentences.
    """

    def __init__(self, dataset: FairseqDataset, compounds: Sequence[str]) -> None:
        super().__init__(dataset)
        if len(compounds) != len(dataset):
            raise ValueError(f"{len(compounds)} compounds for {len(dataset)} sentences")
        self.compounds = compounds

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super().collater(samples)
        if batch:
            batch["compounds"] = [self.compounds[i] for i in batch["id"].tolist()]
            batch["groups"] = len(self.compounds) // cter.GROUP
        return batch


def counts(sample: dict[str, Any], hypotheses: Sequence[str], lexicon: cter.Lexicon) -> Tensor:
    """For each compound of the corpus, the lines in this batch and how many of them are wrong.

    Args:
        sample: a batch of a :class:`CompoundDataset`.
        hypotheses: its translations.
        lexicon: the translations of the atoms.

    Returns:
        shape ``(2, compounds)``; bytes, because workers send these to each other.
    """
    counted = torch.zeros(2, sample["groups"], dtype=torch.uint8)
    for i, compound, text in zip(
        sample["id"].tolist(), sample["compounds"], hypotheses, strict=True
    ):
        line = cter.Line("", compound, text, cter.parse(compound))
        counted[0, i // cter.GROUP] += 1
        counted[1, i // cter.GROUP] += bool(cter.judge(line, lexicon))
    return counted


def reduce(logging_outputs: Sequence[dict[str, Any]]) -> None:
    """Log ``cter_instance`` and ``cter_aggregate`` from the counts of all batches and workers."""
    found = [log[COUNTS].cpu().long() for log in logging_outputs if COUNTS in log]
    if not found:
        return
    metrics.log_scalar_sum(COUNTS, sum(found))
    for name in ("instance", "aggregate"):
        metrics.log_derived(f"cter_{name}", partial(_percent, name=name))


def _percent(meters: Any, name: str) -> float:
    lines, wrong = meters[COUNTS].sum
    score = CTER(int(wrong.sum()), int(lines.sum()), int((wrong > 0).sum()), int((lines > 0).sum()))
    return getattr(score, name)
