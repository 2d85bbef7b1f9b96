"""Representation enhancement: contextual and compositional states attend to each other.

Huang et al. (2024), "Towards Equipping Transformer with the Ability of Systematic
Compositionality", section 3.2.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from fairseq.modules import FairseqDropout, LayerNorm
from torch import Tensor

from compgen_fairseq.modules.dropout import apply_dropout


class RepresentationEnhancement(nn.Module):
    """``H = self-attention([h_comp; h_cont])``, then the mean of both halves (equation 3).

    The two sequences stand one behind the other, so each word meets every word twice. As in every
    Transformer the self-attention has its residual and its LayerNorm: a stack of layers that pass
    on nothing but attention's averages hardly tells its words apart and learns far more slowly.
    The mean comes before the output projection, dropout, the residual and the LayerNorm, which
    halves their work; the projection and the residual, being linear, are what they would be.

    Args:
        embed_dim: width D of the states.
        num_heads: number of attention heads.
        head_dim: width of a head.
        dropout: dropout on what the attention adds to the residual.
    """

    def __init__(self, embed_dim: int, num_heads: int, head_dim: int, dropout: float = 0.0):
        super().__init__()
        self.num_heads = num_heads
        # drawn by apply_dropout; it knows --retain-dropout
        self.dropout_module = FairseqDropout(dropout, module_name=type(self).__name__)
        inner = num_heads * head_dim
        self.qkv_proj = nn.Linear(embed_dim, 3 * inner)
        self.out_proj = nn.Linear(inner, embed_dim)
        self.layer_norm = LayerNorm(embed_dim)
        for part in self.qkv_proj.weight.chunk(3):
            nn.init.xavier_uniform_(part, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out_proj.weight)
        for linear in (self.qkv_proj, self.out_proj):
            nn.init.zeros_(linear.bias)

    def forward(self, h_comp: Tensor, h_cont: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Mix the two representations of each sentence.

        Args:
            h_comp: compositional states ``(B, T, D)``.
            h_cont: contextual states ``(B, T, D)``.
            padding_mask: ``(B, T)`` bool, True for padding; None where there is none.

        Returns:
            ``h_mix``, ``(B, T, D)``.
        """
        both = torch.cat([h_comp, h_cont], dim=1)  # (B, 2T, D)
        batch, length, _ = both.shape
        heads = self.qkv_proj(both).view(batch, length, 3, self.num_heads, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each (B, heads, 2T, head_dim)
        mask = None
        if padding_mask is not None:
            mask = padding_mask.logical_not().repeat(1, 2)[:, None, None]  # (B, 1, 1, 2T)
        out = F.scaled_dot_product_attention(query, key, value, mask)
        halves = out.transpose(1, 2).reshape(batch, 2, length // 2, -1)  # (B, 2, T, width)
        dropping = self.training or self.dropout_module.apply_during_inference
        added = apply_dropout(self.out_proj(halves.mean(1)), self.dropout_module.p, dropping)
        return self.layer_norm((h_comp + h_cont) / 2 + added)
