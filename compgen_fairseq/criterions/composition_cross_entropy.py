"""The word loss plus the composition terms of CAT, each weighted and logged on its own."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from omegaconf import II

from compgen_fairseq.criterions import composition_terms as terms
from compgen_fairseq.criterions.structural_cross_entropy import (
    Reduction,
    StructuralCrossEntropyCriterion,
    Value,
)
from compgen_fairseq.modules.composition_outputs import CompositionOutputs


@dataclass
class CompositionCrossEntropyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """The weights of the terms."""

    reconstruction: float = field(
        default=0.1,
        metadata={"help": "weight of the mean square of h_comp - h_cont, summed over layers"},
    )
    reconstruction_beta: float = field(
        default=0.1,
        metadata={"help": "share of that gradient that moves h_cont towards h_comp"},
    )
    sparsity: float = field(
        default=0.01,
        metadata={"help": "weight of the mean attention to a code, summed over layers"},
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("composition_cross_entropy", dataclass=CompositionCrossEntropyConfig)
class CompositionCrossEntropyCriterion(LabelSmoothedCrossEntropyCriterion):
    """``word loss + sum of weight * term``, each a mean, the means over all workers' tokens.

    The terms are equation 5 and the second one of equation 4 of Huang et al. (2024), over all
    encoder layers. Each is logged under its own name, unweighted. A model without composition is
    trained with the word loss alone.

    With ``--update-freq`` above 1 the means are taken over each mini-batch.
    """

    def __init__(
        self,
        task,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        reconstruction: float = 0.1,
        reconstruction_beta: float = 0.1,
        sparsity: float = 0.01,
    ):
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        self.reconstruction = reconstruction
        self.reconstruction_beta = reconstruction_beta
        self.sparsity = sparsity

    def forward(self, model, sample, reduce=True):
        """The loss of a sample, its size (the gradient's denominator), and what to log."""
        net_output = model(**sample["net_input"])
        loss, nll_loss = self.compute_loss(model, net_output, sample, reduce=reduce)
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        logging_output: dict[str, Any] = {
            "nll_loss": nll_loss.data,
            "ntokens": sample["ntokens"],
            "nsentences": sample["target"].size(0),
            "sample_size": sample_size,
        }
        logged = loss.data.clone()
        outputs: CompositionOutputs | None = net_output[1].get("composition")
        if outputs is not None:
            dummy = bool(sample.get("ignore_grad", False))
            values = self.compute_terms(outputs)
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

    def compute_terms(self, outputs: CompositionOutputs) -> list[Value]:
        """The terms whose weight is not 0."""
        values = []
        if self.reconstruction:
            parts = [
                terms.reconstruction(layer, outputs.keep, self.reconstruction_beta)
                for layer in outputs.layers
            ]
            total = torch.stack([part for part, _ in parts]).sum()
            values.append(Value("reconstruction", self.reconstruction, total, parts[0][1]))
        if self.sparsity:
            values.append(Value("sparsity", self.sparsity, *terms.sparsity(outputs)))
        return values

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Aggregate over workers and batches; a term is the mean over what it was summed over."""
        StructuralCrossEntropyCriterion.reduce_metrics(logging_outputs)
