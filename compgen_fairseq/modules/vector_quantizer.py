"""Vector quantization of word embeddings into classes of structural equivalence."""

from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from fairseq.distributed.utils import get_global_world_size
from torch import Tensor

SIMILARITIES = ("distance", "cosine")


class Quantized(NamedTuple):
    """What :meth:`VectorQuantizer.quantize` returns."""

    codes: Tensor  # (batch, len), long
    logits: Tensor  # (batch, len, codes), float32: unnormalised log q(z|x)
    vectors: Tensor  # (batch, len, dim): the code embeddings of the code stream
    raw: Tensor  # (batch, len, dim): the same; the gradient goes to the codebook
    codebook: Tensor  # (codes, dim), float32
    mask_code: Tensor  # (dim,), float32; meaningless where there is no [MASK] code


def code_logits(x: Tensor, codebook: Tensor, similarity: str = "distance") -> Tensor:
    """Unnormalised log-probabilities of each code, in float32.

    ``"distance"``: ``-|x - c|^2``; ``"cosine"``: ``cos(x, c)``.

    Args:
        x: ``(..., dim)``.
        codebook: ``(codes, dim)``.

    Returns:
        ``(..., codes)``.
    """
    with torch.autocast(x.device.type, enabled=False):
        x, codebook = x.float(), codebook.float()
        if similarity == "cosine":
            return F.linear(F.normalize(x, dim=-1), F.normalize(codebook, dim=-1))
        squares = codebook.square().sum(-1)
        return 2 * F.linear(x, codebook) - squares - x.square().sum(-1, keepdim=True)


class VectorQuantizer(nn.Module):
    """A trained codebook; nearest-neighbour look-up (paper, equation 1).

    The moving average moves the parameter itself, so that weight decay shrinks the whole code. In
    half precision (``--fp16``, ``--bf16``) the optimizer keeps a master copy, which would undo
    that: there the average moves an offset to the parameter, which weight decay does not shrink.
    Parameter and offset stay in float32.

    Args:
        num_codes: number of codes K.
        dim: width of a code.
        num_types: size of the vocabulary. The buffer ``type_codes``, -1 at first, holds the code
            of every type once the codes are frozen.
        similarity: ``"distance"`` (negative squared Euclidean distance; what the published
            figures were made with) or ``"cosine"`` (as the paper's appendix A.4 says).
        ema_decay: decay of the moving average of the embeddings of each code; 1 for none.
        straight_through: pass the gradient of the code vectors to the embeddings; otherwise it
            goes to the codebook.
        mask_code: keep one vector more, the [MASK] code, which no token is quantized to.

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
        ema_decay: float = 1.0,
        straight_through: bool = False,
        mask_code: bool = False,
    ):
        super().__init__()
        if num_codes < 2:
            raise ValueError(f"a codebook needs at least 2 codes, not {num_codes}")
        if similarity not in SIMILARITIES:
            raise ValueError(f"similarity is one of {', '.join(SIMILARITIES)}, not {similarity!r}")
        if not 0 <= ema_decay <= 1:
            raise ValueError(f"the EMA decay lies between 0 and 1, not {ema_decay}")
        self.num_codes = num_codes
        self.similarity = similarity
        self.ema_decay = ema_decay
        self.straight_through = straight_through
        weight = torch.empty(num_codes + mask_code, dim)
        nn.init.kaiming_uniform_(weight)
        self.weight = nn.Parameter(F.normalize(weight, dim=-1))
        self.register_buffer("ema_offset", torch.zeros_like(weight))
        self.register_buffer("type_codes", torch.full((num_types,), -1, dtype=torch.long))
        self.frozen = False

    def _apply(self, fn, recurse=True):
        """Follow moves between devices, stay in float32."""

        def move(x):
            moved = fn(x)
            return moved if moved.dtype == x.dtype else x.to(moved.device)

        return super()._apply(move, recurse)

    def _load_from_state_dict(self, *args, **kwargs):
        """Notice frozen codes once, here: a look at the buffer in every step would make a GPU wait.

        (Arguments and errors are PyTorch's.)
        """
        super()._load_from_state_dict(*args, **kwargs)
        self.frozen = bool((self.type_codes >= 0).all())

    def freeze(self, codes: Tensor) -> None:
        """Fix the code of every type for good; ``codes`` is ``(types,)``, long.

        Raises:
            ValueError: on a code that there is not.
        """
        if not (codes.ge(0) & codes.lt(self.num_codes)).all():
            raise ValueError(f"every type needs a code from 0 to {self.num_codes - 1}")
        self.type_codes.copy_(codes)
        self.frozen = True

    def vectors(self) -> Tensor:
        """The codes, and after them the [MASK] code where there is one, ``(codes (+ 1), dim)``."""
        return self.weight + self.ema_offset

    def codebook(self) -> Tensor:
        """The codes, ``(codes, dim)``, float32."""
        return self.vectors()[: self.num_codes]

    def quantize(self, x: Tensor, tokens: Tensor) -> Quantized:
        """Replace each embedding by the nearest code; ties go to the lowest index.

        Args:
            x: embeddings ``(batch, len, dim)``.
            tokens: their types ``(batch, len)``; read only once the codes are frozen.
        """
        vectors = self.vectors()
        codebook = vectors[: self.num_codes]
        logits = code_logits(x, codebook, self.similarity)
        codes = self.type_codes[tokens] if self.frozen else logits.argmax(-1)
        raw = F.embedding(codes, codebook).type_as(x)
        # the code vectors, exactly; straight through, their gradient goes to the embeddings
        stream = raw.detach() + (x - x.detach()) if self.straight_through else raw
        return Quantized(codes, logits, stream, raw, codebook, vectors[-1])

    @torch.no_grad()
    def update_ema(self, x: Tensor, codes: Tensor, keep: Tensor) -> None:
        """Move every code ``c`` towards a unit vector ``u``: ``c += (1 - decay)(u - c)``.

        ``u`` has the direction of the mean of the code's L2-normalised embeddings, or, where the
        step has none of them, of ``c`` itself (established from the authors' code; their padding
        counts as embeddings of length 0). Sums are added up over the data-parallel workers, so
        that replicas agree.

        Args:
            x: embeddings ``(batch, len, dim)``.
            codes: ``(batch, len)``.
            keep: which positions count, ``(batch, len)``, bool.
        """
        if self.ema_decay == 1:
            return
        current = self.vectors()
        every = torch.arange(len(current), device=codes.device)
        members = (codes.unsqueeze(-1) == every) & keep.unsqueeze(-1)
        members = members.float().flatten(0, 1).t()  # (codes (+ 1), tokens)
        with torch.autocast(x.device.type, enabled=False):
            sums = members @ F.normalize(x.float(), dim=-1).flatten(0, 1)
        counts = members.sum(1, keepdim=True)
        if get_global_world_size() > 1:
            packed = torch.cat([sums, counts], dim=1)
            torch.distributed.all_reduce(packed)
            sums, counts = packed.split([sums.size(1), 1], dim=1)
        target = F.normalize(torch.where(counts > 0, sums, current), dim=-1)
        moved = (target - current) * (1 - self.ema_decay)
        self.ema_offset.add_(moved * counts.any())  # a dummy batch counts for nothing
        if x.dtype == torch.float32:
            self.weight.data.add_(self.ema_offset)
            self.ema_offset.zero_()
