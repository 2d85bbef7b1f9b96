"""Multi-primitive composition: a word's state as a sparse weighted sum of trained codes.

Huang et al. (2024), "Towards Equipping Transformer with the Ability of Systematic
Compositionality", section 3.1.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.precision import wide


class PrimitiveComposition(nn.Module):
    """``O = RMSNorm(ReLU(cos(h W_Q, e W_K)))``, ``h_comp = O (e W_V)`` (equation 2).

    The RMSNorm runs over the codes and has no gain. So the weights are never negative, their mean
    square is 1, and their mean says how many codes share it: 1 for all alike, ``K ** -0.5`` for a
    single one. With a gain the losses on the weights (equation 4) could shrink the gain instead.

    The query's length cancels in the RMSNorm, but for ``EPS``. Cosine is therefore the dot product
    with keys of length 1, and ``W_Q`` is multiplied into the keys, of which there are fewer than
    words in a batch.

    Args:
        embed_dim: width D of a state and of a code.
        num_codes: number K of codes.
        detach_query: no gradient reaches ``h`` through the weights of its codes, so that what a
            loss asks of ``O`` or ``h_comp`` moves the codes alone.

    Raises:
        ValueError: on a bad number of codes.
    """

    #: added to the scores' mean square over the K codes: a word fades out if it has m codes and
    #: their scores are below sqrt(K / m) * 1e-3
    EPS = 1e-6

    def __init__(self, embed_dim: int, num_codes: int, detach_query: bool = False):
        super().__init__()
        if num_codes < 2:
            raise ValueError(f"a codebook needs at least 2 codes, not {num_codes}")
        self.detach_query = detach_query
        self.query_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.key_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.value_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        for proj in (self.query_proj, self.key_proj, self.value_proj):
            nn.init.xavier_uniform_(proj.weight)
        # h_comp begins with elements around 1, as h_cont has: K codes add up, and what they have in
        # common, namely that they fit the same state, adds up faster where they are many
        variance = num_codes * (1 + num_codes / (2 * embed_dim))
        self.codebook = nn.Parameter(torch.empty(num_codes, embed_dim).normal_(std=variance**-0.5))

    def forward(self, h_cont: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Decompose states and compose them again from codes.

        Args:
            h_cont: ``(..., D)``.

        Returns:
            ``h_comp (..., D)``, the weights ``O (..., K)`` and the scores that they come from.
        """
        scores = self.scores(h_cont)
        attention = self.weights(scores)
        return attention @ self.value_proj(self.codebook), attention, scores

    def weights(self, scores: Tensor) -> Tensor:
        """``O`` of the scores, ``(..., K)``."""
        scores = F.relu(scores)
        return F.rms_norm(scores.to(wide(scores)), scores.shape[-1:], eps=self.EPS).type_as(scores)

    def scores(self, h_cont: Tensor) -> Tensor:
        """How well every code fits, up to a factor for each state: ``(..., D)`` to ``(..., K)``."""
        if self.detach_query:
            h_cont = h_cont.detach()
        keys = self.key_proj(self.codebook)
        keys = F.normalize(keys.to(wide(keys)), dim=-1).type_as(keys)
        readers = (keys @ self.query_proj.weight) * keys.size(-1) ** -0.5
        return F.linear(h_cont, readers)
