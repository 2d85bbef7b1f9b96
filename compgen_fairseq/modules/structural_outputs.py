"""What a model hands to the structural criterion besides its word logits."""

from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class SideOutputs:
    """The structural tensors of one side, encoder or decoder.

    Shapes: B sentences, T positions, D width, K codes, N predicted positions.
    On the decoder's side the tokens are ``prev_output_tokens``: the same tokens as the targets,
    one position later.
    """

    embeddings: Tensor  # (B, T, D): scaled word embeddings after dropout
    keep: Tensor  # (B, T) bool: non-pad positions
    codes: Tensor  # (B, T) long
    posterior: Tensor  # (B, T, K): logits of q(z|x)
    codebook: Tensor  # (K, D)
    next_codes: Tensor  # (B, T) long: code of the token that follows each position
    next_keep: Tensor  # (B, T) bool: positions that have a next token
    final: Tensor  # (streams, B, T, D): the last layer's output
    prior: Tensor | None = None  # (N, K): logits of p(z|context)
    predicted: Tensor | None = None  # (N, K): logits of q(z|x) of the tokens that p predicts
    layers: list[Tensor] = field(default_factory=list)  # each (streams, B, T, D)


@dataclass
class StructuralOutputs:
    """Both sides."""

    source: SideOutputs
    target: SideOutputs
