"""Label-smoothed cross-entropy plus the structural terms of SQ-Transformer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Optional

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from compgen.ranges import AT_LEAST_0, ranges
from compgen_fairseq.criterions import structural_terms as terms
from compgen_fairseq.models.sq_config import option
from compgen_fairseq.modules.structural_outputs import SideOutputs, StructuralOutputs

DEFAULT = " (default: the architecture's published value)"


@ranges(
    (AT_LEAST_0, ("mmi_cross_entropy", "mmi_entropy", "srl_mse")),
    (AT_LEAST_0, ("encoder_commitment", "decoder_commitment")),
    (AT_LEAST_0, ("encoder_code_prediction", "decoder_code_prediction")),
    (AT_LEAST_0, ("encoder_code_attraction", "decoder_code_attraction")),
)
@dataclass
class StructuralCrossEntropyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """The weights; each one left out takes the value of the architecture's recipe."""

    mmi_cross_entropy: Optional[float] = option(None, "weight of H(q, p)" + DEFAULT)
    mmi_entropy: Optional[float] = option(None, "weight of -H(mean q)" + DEFAULT)
    encoder_commitment: Optional[float] = option(
        None, "weight of the source embeddings' distance to their codes" + DEFAULT
    )
    decoder_commitment: Optional[float] = option(
        None, "weight of the target embeddings' distance to their codes" + DEFAULT
    )
    encoder_code_prediction: Optional[float] = option(
        None, "weight of predicting the next code from the encoder's output" + DEFAULT
    )
    decoder_code_prediction: Optional[float] = option(
        None, "weight of predicting the next code from the decoder's output" + DEFAULT
    )
    encoder_code_attraction: Optional[float] = option(
        None, "weight of the encoder output's distance to its nearest code" + DEFAULT
    )
    decoder_code_attraction: Optional[float] = option(
        None, "weight of the decoder output's distance to its nearest code" + DEFAULT
    )
    srl_mse: Optional[float] = option(
        None, "weight of the distance of SRL's word stream to its code stream" + DEFAULT
    )
    sentence_avg: bool = II("optimization.sentence_avg")


WEIGHTS = [f.name for f in fields(terms.LossWeights)]


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

    def weighted_terms(self, net_output: Any, model: Any, dummy: bool) -> "list[Value] | None":
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
            size = torch.tensor(0 if dummy else sample_size, device=loss.device)
            scale = Reduction(values, size, dummy, distributed=self.training)
            loss = loss + scale.gradient_loss(values)
            logged = logged + scale.logged_loss(values, logging_output)
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
        names = sorted({k[4:] for log in logging_outputs for k in log if k.startswith("sum_")})
        for name in names:
            number = sum(float(log.get(f"num_{name}", 0)) for log in logging_outputs)
            if number > 0:
                total = sum(float(log.get(f"sum_{name}", 0)) for log in logging_outputs)
                metrics.log_scalar(name, total / number, number, round=4)


@register_criterion("structural_cross_entropy", dataclass=StructuralCrossEntropyConfig)
class StructuralCrossEntropyCriterion(TermsCrossEntropyCriterion):
    """``word loss + sum of weight * term``, each a mean, the means over all workers' tokens.

    The terms are those of :mod:`compgen_fairseq.criterions.structural_terms`. Each is logged under
    its own name with ``_source`` or ``_target``, unweighted, in nats. A model without structural
    outputs is trained with the word loss alone. Logged beside them for each side: ``codes_used``,
    how many codes the batch's tokens have, and ``code_entropy``, the entropy of their frequencies
    in nats: 0 when all tokens have one code, ``log K`` when all K codes are equally frequent.

    With ``--update-freq`` above 1 the means are taken over each mini-batch.
    """

    models = ("sq_transformer", "transformer")

    def __init__(
        self,
        task,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        mmi_cross_entropy: float | None = None,
        mmi_entropy: float | None = None,
        encoder_commitment: float | None = None,
        decoder_commitment: float | None = None,
        encoder_code_prediction: float | None = None,
        decoder_code_prediction: float | None = None,
        encoder_code_attraction: float | None = None,
        decoder_code_attraction: float | None = None,
        srl_mse: float | None = None,
    ):
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        given = locals()
        self.overrides = {name: given[name] for name in WEIGHTS if given[name] is not None}

    def extra_input(self, model: Any) -> dict[str, Any]:
        """Ask a model with codes for its structural outputs."""
        return {"structural": True} if _structured(model) else {}

    def weighted_terms(self, net_output: Any, model: Any, dummy: bool) -> "list[Value] | None":
        """The terms, and how the codes are used; in training, the codebooks are updated."""
        if not _structured(model):
            return None
        weights = replace(terms.RECIPES[model.cfg.loss_recipe], **self.overrides)
        outputs: StructuralOutputs = net_output[1]["structural"]
        values = compute_terms(outputs, weights, model.cfg.attention == "srl")
        values.extend(code_usage(outputs))
        if self.training:
            model.update_codebooks(outputs, count=not dummy)
        return values


def _structured(model: Any) -> bool:
    """Whether a model has codes."""
    return getattr(getattr(model, "cfg", None), "quantizer", "none") != "none"


@dataclass
class Value:
    """A mean, ``total / number``, or a function of one, and its weight in the loss.

    What has no weight is only logged.
    """

    name: str
    weight: float
    total: Tensor
    number: Tensor
    function: Callable[[Tensor], Tensor] | None = None


def compute_terms(outputs: StructuralOutputs, weights: terms.LossWeights, srl: bool) -> list[Value]:
    """The terms that the weights ask for, on both sides.

    With SRL the code stream feeds code prediction and attraction and the word stream is drawn
    towards it; else the word stream feeds them, as in the published runs of each variant.
    """
    values: list[Value] = []
    for name, side in (("source", outputs.source), ("target", outputs.target)):
        prefix = "encoder" if name == "source" else "decoder"
        if side.prior is not None and side.predicted is not None:
            pair = terms.mmi_cross_entropy(side.predicted, side.prior)
            values.append(Value(f"mmi_cross_entropy_{name}", weights.mmi_cross_entropy, *pair))
            pair = terms.mean_posterior(side)
            values.append(Value(f"mmi_entropy_{name}", -weights.mmi_entropy, *pair, terms.entropy))
        for term, function in _side_terms(side, code_stream=srl):
            weight = getattr(weights, f"{prefix}_{term}")
            if weight:
                values.append(Value(f"{term}_{name}", weight, *function))
        if srl and weights.srl_mse:
            values.append(Value(f"srl_mse_{name}", weights.srl_mse, *terms.srl_mse(side)))
    return [value for value in values if value.weight]


def _side_terms(side: SideOutputs, code_stream: bool):
    yield "commitment", terms.commitment(side)
    yield "code_prediction", terms.code_prediction(side, code_stream)
    yield "code_attraction", terms.code_attraction(side, code_stream)


def code_usage(outputs: StructuralOutputs) -> Iterator[Value]:
    """How many codes the tokens of each side have, and the entropy of the codes' frequencies."""
    for name, side in (("source", outputs.source), ("target", outputs.target)):
        counts = side.codebook.new_zeros(len(side.codebook), dtype=torch.float32)
        counts.index_add_(0, side.codes.flatten(), side.keep.flatten().float())
        for what, function in (
            ("codes_used", torch.count_nonzero),
            ("code_entropy", terms.entropy),
        ):
            yield Value(f"{what}_{name}", 0.0, counts, side.keep.sum(), function)


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

    def __init__(self, values: list[Value], sample_size: Tensor, dummy: bool, distributed: bool):
        self.dummy = dummy
        parts = [sample_size.view(1)] + [
            part for v in values for part in (v.number.view(1), v.total.detach().view(-1))
        ]
        self.local = torch.cat([part.float() * (not dummy) for part in parts])
        self.world = self.local
        if distributed and torch.distributed.is_available() and torch.distributed.is_initialized():
            self.world = self.local.clone()
            torch.distributed.all_reduce(self.world)
        self.sample_size = self.world[0]

    def _means(self, values: list[Value], world: Tensor):
        """Each value with its mean, and its number and its sum over all workers."""
        offset = 1
        for value in values:
            width = value.total.numel()
            number = world[offset]
            others = world[offset + 1 : offset + 1 + width].view_as(value.total)
            offset += 1 + width
            yield value, number.clamp(min=1), others

    def gradient_loss(self, values: list[Value]) -> Tensor:
        """What to add to the worker's summed word loss."""
        loss = torch.zeros((), device=self.world.device)
        for value, number, total in self._means(values, self.world):
            if not value.weight:
                continue
            if value.function:
                mean = (value.total + (total - value.total).detach()) / number
                loss = loss + value.weight * value.function(mean)
            else:
                loss = loss + value.weight * value.total / number
        return loss * self.sample_size

    def logged_loss(self, values: list[Value], logging_output: dict[str, Any]) -> Tensor:
        """The worker's share of the terms in the reported loss; fills in the log."""
        loss = torch.zeros((), device=self.world.device)
        for (value, number, total), own in zip(
            self._means(values, self.world), self._means(values, self.local), strict=True
        ):
            share = 0.0 if self.dummy else own[1] / number
            mean = value.function(total / number) if value.function else own[2] / own[1]
            logging_output[f"sum_{value.name}"] = mean * own[1] * (not self.dummy)
            logging_output[f"num_{value.name}"] = own[1] * (not self.dummy)
            loss = loss + value.weight * mean * share
        return loss * self.sample_size
