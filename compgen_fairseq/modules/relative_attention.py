"""Multi-head attention with Shaw relative positions for keys and values.

Source: Shaw et al. (2018), "Self-Attention with Relative Position Representations".
"""

from functools import lru_cache

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.dropout import apply_dropout
from compgen_fairseq.modules.precision import wide


class RelativePositions(nn.Module):
    """One pair of tables of relative position embeddings, shared by the heads of a layer.

    Args:
        head_dim: width of one head.
        max_distance: distances are clipped to ``[-max_distance, max_distance]``.
        dropout: dropout on the looked-up embeddings.

    The tables start at N(0, 1), so that positions count as much as contents from the first update
    on (as in the published runs).
    """

    def __init__(self, head_dim: int, max_distance: int = 20, dropout: float = 0.0):
        super().__init__()
        self.max_distance = max_distance
        self.dropout = dropout
        self.keys = nn.Parameter(torch.randn(2 * max_distance + 1, head_dim))
        self.values = nn.Parameter(torch.randn(2 * max_distance + 1, head_dim))

    def forward(self, query_len: int, key_len: int) -> tuple[Tensor, Tensor]:
        """Embeddings of every (query, key) pair; the queries are the last ``query_len`` positions.

        Returns:
            ``(keys, values)``, each of shape ``(query_len, key_len, head_dim)``.
        """
        index = _distances(query_len, key_len, self.max_distance, self.keys.device)
        return tuple(  # type: ignore[return-value]
            apply_dropout(F.embedding(index, table), self.dropout, self.training)
            for table in (self.keys, self.values)
        )


@lru_cache(maxsize=8)  # of a batch's lengths; every layer asks for the same
def _distances(query_len: int, key_len: int, longest: int, device: torch.device) -> Tensor:
    """How far each key is from each query, clipped, from 0 on: ``(query_len, key_len)``."""
    with torch.inference_mode(False):  # training may come after
        query = torch.arange(key_len - query_len, key_len, device=device)
        key = torch.arange(key_len, device=device)
        return (key - query[:, None]).clamp(-longest, longest) + longest


def _by_position(x: Tensor, table: Tensor) -> Tensor:
    """``(batch * heads, query_len, m)`` times each query's ``(query_len, m, n)``, which gives
    ``(batch * heads, query_len, n)``."""
    return torch.bmm(x.transpose(0, 1), table).transpose(0, 1)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    relative: tuple[Tensor, Tensor] | None = None,
    dropout: float = 0.0,
    need_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Scaled dot-product attention with optional relative positions.

    The values may be several streams side by side (SAL): their width is then a multiple of the
    head's, the weights are computed once, and the relative values are added to each stream.

    Args:
        query: ``(batch, heads, query_len, head_dim)``.
        key: ``(batch, heads, key_len, head_dim)``.
        value: ``(batch, heads, key_len, streams * head_dim)``.
        mask: added to the scores, broadcastable to ``(batch, heads, query_len, key_len)``.
        relative: key and value embeddings, each ``(query_len, key_len, head_dim)``.
        dropout: dropout probability on the weights; 0 in evaluation is the caller's to say.
        need_weights: return the weights too.

    Returns:
        ``(batch, heads, query_len, streams * head_dim)`` and the weights
        ``(batch, heads, query_len, key_len)`` or None.

    Raises:
        ValueError: on a mask of truth values.
    """
    if mask is not None and mask.dtype == torch.bool:
        raise ValueError("the mask is added to the scores: numbers, not truth values")
    if relative is None and not need_weights:
        return F.scaled_dot_product_attention(query, key, value, mask, dropout), None
    batch, (query, key, value) = query.shape[:2], (x.flatten(0, 1) for x in (query, key, value))
    query = query * query.size(-1) ** -0.5
    if relative is None:
        scores = query @ key.transpose(1, 2)
    else:
        distant = _by_position(query, relative[0].transpose(1, 2))
        scores = torch.baddbmm(distant, query, key.transpose(1, 2))
    scores = scores.unflatten(0, batch)
    if mask is not None:
        scores = scores + mask  # in place, on a view, would copy in the backward pass
    weights = F.softmax(scores, dim=-1, dtype=wide(scores)).type_as(value)
    dropped = apply_dropout(weights, dropout, training=True).flatten(0, 1)
    if relative is None:
        out = dropped @ value
    else:
        positions = _by_position(dropped, relative[1])
        streams = value.size(-1) // positions.size(-1)
        if streams > 1:
            positions = positions.repeat(1, 1, streams)
        out = torch.baddbmm(positions, dropped, value)
    return out.unflatten(0, batch), weights
