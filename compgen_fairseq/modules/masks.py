"""Masks that are added to attention scores."""

import torch
from torch import Tensor


def lowest(dtype: torch.dtype, device: torch.device) -> float:
    """What hides a position from attention: finite, and twice it still is, so that a row of
    hidden positions (padding) stays free of NaN. Under autocast the scores have its type."""
    types = [dtype]
    if torch.is_autocast_enabled(device.type):
        types.append(torch.get_autocast_dtype(device.type))
    return max(torch.finfo(kind).min for kind in types) / 2


def padding_mask(keep: Tensor, dtype: torch.dtype) -> Tensor:
    """``(batch, len)`` of non-pads -> ``(batch, 1, 1, len)`` to add to attention scores."""
    mask = torch.zeros(keep.shape, dtype=dtype, device=keep.device)
    return mask.masked_fill_(~keep, lowest(dtype, keep.device))[:, None, None]


def causal_mask(length: int, like: Tensor) -> Tensor:
    """``(1, 1, length, length)`` to add to attention scores: no position sees a later one."""
    mask = like.new_full((length, length), lowest(like.dtype, like.device))
    return mask.triu(1)[None, None]


def same_words(tokens: Tensor, dtype: torch.dtype) -> Tensor:
    """``(batch, len)`` -> ``(batch, len, len)``: a row has equal shares, 1 in all, for the places
    of its word in its sentence."""
    same = tokens.unsqueeze(1).eq(tokens.unsqueeze(2)).to(dtype)
    return same / same.sum(-1, keepdim=True)
