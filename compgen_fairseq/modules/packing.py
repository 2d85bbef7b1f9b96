"""Words side by side, without the padding between their sentences."""

from typing import NamedTuple

import torch
from torch import Tensor

WORTH = 0.8  # the share of words in a batch from which on packing saves little


class Packing(NamedTuple):
    """Where the words of a batch are."""

    shape: torch.Size  # (batch, len)
    places: Tensor  # (words,), long: of the batch * len positions


def packing(keep: Tensor, training: bool) -> Packing | None:
    """A packing of words, ``(batch, len)``, where it saves time: in training on a CPU, with much
    padding. (A GPU would wait for the number of words.)"""
    if not training or keep.device.type != "cpu" or keep.sum() > WORTH * keep.numel():
        return None
    return Packing(keep.shape, keep.flatten().nonzero().squeeze(1))


def pack(x: Tensor, packed: Packing | None) -> Tensor:
    """``(streams, batch, len, dim)`` -> ``(streams, 1, words, dim)``; without a packing ``x``."""
    if packed is None:
        return x
    return x.flatten(1, 2).index_select(1, packed.places).unsqueeze(1)


def unpack(x: Tensor, packed: Packing | None) -> Tensor:
    """The inverse of :func:`pack`; padding is 0."""
    if packed is None:
        return x
    padded = x.new_zeros(len(x), packed.shape.numel(), x.size(-1))
    return padded.index_copy(1, packed.places, x.squeeze(1)).unflatten(1, packed.shape)
