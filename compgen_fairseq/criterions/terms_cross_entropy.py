"""Cross-entropy plus weighted terms, each a mean over all workers' tokens."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.distributed.utils import get_global_world_size
from fairseq.logging import metrics
from torch import Tensor


@dataclass
class WeightedTerm:
    """A mean, ``total / number``, or a function of one, and its weight in the loss.

    What has no weight is only logged.
    """

    name: str
    weight: float
    total: Tensor
    number: Tensor
    function: Callable[[Tensor], Tensor] | None = None


def reduced(
    values: list[WeightedTerm], sample_size: Tensor, dummy: bool, distributed: bool
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Turn sums into means over all workers.

    fairseq adds the workers' gradients and divides by the sum of their sample sizes. A mean over
    all workers' tokens is therefore a worker's own sum, times the global sample size, over the
    global count. The entropy of a mean needs the global mean: its value comes from all workers,
    its gradient from the worker's own tokens, so that the sum of gradients is right.

    Args:
        values: the terms.
        sample_size: the worker's denominator, a scalar tensor.
        dummy: the batch only keeps the worker in step; it counts for nothing.
        distributed: add up over the workers (where there are several).

    Returns:
        what to add to the worker's summed word loss, the worker's share of the terms in the
        reported loss, and what to log.
    """
    # means with a weight first, then means that are only logged, then functions of means
    values = sorted(values, key=lambda v: (v.function is not None, not v.weight))
    means = [v.total.float() for v in values if v.function is None and v.weight]
    sums = [sample_size, *(v.number for v in values), *(v.total.detach() for v in values)]
    local = torch.cat([part.float().flatten() for part in sums]) * (not dummy)
    world = local
    if distributed and get_global_world_size() > 1:
        world = local.clone()
        torch.distributed.all_reduce(world)
    sizes = [1, len(values), *(v.total.numel() for v in values)]
    size, numbers, *totals = world.split(sizes)
    _, own_numbers, *own_totals = local.split(sizes)
    size, numbers = size.squeeze(0), numbers.clamp(min=1)
    loss = share = torch.zeros_like(size)
    if means:  # all at once: what costs a GPU time is to start an operation
        weights = torch.tensor([v.weight for v in values[: len(means)]])
        weights = weights.to(local.device, non_blocking=True) / numbers[: len(means)]
        # no product of vectors, which --amp would take in half precision
        loss = (weights * torch.stack(means)).sum(dtype=torch.float64).float()
        share = (weights * torch.cat(own_totals[: len(means)])).sum(dtype=torch.float64).float()
    log: dict[str, Tensor] = {}
    for v, number, total, own_number, own_total in zip(
        values, numbers, totals, own_numbers, own_totals, strict=True
    ):
        own_total = own_total.view_as(v.total)
        if v.function:
            total = total.view_as(v.total)
            if v.weight:
                total = v.total + (total - v.total).detach()
            value = v.function(total / number)
            own_total = value.detach() * own_number
            if v.weight:
                loss = loss + v.weight * value
                share = share + v.weight * own_total / number
        log[f"sum_{v.name}"], log[f"num_{v.name}"] = own_total, own_number
    return loss * size, share * size, log


def log_means(logging_outputs: Sequence[dict[str, Any]]) -> list[str]:
    """Log every term as the mean over what it was summed over; return the names."""
    totals: Counter[str] = Counter()
    for log in logging_outputs:
        names = [name for name in log if name[:4] in ("sum_", "num_")]
        if names:  # fetched together: a GPU would be waited for once for each
            values = torch.stack([torch.as_tensor(log[name]) for name in names]).tolist()
            totals.update(dict(zip(names, values, strict=True)))
    names = [key[4:] for key in sorted(totals) if key.startswith("num_") and totals[key] > 0]
    for name in names:
        number = totals[f"num_{name}"]
        metrics.log_scalar(name, totals[f"sum_{name}"] / number, number, round=4)
    return names


class TermsCrossEntropyCriterion(LabelSmoothedCrossEntropyCriterion):
    """``word loss + sum of weight * term``, each a mean, the means over all workers' tokens.

    Each term is logged under its own name, unweighted. With ``--update-freq`` above 1 the means
    are taken over each mini-batch.
    """

    def __init__(self, cfg: LabelSmoothedCrossEntropyCriterionConfig, task: Any):
        super().__init__(
            task, cfg.sentence_avg, cfg.label_smoothing, cfg.ignore_prefix_size, cfg.report_accuracy
        )
        self.cfg: Any = cfg

    def weighted_terms(self, net_output: Any, model: Any, dummy: bool) -> list[WeightedTerm] | None:
        """The terms of what a model returned; None of one that has none.

        Args:
            net_output: what the model returned.
            model: the model, which fairseq may have wrapped.
            dummy: whether the batch is only there to keep the workers in step.
        """
        raise NotImplementedError

    def extra_input(self, model: Any) -> dict[str, Any]:
        """What the model is to be told besides the sample."""
        return {}

    def forward(self, model, sample, reduce=True):
        """The loss of a sample, its size (the gradient's denominator), and what to log."""
        net_output = model(**sample["net_input"], **self.extra_input(model))
        loss, nll_loss = self.compute_loss(model, net_output, sample, reduce=reduce)
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        logging_output: dict[str, Any] = {
            "nll_loss": nll_loss.data,
            "ntokens": sample["ntokens"],
            "nsentences": sample["target"].size(0),
            "sample_size": sample_size,
        }
        logged = loss.data.clone()
        dummy = bool(sample.get("ignore_grad", False))
        values = self.weighted_terms(net_output, model, dummy)
        if values is not None:
            size = loss.new_full((), sample_size)
            added, share, log = reduced(values, size, dummy, distributed=self.training)
            loss, logged = loss + added, logged + share
            logging_output |= log
        logging_output["loss"] = logged
        if self.report_accuracy:
            n_correct, total = self.compute_accuracy(model, net_output, sample)
            logging_output["n_correct"] = n_correct.item()
            logging_output["total"] = total.item()
        return loss, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Aggregate over workers and batches; a term is the mean over what it was summed over."""
        super().reduce_metrics(logging_outputs)
        log_means(logging_outputs)
