"""Label-smoothed cross-entropy plus the structural terms of SQ-Transformer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Optional

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig

from compgen.ranges import AT_LEAST_0, ranges
from compgen_fairseq.criterions import structural_terms as terms
from compgen_fairseq.criterions.terms_cross_entropy import TermsCrossEntropyCriterion, WeightedTerm
from compgen_fairseq.modules.structural_outputs import StructuralOutputs
from compgen_fairseq.options import option

WEIGHTS = [f.name for f in fields(terms.LossWeights)]


def weight(what: str) -> Any:
    """The option of a weight."""
    return option(None, f"weight of {what} (default: that of --loss-recipe)")


@ranges((AT_LEAST_0, WEIGHTS))
@dataclass
class StructuralCrossEntropyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """The weights; each one left out takes the value of the architecture's recipe."""

    mmi_cross_entropy: Optional[float] = weight(
        "H(q, p); on several GPUs 0 needs --ddp-backend legacy_ddp"
    )
    mmi_entropy: Optional[float] = weight("-H(mean q)")
    encoder_commitment: Optional[float] = weight("the source embeddings' distance to their codes")
    decoder_commitment: Optional[float] = weight("the target embeddings' distance to their codes")
    encoder_code_prediction: Optional[float] = weight(
        "predicting the next code from the encoder's output"
    )
    decoder_code_prediction: Optional[float] = weight(
        "predicting the next code from the decoder's output"
    )
    encoder_code_attraction: Optional[float] = weight(
        "the encoder output's distance to its nearest code"
    )
    decoder_code_attraction: Optional[float] = weight(
        "the decoder output's distance to its nearest code"
    )
    srl_mse: Optional[float] = weight("the distance of SRL's word stream to its code stream")


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

    def __init__(self, cfg: StructuralCrossEntropyConfig, task: Any):
        super().__init__(cfg, task)
        given = {name: getattr(cfg, name) for name in WEIGHTS}
        self.overrides = {name: weight for name, weight in given.items() if weight is not None}

    def extra_input(self, model: Any) -> dict[str, Any]:
        """Ask a model with codes for its structural outputs."""
        return {"structural": True} if _structured(model) else {}

    def weighted_terms(self, net_output: Any, model: Any, dummy: bool) -> list[WeightedTerm] | None:
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


def compute_terms(
    outputs: StructuralOutputs, weights: terms.LossWeights, srl: bool
) -> list[WeightedTerm]:
    """The terms that the weights ask for, on both sides.

    With SRL the code stream feeds code prediction and attraction and the word stream is drawn
    towards it; else the word stream feeds them, as in the published runs of each variant.
    """
    values: list[WeightedTerm] = []

    def add(
        name: str, weight: float, term: Callable[..., terms.Term], *args: Any, function: Any = None
    ) -> None:
        if weight:
            values.append(WeightedTerm(name, weight, *term(*args), function))

    for name, side in (("source", outputs.source), ("target", outputs.target)):
        prefix = "encoder" if name == "source" else "decoder"
        if side.prior is not None and side.predicted is not None:
            mmi, pair = weights.mmi_cross_entropy, (side.predicted, side.prior)
            add(f"mmi_cross_entropy_{name}", mmi, terms.mmi_cross_entropy, *pair)
            entropy, mean = -weights.mmi_entropy, terms.mean_posterior
            add(f"mmi_entropy_{name}", entropy, mean, side, function=terms.entropy)
        for what, term, *stream in (
            ("commitment", terms.commitment),
            ("code_prediction", terms.code_prediction, srl),
            ("code_attraction", terms.code_attraction, srl),
        ):
            add(f"{what}_{name}", getattr(weights, f"{prefix}_{what}"), term, side, *stream)
        if srl:
            add(f"srl_mse_{name}", weights.srl_mse, terms.srl_mse, side)
    return values


def code_usage(outputs: StructuralOutputs) -> Iterator[WeightedTerm]:
    """How many codes the tokens of each side have, and the entropy of the codes' frequencies."""
    for name, side in (("source", outputs.source), ("target", outputs.target)):
        counts = side.codebook.new_zeros(len(side.codebook), dtype=torch.float32)
        counts.index_add_(0, side.codes.flatten(), side.keep.flatten().float())
        number = side.keep.sum()
        yield WeightedTerm(f"codes_used_{name}", 0.0, counts, number, torch.count_nonzero)
        yield WeightedTerm(f"code_entropy_{name}", 0.0, counts, number, terms.entropy)
