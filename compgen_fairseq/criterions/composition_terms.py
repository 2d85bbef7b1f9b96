"""The loss terms of the compositionality-aware Transformer (CAT), one function each.

Huang et al. (2024), "Towards Equipping Transformer with the Ability of Systematic
Compositionality", section 4. A term is a sum and the number of things summed, so that the mean can
be taken over all data-parallel workers. B sentences, T positions, D width, K codes.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.cat_layer import CompositionLayer, CompositionOutputs

Term = tuple[Tensor, Tensor]

#: Equation 5's default. The paper has 0.1, which holds back whatever else is to be learned.
BETA = 0.0


def reconstruction(layer: CompositionLayer, keep: Tensor, beta: float = BETA) -> Term:
    """``|comp - sg(cont)|^2 + beta |sg(comp) - cont|^2`` (equation 5).

    The square is the mean over the width, so that its weight does not depend on the width; the
    paper writes the sum. The value is ``1 + beta`` times the mean square. The second part moves
    ``cont`` directly; the first moves it, too, through the query that ``comp`` is made with, and
    more strongly at a beta of 0.1 (10 times at the start), unless the model has ``detach_query``.

    Args:
        layer: the representations.
        keep: which positions count, ``(B, T)``, bool.
        beta: weight of the contextual side, in [0, 1).
    """
    cont, comp = layer.cont.float(), layer.comp.float()
    pull = F.mse_loss(comp, cont.detach(), reduction="none")
    push = F.mse_loss(comp.detach(), cont, reduction="none")
    return ((pull + beta * push).mean(-1) * keep).sum(), keep.sum()


def layer_reconstruction(outputs: CompositionOutputs, beta: float = BETA) -> Term:
    """:func:`reconstruction`, summed over the layers."""
    parts = [reconstruction(layer, outputs.keep, beta) for layer in outputs.layers]
    return torch.stack([part for part, _ in parts]).sum(), parts[0][1]


def sparsity(outputs: CompositionOutputs) -> Term:
    """``L1(O)`` of the weights, over the number of codes, summed over the layers (equation 4).

    The paper writes the sum over the codes; the mean is on the scale of
    :func:`guided_decomposition`, whatever the size of a codebook. The root mean square of a
    position's weights is 1, so a layer's value lies between ``K ** -0.5`` (one code) and 1 (all),
    or is 0 where no code fits.
    """
    total = outputs.keep.new_zeros((), dtype=torch.float32)
    for layer in outputs.layers:
        means = layer.attention.float().abs().mean(-1)
        total = total + (means * outputs.keep).sum()
    return total, outputs.keep.sum()


def guided_decomposition(attention: Tensor, sememes: Tensor, annotated: Tensor) -> Term:
    """Mean weight of the wrong sememes of annotated words (equation 4, first term).

    It is exactly zero when all weight is on right ones.

    Args:
        attention: ``O`` of the layer whose codes are sememes, ``(..., K)``.
        sememes: the right ones of each word as distinct indices, then -1, ``(..., S)``, long.
        annotated: which words count; each has at least one sememe; ``(...)``, bool.
    """
    weights, right = attention[annotated], sememes[annotated]
    wrong = weights.size(-1) - right.ge(0).sum(-1)
    right = torch.where(right.ge(0), right, right[:, :1])  # -1 repeats the first
    missed = weights.scatter(-1, right, 0.0).sum(-1, dtype=torch.float32)
    return (missed / wrong.clamp(min=1)).sum(), annotated.sum()


def guided_scores(scores: Tensor, sememes: Tensor, annotated: Tensor) -> Term:
    """``-log`` of the softmax's share of right sememes: equation 4 before the ReLU.

    :func:`guided_decomposition` says nothing to a right sememe that the ReLU has silenced, and is
    content when all are. Here right ones rise as wrong ones fall, silent or not, and nothing but
    right ones above all others makes the term small. Which of several right ones is free, as in
    the paper. The scores are divided by their root mean square, as the weights are.

    Args:
        scores: of the codes, before the ReLU, ``(..., K)``.
        sememes, annotated: as in :func:`guided_decomposition`.
    """
    logits, right = scores[annotated].float(), sememes[annotated]
    log_p = F.log_softmax(F.rms_norm(logits, logits.shape[-1:]), dim=-1)
    shares = log_p.gather(-1, right.clamp(min=0)).masked_fill(right.lt(0), -torch.inf)
    return -shares.logsumexp(-1).sum(), annotated.sum()


def nuance_entropy(nuance: Tensor, keep: Tensor) -> Term:
    """``exp(-Entropy)`` of ``h_cont - h_comp`` (equation 7, first term).

    The paper does not say what the entropy of a vector is. Here it is that of the softmax over
    the vector's elements: largest, ``log D``, when all elements are equal and none says anything.

    Args:
        nuance: ``h_cont - h_comp``, ``(..., D)``.
        keep: which positions count, ``(...)``, bool.
    """
    log_p = F.log_softmax(nuance[keep].float(), dim=-1)
    entropies = -(log_p.exp() * log_p).sum(-1)
    return torch.exp(-entropies).sum(), keep.sum()


def nuance_task(loss: Tensor) -> Tensor:
    """``exp(-Ptask(h_cont - h_comp))`` of a task's mean loss in nats (equation 7, second term)."""
    return torch.exp(-loss)
