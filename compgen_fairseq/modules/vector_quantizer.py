"""Vector quantization of word embeddings into classes of structural equivalence."""

from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

SIMILARITIES = ("distance", "cosine")


class Quantized(NamedTuple):
    """What :meth:`VectorQuantizer.quantize` returns."""

    codes: Tensor  # (batch, len), long
    logits: Tensor  # (batch, len, codes), float32: unnormalised log q(z|x)
    vectors: Tensor  # (batch, len, dim): the code embeddings
    codebook: Tensor  # (codes, dim), float32


def code_logits(x: Tensor, codebook: Tensor, similarity: str = "distance", sharpness: float = 1.0):
    """Unnormalised log-probabilities of each code, in float32.

    ``"distance"``: ``-|x - c|^2``; ``"cosine"``: ``cos(x, c)``; both times ``sharpness``.

    Args:
        x: ``(..., dim)``.
        codebook: ``(codes, dim)``.

    Returns:
        ``(..., codes)``.
    """
    with torch.autocast(x.device.type, enabled=False):
        x, codebook = x.float(), codebook.float()
        if similarity == "cosine":
            logits = F.linear(F.normalize(x, dim=-1), F.normalize(codebook, dim=-1))
        else:
            squares = codebook.square().sum(-1)
            logits = 2 * F.linear(x, codebook) - squares - x.square().sum(-1, keepdim=True)
        return logits if sharpness == 1.0 else logits * sharpness


class VectorQuantizer(nn.Module):
    """A trained codebook; nearest-neighbour look-up (paper, equation 1).

    The codebook is a parameter plus an offset: gradients and weight decay move the parameter,
    the exponential moving average moves the offset. An optimizer that keeps a master copy of the
    parameters (``--fp16``) therefore can't undo the moving average. Both stay in float32 when the
    model is cast to half precision.

    Args:
        num_codes: number of codes K.
        dim: width of a code.
        num_types: size of the vocabulary. The buffer ``type_codes``, -1 at first, holds the code
            of every type once the codes are frozen.
        similarity: ``"distance"`` (negative squared Euclidean distance; what the published
            figures were made with) or ``"cosine"`` (as the paper's appendix A.4 says).
        sharpness: factor on the similarities in the posterior q(z|x).
        ema_decay: decay of the moving average of the embeddings of each code; 1 for none.
        straight_through: pass the gradient of the code vectors to the embeddings; otherwise it
            goes to the codebook.

    Raises:
        ValueError: on a bad number of codes, similarity or decay.
    """

    type_codes: Tensor
    ema_offset: Tensor

    def __init__(
        self,
        num_codes: int,
        dim: int,
        num_types: int,
        similarity: str = "distance",
        sharpness: float = 1.0,
        ema_decay: float = 1.0,
        straight_through: bool = False,
    ):
        super().__init__()
        if num_codes < 2:
            raise ValueError(f"a codebook needs at least 2 codes, not {num_codes}")
        if similarity not in SIMILARITIES:
            raise ValueError(f"similarity is one of {', '.join(SIMILARITIES)}, not {similarity!r}")
        if not 0 <= ema_decay <= 1:
            raise ValueError(f"the EMA decay lies between 0 and 1, not {ema_decay}")
        self.similarity = similarity
        self.sharpness = sharpness
        self.ema_decay = ema_decay
        self.straight_through = straight_through
        weight = torch.empty(num_codes, dim)
        nn.init.kaiming_uniform_(weight)
        self.weight = nn.Parameter(F.normalize(weight, dim=-1))
        self.register_buffer("ema_offset", torch.zeros(num_codes, dim))
        self.register_buffer("type_codes", torch.full((num_types,), -1, dtype=torch.long))

    def _apply(self, fn, recurse=True):
        """Follow moves between devices, stay in float32."""
        kept = (self.weight.data, self.ema_offset)
        super()._apply(fn, recurse)
        self.weight.data = kept[0].to(self.weight.device)
        self.ema_offset = kept[1].to(self.ema_offset.device)
        return self

    @property
    def frozen(self) -> bool:
        """Whether every type's code is fixed."""
        return bool(self.type_codes[0] >= 0)

    def codebook(self) -> Tensor:
        """The codes, ``(codes, dim)``, float32."""
        return self.weight + self.ema_offset

    def quantize(self, x: Tensor, tokens: Tensor, codebook: Tensor) -> Quantized:
        """Replace each embedding by the nearest code; ties go to the lowest index.

        Args:
            x: embeddings ``(batch, len, dim)``.
            tokens: their types ``(batch, len)``; read only once the codes are frozen.
            codebook: :meth:`codebook`, computed once per forward pass.
        """
        logits = code_logits(x, codebook, self.similarity, self.sharpness)
        codes = self.type_codes[tokens] if self.frozen else first_argmax(logits)
        vectors = F.embedding(codes, codebook).type_as(x)
        if self.straight_through:
            vectors = StraightThrough.apply(vectors, x)
        return Quantized(codes, logits, vectors, codebook)

    @torch.no_grad()
    def update_ema(self, x: Tensor, codes: Tensor, keep: Tensor) -> None:
        """Move each used code towards the mean of its embeddings, ``c += (1 - decay)(mean - c)``.

        Counts and sums are added up over the data-parallel workers, so that replicas agree.

        Args:
            x: embeddings ``(batch, len, dim)``.
            codes: ``(batch, len)``.
            keep: which positions count, ``(batch, len)``, bool.
        """
        if self.ema_decay == 1:
            return
        num_codes = self.weight.size(0)
        weights = F.one_hot(codes, num_codes).float() * keep.unsqueeze(-1)
        weights = weights.view(-1, num_codes).t()
        sums = weights @ x.detach().float().reshape(-1, x.size(-1))
        counts = weights.sum(1, keepdim=True)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            packed = torch.cat([sums, counts], dim=1)
            torch.distributed.all_reduce(packed)
            sums, counts = packed.split([sums.size(1), 1], dim=1)
        moved = (sums / counts.clamp(min=1) - self.codebook()) * (1 - self.ema_decay)
        self.ema_offset.add_(moved * (counts > 0))


class StraightThrough(torch.autograd.Function):
    """The code vectors, exactly; their gradient goes to the embeddings instead."""

    @staticmethod
    def forward(ctx, vectors: Tensor, embeddings: Tensor) -> Tensor:
        return vectors.detach()

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[None, Tensor]:
        return None, grads[0]


def first_argmax(logits: Tensor) -> Tensor:
    """Argmax over the last dimension; ties go to the lowest index.

    ``torch.argmax`` leaves the choice among equal maxima open, so the index is found by hand.
    """
    top = logits >= logits.amax(-1, keepdim=True)
    index = torch.arange(logits.size(-1), device=logits.device)
    return torch.where(top, index, logits.size(-1)).amin(-1)
