"""The word loss plus the composition terms of CAT, each weighted and logged on its own."""

from dataclasses import dataclass
from typing import Any

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig

from compgen.ranges import AT_LEAST_0, RATE, ranges
from compgen_fairseq.criterions import composition_terms as terms
from compgen_fairseq.criterions.terms_cross_entropy import TermsCrossEntropyCriterion, WeightedTerm
from compgen_fairseq.modules.cat_layer import CompositionOutputs
from compgen_fairseq.options import option


@ranges((AT_LEAST_0, ("reconstruction", "sparsity")), (RATE, ("reconstruction_beta",)))
@dataclass
class CompositionCrossEntropyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """The weights of the terms."""

    reconstruction: float = option(
        0.1, "weight of the mean square of h_comp - h_cont, summed over layers"
    )
    reconstruction_beta: float = option(
        terms.BETA, "weight, in [0, 1), of equation 5's part that moves h_cont (the paper: 0.1)"
    )
    sparsity: float = option(0.01, "weight of the mean attention to a code, summed over layers")


@register_criterion("composition_cross_entropy", dataclass=CompositionCrossEntropyConfig)
class CompositionCrossEntropyCriterion(TermsCrossEntropyCriterion):
    """``word loss + sum of weight * term``, each a mean, the means over all workers' tokens.

    The terms are equation 5 and the second one of equation 4 of Huang et al. (2024), over all
    encoder layers. Each is logged under its own name, unweighted. A model without composition is
    trained with the word loss alone.
    """

    models = ("cat_transformer", "transformer")

    def weighted_terms(self, net_output: Any, model: Any, dummy: bool) -> list[WeightedTerm] | None:
        """The terms whose weight is not 0."""
        outputs: CompositionOutputs | None = net_output[1].get("composition")
        if outputs is None:
            return None
        cfg, values = self.cfg, []
        if cfg.reconstruction:
            pair = terms.layer_reconstruction(outputs, cfg.reconstruction_beta)
            values.append(WeightedTerm("reconstruction", cfg.reconstruction, *pair))
        if cfg.sparsity:
            values.append(WeightedTerm("sparsity", cfg.sparsity, *terms.sparsity(outputs)))
        return values
