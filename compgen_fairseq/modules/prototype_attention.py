"""Prototype attention: each token attends to the prototypes of its own type and nothing else."""

from typing import Any, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from fairseq.modules import FairseqDropout
from torch import Tensor

from compgen_fairseq.modules.precision import wide


class Selection(NamedTuple):
    """The tokens of a batch that have prototypes, and those prototypes.

    Args:
        rows: the tokens with prototypes, as indices into ``(len, batch)`` flattened, ``(n,)``.
        which: for each of them its type, as an index into ``vectors``, ``(n,)``.
        vectors: the prototypes of each type in the batch, ``(u, k, dim)``.
        counts: how many of the ``k`` are prototypes, ``(u,)``.
    """

    rows: Tensor
    which: Tensor
    vectors: Tensor
    counts: Tensor

    def __deepcopy__(self, memo: Any) -> "Selection":
        """Itself: a copy of a model, whose layers have the last batch's, needs no copy of it."""
        return self


class PrototypeTable(nn.Module):
    """The prototypes of each type of a vocabulary.

    It is empty until it is filled, and takes the size of what it is filled with or loaded from,
    so that a checkpoint holds the prototypes there are and needs no other file.

    Args:
        vocabulary: number of types, with or without prototypes.
        dim: width of a prototype.
        fingerprint: a number that tells the vocabulary's dictionary from others.
        dropout: dropout on the prototypes, drawn once for each type in a batch, so that keys and
            values are computed once for each (the authors' is likely drawn for each token).

    Attributes:
        vectors: ``(types with prototypes, k, dim)``; rows behind the count are zero.
        counts: how many prototypes a type has, at most ``k``, ``(types with prototypes,)``.
        slots: the row of each type in ``vectors``, -1 for a type without, ``(vocabulary,)``.
        restarted: the update before which the optimizer started anew for them, -1 for none.
    """

    vectors: Tensor
    counts: Tensor
    slots: Tensor
    fingerprint: Tensor
    restarted: Tensor

    def __init__(self, vocabulary: int, dim: int, fingerprint: int = 0, dropout: float = 0.0):
        super().__init__()
        self.register_buffer("vectors", torch.zeros(0, 1, dim))
        self.register_buffer("counts", torch.zeros(0, dtype=torch.int32))
        self.register_buffer("slots", torch.full((vocabulary,), -1, dtype=torch.int32))
        self.register_buffer("fingerprint", torch.tensor(fingerprint))
        self.register_buffer("restarted", torch.tensor(-1))
        self.dropout = FairseqDropout(dropout, module_name="PrototypeTable")

    @property
    def filled(self) -> bool:
        """Whether there are prototypes."""
        return len(self.counts) > 0

    def fill(self, types: Tensor, vectors: Tensor, counts: Tensor) -> None:
        """Take these prototypes.

        Args:
            types: the types that have some, ``(n,)``, all different.
            vectors: ``(n, k, dim)``.
            counts: how many of the ``k`` are prototypes, ``(n,)``, from 1 to ``k``.

        Raises:
            ValueError: on shapes, types or counts that don't fit.
        """
        dim = self.vectors.size(-1)
        if vectors.shape[::2] != (len(types), dim) or len(counts) != len(types):
            raise ValueError(f"prototypes {tuple(vectors.shape)} for {len(types)} types, dim {dim}")
        vocabulary, k = len(self.slots), vectors.size(1)
        if len(set(range(vocabulary)).intersection(types.tolist())) < len(types):
            raise ValueError(f"the types are different numbers from 0 to {vocabulary - 1}")
        if not (counts.ge(1) & counts.le(k)).all():
            raise ValueError(f"a type has from 1 to {k} prototypes")
        self.slots.fill_(-1)
        self.slots[types.to(self.slots.device)] = torch.arange(len(types)).to(self.slots)
        vectors = vectors.to(self.vectors)
        self._parameters.pop("vectors", None)  # drawn before
        self.register_buffer("vectors", vectors)
        self.counts = counts.to(self.counts)

    def draw(self, types: Tensor, k: int) -> None:
        """Make ``k`` trained prototypes for each of the types, ``(n,)``, drawn at random."""
        dim = self.vectors.size(-1)
        self.fill(types, torch.zeros(len(types), k, dim), torch.full_like(types, k))
        vectors = nn.Parameter(torch.empty_like(self.vectors).normal_(std=dim**-0.5))
        del self.vectors
        self.vectors = vectors

    def select(self, tokens: Tensor) -> Selection | None:
        """Look up the tokens of a batch, ``(batch, len)``; None from an empty table."""
        if not self.filled:
            return None
        slots = self.slots[tokens.t()].flatten()  # (len * batch,), as the states are laid out
        rows = slots.ge(0).nonzero().squeeze(1)
        types, which = slots[rows].unique(return_inverse=True)
        return Selection(rows, which, self.dropout(self.vectors[types]), self.counts[types])

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        loaded: dict[str, Any] = {name: state_dict.get(prefix + name) for name in self.state_dict()}
        if all(value is not None for value in loaded.values()):
            wide, errors = loaded["vectors"].size(-1), args[-1]  # the loader's list
            if int(loaded["fingerprint"]) != int(self.fingerprint):
                errors.append(
                    "the prototypes belong to a dictionary with other types, or in another order, "
                    "than this one: use the dictionary that the model was trained with"
                )
                return
            if wide != self.vectors.size(-1):
                errors.append(f"the prototypes are {wide} wide, the model {self.vectors.size(-1)}")
                return
            for name in ("vectors", "counts"):
                own = getattr(self, name)
                if not isinstance(own, nn.Parameter):
                    setattr(self, name, own.new_empty(loaded[name].shape))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class PrototypeAttention(nn.Module):
    """The prototype-attention sublayer (equation 6), with its own residual and LayerNorm.

    For a token ``x`` of a type with prototypes ``C``: ``LN(x + MHA(x, C, C))``.  Any other token
    passes through untouched.  A token meets only its own ``k`` prototypes, gathered, so that the
    cost is O(kT); keys and values are computed once per type in the batch.

    Yin et al. (2022), "Categorizing Semantic Representations for Neural Machine Translation".

    Args:
        dim: width of the model.
        heads: number of attention heads.
        dropout: dropout on what is added.
        attention_dropout: dropout on the attention weights.
        identity: start as the identity (beyond the paper): ``x + MHA(x, C, C)`` with an output
            projection of zeros. It has no LayerNorm, which undoes the gain and bias that the
            LayerNorm before it has learned: ``LN(x + 0)`` is not ``x``.

    Raises:
        ValueError: if the heads don't divide the width.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        identity: bool = False,
    ):
        super().__init__()
        if dim % heads:
            raise ValueError(f"{heads} attention heads don't divide a width of {dim}")
        self.heads = heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.output = nn.Linear(dim, dim)
        self.norm = nn.Identity() if identity else nn.LayerNorm(dim)
        self.dropout = FairseqDropout(dropout, module_name="PrototypeAttention")
        self.attention_dropout = FairseqDropout(attention_dropout, module_name="PrototypeAttention")
        for part in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(part.weight, gain=2**-0.5)  # as fairseq does, biases aside
        nn.init.xavier_uniform_(self.output.weight)
        if identity:
            nn.init.zeros_(self.output.weight)
        for part in (self.query, self.key, self.value, self.output):
            nn.init.zeros_(part.bias)

    def forward(self, x: Tensor, prototypes: Selection) -> Tensor:
        """``(len, batch, dim)`` -> ``(len, batch, dim)``."""
        flat = x.reshape(-1, x.size(-1))  # (len * batch, dim)
        tokens = flat.index_select(0, prototypes.rows)
        fused = self.norm(tokens + self.dropout(self.attend(tokens, prototypes)))
        return flat.index_copy(0, prototypes.rows, fused).view_as(x)

    def attend(self, x: Tensor, prototypes: Selection) -> Tensor:
        """``MHA(x, C, C)`` for tokens ``(n, dim)``."""
        _, which, vectors, counts = prototypes
        n, dim = x.shape
        k = vectors.size(1)
        split = (n, k, self.heads, dim // self.heads)
        # of each type once, (types, k * dim), then of each token, (n, k, heads, head_dim)
        key = self.key(vectors).flatten(1).index_select(0, which).view(split)
        value = self.value(vectors).flatten(1).index_select(0, which).view(split)
        query = self.query(x).view(n, 1, *split[2:]) * split[-1] ** -0.5  # (n, 1, heads, head_dim)
        scores = (query * key).sum(-1)  # (n, k, heads)
        absent = torch.arange(k, device=x.device) >= counts.unsqueeze(1)
        scores = scores.masked_fill(absent[which].unsqueeze(-1), float("-inf"))
        weights = self.attention_dropout(F.softmax(scores, dim=1, dtype=wide(scores)).type_as(x))
        return self.output((weights.unsqueeze(-1) * value).sum(1).view(n, dim))
