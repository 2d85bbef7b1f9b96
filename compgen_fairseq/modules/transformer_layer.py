"""Post-norm Transformer layers over one or two streams, with a highway gate on the FFN."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.dropout import apply_dropout
from compgen_fairseq.modules.relative_attention import RelativePositions
from compgen_fairseq.modules.systematic_attention import Cache, SystematicAttention


class FeedForward(nn.Module):
    """The FFN sublayer with its residual and LayerNorm.

    With ``residual="highway"``: ``g = sigmoid(FFN_g(r))``, ``LN(r * g + FFN(r) * (1 - g))``,
    where ``FFN_g`` is a second two-layer network; with ``"add"``: ``LN(r + FFN(r))``.

    Args:
        dim: width of the model.
        ffn_dim: inner width of the FFN.
        gate_dim: inner width of the gate's network.
        dropout: dropout on the FFN's output.
        activation_dropout: dropout after the ReLU.
        residual: ``"highway"`` or ``"add"``.

    Raises:
        ValueError: on another ``residual``.
    """

    def __init__(
        self,
        dim: int,
        ffn_dim: int,
        gate_dim: int,
        dropout: float = 0.0,
        activation_dropout: float = 0.0,
        residual: str = "highway",
    ):
        super().__init__()
        if residual not in ("highway", "add"):
            raise ValueError(f"the FFN's residual is 'highway' or 'add', not {residual!r}")
        self.ffn_dim = ffn_dim
        self.gate_dim = gate_dim if residual == "highway" else 0
        self.dropout = dropout
        self.activation_dropout = activation_dropout
        self.inner = nn.Linear(dim, ffn_dim + self.gate_dim)  # both networks' first layers
        self.outer = nn.Linear(ffn_dim, dim)
        self.gate = nn.Linear(gate_dim, dim) if self.gate_dim else None
        self.norm = nn.LayerNorm(dim)
        for part in self.inner.weight.split([w for w in (ffn_dim, self.gate_dim) if w]):
            nn.init.xavier_uniform_(part)
        nn.init.zeros_(self.inner.bias)
        nn.init.xavier_uniform_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)
        if self.gate is not None:
            nn.init.xavier_uniform_(self.gate.weight)
            nn.init.zeros_(self.gate.bias)

    def forward(self, x: Tensor) -> Tensor:
        """``(..., dim)`` -> ``(..., dim)``."""
        inner = apply_dropout(F.relu(self.inner(x)), self.activation_dropout, self.training)
        if self.gate is None:
            out = apply_dropout(self.outer(inner), self.dropout, self.training)
            return self.norm(x + out)
        hidden, gate_hidden = inner.split([self.ffn_dim, self.gate_dim], dim=-1)
        out = apply_dropout(self.outer(hidden), self.dropout, self.training)
        gate = torch.sigmoid(self.gate(gate_hidden))
        return self.norm(torch.lerp(out, x, gate))


class StreamLayer(nn.Module):
    """One encoder or decoder layer, the same for every stream.

    Args:
        dim, ffn_dim, gate_dim, heads: sizes.
        dropout, attention_dropout, activation_dropout: probabilities.
        relative: build relative positions with this maximal distance; None for none.
        shared_weights: SAL's self-attention (queries and keys from the code stream).
        cross: ``"none"`` (an encoder's layer), ``"own"`` (each stream queries its own stream of
            the encoder: SRL, plain, and SAL as in the paper's appendix A.5) or ``"shared"`` (the
            code stream queries the encoder's word stream once, for both residuals).
        ffn_residual: ``"highway"`` or ``"add"``.
    """

    def __init__(
        self,
        dim: int,
        ffn_dim: int,
        gate_dim: int,
        heads: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        relative: int | None = 20,
        shared_weights: bool = False,
        cross: str = "none",
        ffn_residual: str = "highway",
    ):
        super().__init__()
        self.dropout = dropout
        self.cross = cross
        positions = None if relative is None else RelativePositions(dim // heads, relative, dropout)
        self.self_attn = SystematicAttention(
            dim, heads, attention_dropout, shared_weights, positions
        )
        self.self_attn_norm = nn.LayerNorm(dim)
        if cross != "none":
            self.cross_attn = SystematicAttention(dim, heads, attention_dropout)
            self.cross_attn_norm = nn.LayerNorm(dim)
        self.ffn = FeedForward(dim, ffn_dim, gate_dim, dropout, activation_dropout, ffn_residual)

    def forward(
        self,
        x: Tensor,
        self_mask: Tensor | None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Cache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Run the layer.

        Args:
            x: streams ``(streams, batch, len, dim)``.
            self_mask: added to the self-attention's scores, ``(batch or 1, 1, len, len)``.
            memory: the encoder's streams ``(streams, batch, src_len, dim)``.
            memory_mask: ``(batch, 1, 1, src_len)``, added to the cross-attention's scores.
            cache: this layer's keys and values so far (incremental decoding).
            need_weights: return the word stream's cross-attention weights.

        Returns:
            ``(streams, batch, len, dim)`` and the weights ``(batch, heads, len, src_len)`` or None.
        """
        attended, _ = self.self_attn.self_attention(x, self_mask, cache)
        x = self.self_attn_norm(x + apply_dropout(attended, self.dropout, self.training))
        weights = None
        if self.cross != "none":
            assert memory is not None
            query, memory = (x[:1], memory[-1:]) if self.cross == "shared" else (x, memory)
            attended, weights = self.cross_attn.cross_attention(
                query, memory, memory_mask, cache, need_weights
            )
            x = self.cross_attn_norm(x + apply_dropout(attended, self.dropout, self.training))
        return self.ffn(x), weights
