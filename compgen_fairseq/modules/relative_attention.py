"""Multi-head attention with Shaw relative positions for keys and values.

Source: Shaw et al. (2018), "Self-Attention with Relative Position Representations".
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.dropout import apply_dropout


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
        device = self.keys.device
        query = torch.arange(key_len - query_len, key_len, device=device)
        key = torch.arange(key_len, device=device)
        distance = (key - query[:, None]).clamp(-self.max_distance, self.max_distance)
        index = distance + self.max_distance
        return tuple(  # type: ignore[return-value]
            apply_dropout(F.embedding(index, table), self.dropout, self.training)
            for table in (self.keys, self.values)
        )


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
    """
    if relative is None and not need_weights:
        return F.scaled_dot_product_attention(query, key, value, mask, dropout), None
    query = query * query.size(-1) ** -0.5
    scores = query @ key.transpose(-1, -2)
    if relative is not None:
        scores += torch.einsum("bhqd,qkd->bhqk", query, relative[0])
    if mask is not None:
        scores += mask
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).type_as(value)
    dropped = apply_dropout(weights, dropout, training=True)
    out = dropped @ value
    if relative is not None:
        positions = torch.einsum("bhqk,qkd->bhqd", dropped, relative[1])
        streams = value.size(-1) // positions.size(-1)
        out += positions if streams == 1 else positions.repeat(1, 1, 1, streams)
    return out, weights
