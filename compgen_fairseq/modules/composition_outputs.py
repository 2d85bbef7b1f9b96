"""What a CAT encoder hands to its criterion besides its last states."""

from dataclasses import dataclass

from torch import Tensor


@dataclass
class CompositionLayer:
    """The three representations of one layer. B sentences, T positions, D width, K codes."""

    cont: Tensor  # (B, T, D): contextual, the plain Transformer layer's output
    comp: Tensor  # (B, T, D): compositional, a weighted sum of codes
    mix: Tensor  # (B, T, D): both, enhanced; the next layer's input
    attention: Tensor  # (B, T, K): the weights of the codes, not negative, many of them 0


@dataclass
class CompositionOutputs:
    """Every layer of an encoder, first to last, and which positions are words."""

    layers: list[CompositionLayer]
    keep: Tensor  # (B, T) bool: non-pad positions
