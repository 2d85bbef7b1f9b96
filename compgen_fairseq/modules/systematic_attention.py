"""Attention over the two streams of SQ-Transformer: codes and words.

Jiang et al. (2024), "Inducing Systematicity in Transformers by Attending to Structurally Quantized
Embeddings", sections 3.2 (SAL) and 3.3 (SRL), appendix A.5 (decoder).

A tensor of streams has the shape ``(streams, batch, len, dim)``. With two streams the code stream
comes first, the word stream last; with one it is the word stream.
"""

from collections.abc import Callable

import torch
import torch.nn as nn
from torch import Tensor

from compgen_fairseq.modules.packing import Packing, pack, unpack
from compgen_fairseq.modules.relative_attention import RelativePositions, attend

Cache = dict[str, Tensor]


class SystematicAttention(nn.Module):
    """Multi-head attention of one or two streams that share all parameters.

    Args:
        dim: width of the model.
        heads: number of heads.
        dropout: dropout on the attention weights.
        shared_weights: True for SAL: queries and keys are the code stream's, the weights are
            computed once and applied to the values of each stream. False for SRL and plain
            attention: each stream attends with its own queries and keys.
        relative: relative positions, or None.

    Attributes:
        observer: is handed the last stream's weights ``(batch, heads, len, key_len)`` of every
            call while it is set, for analysis; None by default.

    Raises:
        ValueError: if ``dim`` is not a multiple of ``heads``.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        dropout: float = 0.0,
        shared_weights: bool = False,
        relative: RelativePositions | None = None,
    ):
        super().__init__()
        if dim % heads:
            raise ValueError(f"the width {dim} is not a multiple of the {heads} attention heads")
        self.heads = heads
        self.head_dim = dim // heads
        self.dropout = dropout
        self.shared_weights = shared_weights
        self.relative = relative
        self.observer: Callable[[Tensor], None] | None = None
        self.qk_proj = nn.Linear(dim, 2 * dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        for part in self.qk_proj.weight.chunk(2):
            nn.init.xavier_uniform_(part, gain=2**-0.5)
        nn.init.xavier_uniform_(self.v_proj.weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)  # the others keep nn.Linear's biases, as published

    def _heads(self, x: Tensor) -> Tensor:
        """``(streams, batch, len, dim)`` -> ``(batch, heads, len, streams * head_dim)`` when the
        weights are shared, else ``(streams * batch, heads, len, head_dim)``."""
        x = x.view(*x.shape[:3], self.heads, self.head_dim)
        if self.shared_weights:  # to (batch, heads, len, streams, head_dim)
            return x.permute(1, 3, 2, 0, 4).flatten(-2)
        return x.flatten(0, 1).transpose(1, 2)

    def _merge(self, x: Tensor, streams: int) -> Tensor:
        """The inverse of :meth:`_heads`, on the attention's output."""
        batch, length = x.size(0), x.size(2)
        if self.shared_weights:  # to (streams, batch, len, heads, head_dim)
            x = x.view(batch, self.heads, length, streams, self.head_dim).permute(3, 0, 2, 1, 4)
        else:  # to (streams * batch, len, heads, head_dim)
            x = x.transpose(1, 2)
        return x.reshape(streams, -1, length, self.heads * self.head_dim)

    def _show(self, weights: Tensor | None, batch: int) -> None:
        """Hand the last stream's weights to the observer, if there is one."""
        if self.observer is not None and weights is not None:
            self.observer(weights[-batch:])

    def self_attention(
        self,
        x: Tensor,
        mask: Tensor | None,
        cache: Cache | None = None,
        packed: Packing | None = None,
        values: Tensor | None = None,
    ) -> Tensor:
        """Self-attention of each stream.

        Args:
            x: streams ``(streams, batch, len, dim)``.
            mask: added to the scores; ``(batch or 1, 1, len, len)``.
            cache: the keys and values of the positions before ``x`` (incremental decoding);
                extended in place.
            packed: with it ``x``, and what is returned, is ``(streams, 1, words, dim)``.
            values: the streams whose values are averaged, shape as of ``x``; all of ``x`` by
                default, fewer only with shared weights.

        Returns:
            as many streams as ``values`` has, ``(streams, batch, len, dim)``.
        """
        values = x if values is None else values
        streams = values.size(0)
        if mask is not None and mask.size(0) > 1 and not self.shared_weights and streams > 1:
            mask = mask.repeat(streams, 1, 1, 1)
        sources = x[:1] if self.shared_weights else x
        query, key = map(self._heads, unpack(self.qk_proj(sources), packed).chunk(2, dim=-1))
        value = self._heads(unpack(self.v_proj(values), packed))
        if cache is not None:
            if "key" in cache:
                key = torch.cat([cache["key"], key], dim=2)
                value = torch.cat([cache["value"], value], dim=2)
            cache["key"], cache["value"] = key, value
        relative = self.relative(query.size(2), key.size(2)) if self.relative is not None else None
        dropout = self.dropout if self.training else 0.0
        observed = self.observer is not None
        out, weights = attend(query, key, value, mask, relative, dropout, observed)
        out = self._merge(out, streams)
        self._show(weights, out.size(1))
        return self.out_proj(pack(out, packed))

    def cross_attention(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        cache: Cache | None = None,
        need_weights: bool = False,
        packed: Packing | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention to the encoder's output.

        Args:
            x: queries ``(streams, batch, len, dim)``; one stream when the weights are shared.
            memory: ``(streams, batch, src_len, dim)``, as many streams as ``x``.
            mask: added to the scores; ``(batch, 1, 1, src_len)``.
            cache: keys and values of ``memory``, computed at the first step.
            need_weights: return the weights of the last stream.
            packed: as of :meth:`self_attention`.

        Returns:
            ``(streams, batch, len, dim)`` and the last stream's weights
            ``(batch, heads, len, src_len)`` or None.
        """
        streams = x.size(0)
        if mask is not None and streams > 1:
            mask = mask.repeat(streams, 1, 1, 1)
        weights, biases = self.qk_proj.weight.chunk(2), self.qk_proj.bias.chunk(2)
        query = nn.functional.linear(x, weights[0], biases[0])
        query = self._heads(unpack(query, packed))
        if cache is not None and "memory_key" in cache:
            key, value = cache["memory_key"], cache["memory_value"]
        else:
            key = self._heads(nn.functional.linear(memory, weights[1], biases[1]))
            value = self._heads(self.v_proj(memory))
            if cache is not None:
                cache["memory_key"], cache["memory_value"] = key, value
        dropout = self.dropout if self.training else 0.0
        need_weights = need_weights or self.observer is not None
        out, shares = attend(query, key, value, mask, None, dropout, need_weights)
        out = self._merge(out, streams)
        self._show(shares, out.size(1))
        if shares is not None:
            shares = shares[-out.size(1) :]
        return self.out_proj(pack(out, packed)), shares
