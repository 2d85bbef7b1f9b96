"""Post-norm Transformer layers over one or two streams, with a highway gate on the FFN."""

from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.dropout import apply_dropout
from compgen_fairseq.modules.packing import Packing
from compgen_fairseq.modules.relative_attention import RelativePositions
from compgen_fairseq.modules.systematic_attention import Cache, SystematicAttention


class FeedForward(nn.Module):
    """The FFN sublayer with its highway gate and LayerNorm.

    ``LN(x * g + FFN(x) * (1 - g))`` with ``g = sigmoid(FFN_g(x))``, a second two-layer network
    (the backbone of the published runs, baseline included). Weights start as ``nn.Linear``'s.

    Args:
        dim: width of the model.
        ffn_dim: inner width of the FFN.
        gate_dim: inner width of the gate's network.
        dropout: dropout on the FFN's output and on the gate's hidden layer.
        activation_dropout: dropout after the FFN's ReLU.
    """

    def __init__(
        self,
        dim: int,
        ffn_dim: int,
        gate_dim: int,
        dropout: float = 0.0,
        activation_dropout: float = 0.0,
    ):
        super().__init__()
        self.widths = [ffn_dim, gate_dim]
        self.dropout = dropout
        self.activation_dropout = activation_dropout
        self.inner = nn.Linear(dim, ffn_dim + gate_dim)  # both networks' first layers
        self.outer = nn.Linear(ffn_dim, dim)
        self.gate = nn.Linear(gate_dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        """``(..., dim)`` -> ``(..., dim)``."""
        hidden, gate_hidden = F.relu(self.inner(x)).split(self.widths, dim=-1)
        hidden = apply_dropout(hidden, self.activation_dropout, self.training)
        out = apply_dropout(self.outer(hidden), self.dropout, self.training)
        gate_hidden = apply_dropout(gate_hidden, self.dropout, self.training)
        gate = torch.sigmoid(self.gate(gate_hidden))
        out, gate = out.type_as(x), gate.type_as(x)  # --amp mixes types
        return self.norm(torch.addcmul(out, gate, x - out))  # cheaper backwards than lerp


class StreamLayer(nn.Module):
    """One encoder or decoder layer, the same for every stream.

    Args:
        dim: width of the model.
        ffn_dim: inner width of the FFN.
        gate_dim: inner width of the highway gate's network.
        heads: attention heads.
        dropout: dropout on relative positions and on the outputs of sublayers.
        attention_dropout: dropout on attention weights.
        activation_dropout: dropout after the FFN's ReLU.
        shared_weights: SAL's self-attention (queries and keys from the code stream).
        cross: ``"none"`` (an encoder's layer), ``"own"`` (each stream queries its own stream of
            the encoder: SRL, plain, and SAL as in the paper's appendix A.5) or ``"shared"`` (the
            code stream queries the encoder's word stream once, for both residuals).
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
        shared_weights: bool = False,
        cross: str = "none",
    ):
        super().__init__()
        self.dropout = dropout
        self.cross = cross
        positions = RelativePositions(dim // heads, dropout=dropout)
        self.self_attn = SystematicAttention(
            dim, heads, attention_dropout, shared_weights, positions
        )
        self.self_attn_norm = nn.LayerNorm(dim)
        if cross != "none":
            self.cross_attn = SystematicAttention(dim, heads, attention_dropout)
            self.cross_attn_norm = nn.LayerNorm(dim)
        self.ffn = FeedForward(dim, ffn_dim, gate_dim, dropout, activation_dropout)

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        """Run the layer; arguments and results as of :meth:`attend`, which leaves out the FFN."""
        x, weights = self.attend(*args, **kwargs)
        return self.ffn(x), weights

    def attend(
        self,
        x: Tensor,
        self_mask: Tensor | None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Cache | None = None,
        need_weights: bool = False,
        packed: Packing | None = None,
        words_only: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attention sublayers.

        Args:
            x: streams ``(streams, batch, len, dim)``.
            self_mask: added to the self-attention's scores, ``(batch or 1, 1, len, len)``.
            memory: the encoder's streams ``(streams, batch, src_len, dim)``.
            memory_mask: ``(batch, 1, 1, src_len)``, added to the cross-attention's scores.
            cache: this layer's keys and values so far (incremental decoding).
            need_weights: return the word stream's cross-attention weights.
            packed: with it ``x``, and what is returned, is ``(streams, 1, words, dim)``.
            words_only: return the word stream alone; of SAL's code stream only what the word
                stream needs of it is computed.

        Returns:
            ``(streams, batch, len, dim)`` and the weights ``(batch, heads, len, src_len)`` or None.
        """
        kept = x[-1:] if words_only and self.cross != "shared" else x
        read = x if self.self_attn.shared_weights else kept
        attended = self.self_attn.self_attention(read, self_mask, cache, packed, kept)
        x = self.self_attn_norm(kept + apply_dropout(attended, self.dropout, self.training))
        weights = None
        if self.cross != "none":
            assert memory is not None
            shared = self.cross == "shared"
            query, memory = (x[:1], memory[-1:]) if shared else (x, memory[-len(x) :])
            attended, weights = self.cross_attn.cross_attention(
                query, memory, memory_mask, cache, need_weights, packed
            )
            kept = x[-1:] if words_only else x
            x = self.cross_attn_norm(kept + apply_dropout(attended, self.dropout, self.training))
        return x, weights
