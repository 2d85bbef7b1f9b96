"""What the structural criterion reads of a model besides its word logits."""

from dataclasses import dataclass

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
    vectors: Tensor  # (B, T, D): the codes' vectors
    posterior: Tensor  # (B, T, K): logits of q(z|x)
    codebook: Tensor  # (K, D)
    next_codes: Tensor  # (B, T) long: code of the token that follows each position
    next_keep: Tensor  # (B, T) bool: positions that have a next token
    layers: list[Tensor]  # each (streams, B, T, D): every layer's output with SRL, else the last's
    prior: Tensor | None = None  # (N, K (+ 1)): logits of p(z|context)
    predicted: Tensor | None = None  # (N, K): logits of q(z|x) of the tokens that p predicts
    marginal: Tensor | None = None  # (B, T) bool: whose q(z|x) are averaged for H(Z); None: all


@dataclass
class StructuralOutputs:
    """Both sides."""

    source: SideOutputs
    target: SideOutputs
