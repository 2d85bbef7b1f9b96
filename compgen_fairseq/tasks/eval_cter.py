"""CTER in validation: which compound a sentence has, and counts that can be summed."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset
from fairseq.logging import metrics
from torch import Tensor

from compgen.scoring.cter import Line, Rules
from compgen.scoring.cter_rates import CTER

COUNTS = "_cter"


class CompoundDataset(BaseWrapperDataset):
    """A parallel corpus whose batches say which compounds they hold.

    A batch gets ``sample["compounds"]``, one string per sentence, ``sample["groups"]``, the numbers
    of the compounds that they are, and ``sample["all_groups"]``, how many the whole corpus has.

    Args:
        dataset: the parallel corpus to wrap.
        compounds: the compound of each sentence.
        rules: which of them are one, as CoGnition's of five consecutive sentences.

    Raises:
        ValueError: if there are not as many compounds as sentences.
    """

    def __init__(self, dataset: FairseqDataset, compounds: Sequence[str], rules: Rules) -> None:
        super().__init__(dataset)
        if len(compounds) != len(dataset):
            raise ValueError(f"{len(compounds)} compounds for {len(dataset)} sentences")
        self.compounds = compounds
        group_of = rules.group_of([Line("", compound, "", {}) for compound in compounds])
        numbers: dict[Hashable, int] = {}
        self.groups = [numbers.setdefault(group_of(i), len(numbers)) for i in range(len(compounds))]
        self.all_groups = len(numbers)

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super().collater(samples)
        if batch:
            ids = batch["id"].tolist()
            batch["compounds"] = [self.compounds[i] for i in ids]
            batch["groups"] = [self.groups[i] for i in ids]
            batch["all_groups"] = self.all_groups
        return batch


def counts(sample: dict[str, Any], hypotheses: Sequence[str], rules: Rules) -> Tensor:
    """For each compound of the corpus, the lines in this batch and how many of them are wrong.

    Returns:
        shape ``(2, compounds)``; 16 bits each, because workers send these to each other.
    """
    counted = torch.zeros(2, sample["all_groups"], dtype=torch.int16)
    for group, compound, text in zip(
        sample["groups"], sample["compounds"], hypotheses, strict=True
    ):
        counted[0, group] += 1
        line = Line("", compound, text, rules.parse(compound))
        counted[1, group] += bool(rules.judge(line))
    return counted


def reduce(logging_outputs: Sequence[dict[str, Any]]) -> None:
    """Log ``cter_instance`` and ``cter_aggregate`` from the counts of all batches and workers."""
    found = [log[COUNTS].cpu().long() for log in logging_outputs if COUNTS in log]
    if not found:
        return
    meter = f"{COUNTS}_{found[0].size(1)}"  # fairseq adds up those of all subsets, too
    metrics.log_scalar_sum(meter, sum(found))
    for name in ("instance", "aggregate"):
        metrics.log_derived(f"cter_{name}", partial(_percent, meter=meter, name=name))


def _percent(meters: Any, meter: str, name: str) -> float:
    lines, wrong = meters[meter].sum
    score = CTER(int(wrong.sum()), int(lines.sum()), int((wrong > 0).sum()), int((lines > 0).sum()))
    return getattr(score, name)
