"""Cross-entropy plus weighted terms, each a mean over all workers' tokens."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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


class Reduction:
    """Turns sums into means over all workers.

    fairseq adds the workers' gradients and divides by the sum of their sample sizes. A mean over
    all workers' tokens is therefore a worker's own sum, times the global sample size, over the
    global count. The entropy of a mean needs the global mean: its value comes from all workers,
    its gradient from the worker's own tokens, so that the sum of gradients is right.

    Args:
        values: the terms.
        sample_size: the worker's denominator, a scalar tensor.
        dummy: the batch only keeps the worker in step; it counts for nothing.
        distributed: add up over the workers (where there are several).
    """

    def __init__(
        self, values: list[WeightedTerm], sample_size: Tensor, dummy: bool, distributed: bool
    ):
        self.values = values
        parts = [sample_size.view(1)] + [
            part for v in values for part in (v.number.view(1), v.total.detach().view(-1))
        ]
        self.local = torch.cat([part.float() * (not dummy) for part in parts])
        self.world = self.local
        if distributed and torch.distributed.is_available() and torch.distributed.is_initialized():
            self.world = self.local.clone()
            torch.distributed.all_reduce(self.world)
        self.sample_size = self.world[0]

    def _sums(self, parts: Tensor) -> Iterator[tuple[WeightedTerm, Tensor, Tensor]]:
        """Each value, its number and its sum, of the world's or the local parts."""
        offset = 1
        for value in self.values:
            end = offset + 1 + value.total.numel()
            yield value, parts[offset], parts[offset + 1 : end].view_as(value.total)
            offset = end

    def gradient_loss(self) -> Tensor:
        """What to add to the worker's summed word loss."""
        loss = torch.zeros((), device=self.world.device)
        for value, number, total in self._sums(self.world):
            if not value.weight:
                continue
            number = number.clamp(min=1)
            if value.function:
                mean = (value.total + (total - value.total).detach()) / number
                loss = loss + value.weight * value.function(mean)
            else:
                loss = loss + value.weight * value.total / number
        return loss * self.sample_size

    def logged_loss(self, logging_output: dict[str, Any]) -> Tensor:
        """The worker's share of the terms in the reported loss; fills in the log."""
        loss = torch.zeros((), device=self.world.device)
        for (value, number, total), (_, own_number, own_total) in zip(
            self._sums(self.world), self._sums(self.local), strict=True
        ):
            whole, own = number.clamp(min=1), own_number.clamp(min=1)
            mean = value.function(total / whole) if value.function else own_total / own
            logging_output[f"sum_{value.name}"] = mean * own_number
            logging_output[f"num_{value.name}"] = own_number
            loss = loss + value.weight * mean * own_number / whole
        return loss * self.sample_size


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


def unwrapped(model: Any) -> Any:
    """The model itself; fairseq wraps a data-parallel one twice."""
    while hasattr(model, "module"):
        model = model.module
    return model


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
            model: the model itself.
            dummy: whether the batch is only there to keep the workers in step.
        """
        raise NotImplementedError

    def extra_input(self, model: Any) -> dict[str, Any]:
        """What the model is to be told besides the sample."""
        return {}

    def forward(self, model, sample, reduce=True):
        """The loss of a sample, its size (the gradient's denominator), and what to log."""
        inner = unwrapped(model)
        net_output = model(**sample["net_input"], **self.extra_input(inner))
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
        values = self.weighted_terms(net_output, inner, dummy)
        if values is not None:
            size = torch.tensor(sample_size, device=loss.device)
            scale = Reduction(values, size, dummy, distributed=self.training)
            loss = loss + scale.gradient_loss()
            logged = logged + scale.logged_loss(logging_output)
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
