"""The structural loss terms, one function each.

Each returns a sum and the number of things summed, so that the mean can be taken over all
data-parallel workers. B sentences, T positions, D width, K codes, N predicted positions.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.structural_outputs import SideOutputs
from compgen_fairseq.modules.vector_quantizer import code_logits

Term = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class LossWeights:
    """The weight of each term; the defaults of a recipe are those of the published runs. The
    published SCAN runs are SAL's, without an SRL term: SRL on SCAN takes the weight of COGS."""

    mmi_cross_entropy: float = 0.1
    mmi_entropy: float = 0.1
    encoder_commitment: float = 0.1
    decoder_commitment: float = 0.1
    encoder_code_prediction: float = 0.5
    decoder_code_prediction: float = 0.5
    encoder_code_attraction: float = 0.1
    decoder_code_attraction: float = 0.1
    srl_mse: float = 0.001  # SRL only


_COGS = LossWeights(
    decoder_commitment=0.0, decoder_code_prediction=0.1, decoder_code_attraction=0.01
)
RECIPES = {"scan": LossWeights(), "cogs": _COGS, "cognition": replace(_COGS, srl_mse=0.01)}


def mmi_cross_entropy(posterior: Tensor, prior: Tensor) -> Term:
    """``H(q, p) = mean of -sum_z q(z|x) log p(z|context)`` (paper, equation 12).

    Args:
        posterior: logits ``(N, K)``.
        prior: logits ``(N, K)`` or, with a class for the [MASK] code, which no token has,
            ``(N, K + 1)``. The gradient flows into both.
    """
    q = F.softmax(posterior.float(), dim=-1)
    log_p = F.log_softmax(prior.float(), dim=-1)[:, : q.size(-1)]
    return -(q * log_p).sum(), q.new_full((), len(q))


def mean_posterior(side: SideOutputs) -> tuple[Tensor, Tensor]:
    """The sum of ``q(z|x)`` over the side's tokens, ``(K,)``, and their number (equation 12)."""
    where = side.keep if side.marginal is None else side.marginal
    q = F.softmax(side.posterior.float(), dim=-1) * where.unsqueeze(-1)
    return q.sum(dim=(0, 1)), where.sum()


def entropy(mean: Tensor) -> Tensor:
    """``H(Z) = -sum_z q'(z) log q'(z)`` of the marginal ``q'``, ``(K,)`` (equation 12).

    A code that no token can have contributes neither value nor gradient.
    """
    return torch.special.entr(mean.clamp(min=torch.finfo(mean.dtype).tiny)).sum()


def commitment(side: SideOutputs) -> Term:
    """Mean squared difference of each embedding and its code, the code held fixed."""
    squares = F.mse_loss(side.embeddings.float(), side.vectors.detach().float(), reduction="none")
    return (squares.mean(-1) * side.keep).sum(), side.keep.sum()


def code_prediction(side: SideOutputs, code_stream: bool) -> Term:
    """Cross-entropy of the next token's code, with minus the squared distances of the last layer's
    output to the codes as logits (paper, appendix A.5)."""
    logits = code_logits(side.layers[-1][0 if code_stream else -1], side.codebook)
    targets = side.next_codes.masked_fill(~side.next_keep, -100)  # which cross_entropy leaves out
    total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    return total, side.next_keep.sum()


def code_attraction(side: SideOutputs, code_stream: bool) -> Term:
    """Mean squared difference of the last layer's output and the code nearest to it, held fixed."""
    logits = code_logits(side.layers[-1][0 if code_stream else -1], side.codebook.detach())
    squares = -logits.amax(-1) / side.codebook.size(-1)
    return (squares * side.keep).sum(), side.keep.sum()


def srl_mse(side: SideOutputs) -> Term:
    """Mean squared difference of the word stream and the code stream, held fixed, summed over the
    layers (paper, section 3.3)."""
    total = side.embeddings.new_zeros((), dtype=torch.float32)
    for streams in side.layers:
        words, codes = streams[-1].float(), streams[0].detach().float()
        squares = F.mse_loss(words, codes, reduction="none").mean(-1)
        total = total + (squares * side.keep).sum()
    return total, side.keep.sum()
