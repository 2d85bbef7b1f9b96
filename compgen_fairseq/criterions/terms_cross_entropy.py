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
    sums = [sample_size, *(part for v in values for part in (v.number, v.total.detach()))]
    shapes = [part.shape for part in sums]
    local = torch.cat([part.float().flatten() for part in sums]) * (not dummy)
    world = local
    if distributed and torch.distributed.is_available() and torch.distributed.is_initialized():
        world = local.clone()
        torch.distributed.all_reduce(world)
    (size, *ours), (_, *own) = (
        map(Tensor.view, parts.split([shape.numel() for shape in shapes]), shapes)
        for parts in (world, local)
    )
    loss = share = torch.zeros_like(size)
    log: dict[str, Tensor] = {}
    for v, number, total, own_number, own_total in zip(
        values, ours[::2], ours[1::2], own[::2], own[1::2], strict=True
    ):
        number = number.clamp(min=1)
        if v.function:
            own_total = v.function(total / number) * own_number
        log[f"sum_{v.name}"], log[f"num_{v.name}"] = own_total, own_number
        if v.weight and v.function:
            mean = (v.total + (total - v.total).detach()) / number
            loss = loss + v.weight * v.function(mean)
        elif v.weight:
            loss = loss + v.weight * v.total / number
        if v.weight:
            share = share + v.weight * own_total / number
    return loss * size, share * size, log


def log_means(logging_outputs: Sequence[dict[str, Any]]) -> list[str]:
    """Log every term as the mean over what it was summed over; return the names."""
    totals: Counter[str] = Counter()
    for log in logging_outputs:
        totals.update(
            {name: float(value) for name, value in log.items() if name[:4] in ("sum_", "num_")}
        )
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
            task,
            cfg.sentence_avg,
            cfg.label_smoothing,
            cfg.ignore_prefix_size,
            cfg.report_accuracy,
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
            size = torch.tensor(sample_size, device=loss.device)
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
