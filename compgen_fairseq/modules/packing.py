"""Words side by side, without the padding between their sentences."""

from torch import Tensor

WORTH = 0.8  # the share of words in a batch from which on packing saves little


class Packing:
    """Where the words of a batch are.

    Args:
        keep: the words, ``(batch, len)``, bool.
    """

    def __init__(self, keep: Tensor):
        self.shape = keep.shape
        self.places = keep.flatten().nonzero().squeeze(1)

    def pack(self, x: Tensor) -> Tensor:
        """``(streams, batch, len, dim)`` -> ``(streams, 1, words, dim)``."""
        return x.flatten(1, 2).index_select(1, self.places).unsqueeze(1)

    def unpack(self, x: Tensor) -> Tensor:
        """The inverse; padding is 0."""
        padded = x.new_zeros(len(x), self.shape.numel(), x.size(-1))
        return padded.index_copy(1, self.places, x.squeeze(1)).unflatten(1, self.shape)


def packing(keep: Tensor, training: bool) -> Packing | None:
    """A packing where it saves time: in training on a CPU, with much padding. (A GPU would wait for
    the number of words.)"""
    if not training or keep.device.type != "cpu" or keep.sum() > WORTH * keep.numel():
        return None
    return Packing(keep)
