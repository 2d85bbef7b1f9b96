"""Other batches than those of one length: repeated pairs dealt evenly, or lengths mixed."""

import functools
import hashlib
from typing import Any

import numpy as np
from fairseq.data import BaseWrapperDataset, FairseqDataset


class Wrapper(BaseWrapperDataset):
    """Hands on what fairseq's wrapper leaves out, too."""

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.dataset.num_tokens_vec(indices)

    @property
    def supports_fetch_outside_dataloader(self) -> bool:
        return self.dataset.supports_fetch_outside_dataloader


class MixedLengthsDataset(Wrapper):
    """A parallel corpus whose batches hold sentences of any length, drawn anew each epoch.

    Sorted by length, sentences of one template lie side by side, and a batch says little about the
    others.  ``--max-tokens`` counts padding, so mixed batches hold about half as many sentences.

    Args:
        dataset: the parallel corpus to wrap.
    """

    def ordered_indices(self) -> np.ndarray:
        return np.random.permutation(len(self))  # seeded by fairseq with seed and epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return False


class SpreadRepeatsDataset(Wrapper):
    """A parallel corpus whose repeated pairs are spread over the batches.

    Sorted by length, the copies of one sentence pair lie side by side and fill whole batches.
    Here the first occurrence of every pair stays where fairseq puts it, and the copies are
    inserted in between (see :func:`spread_repeats`).  No pair is added or lost, ``--max-tokens``
    and ``--batch-size`` hold, and without repeated pairs the batches are fairseq's own.

    Args:
        dataset: the parallel corpus to wrap.
    """

    @functools.cached_property
    def pair_ids(self) -> np.ndarray:
        """Equal numbers for equal source-target pairs, shape ``(len(self),)``."""
        return pair_ids(self.dataset)

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> list[np.ndarray]:
        # even by tokens where --max-tokens fills the batches, by sentences where --batch-size does
        cost = np.ones_like(indices) if max_tokens is None else self.num_tokens_vec(indices)
        spread = spread_repeats(indices, self.pair_ids[indices], cost)
        return super().batch_by_size(spread, max_tokens, *args, **kwargs)


def pair_ids(dataset: FairseqDataset) -> np.ndarray:
    """Equal numbers for equal source-target pairs of a corpus, shape ``(len(dataset),)``."""
    ids: dict[bytes, int] = {}
    pairs = (dataset[i] for i in range(len(dataset)))
    return np.array([ids.setdefault(_digest(pair), len(ids)) for pair in pairs])


def spread_repeats(indices: np.ndarray, pairs: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Reorder length-sorted indices so that copies of a pair lie far apart.

    The first occurrences keep their order.  The copies are dealt like cards, a round of all
    repeated pairs after the other, and laid between the first occurrences at equal intervals of
    the first occurrences' cumulative cost.  A pair with fewer copies than another takes
    part in evenly spaced rounds.

    Args:
        indices: data set indices in length order, shape ``(n,)``.
        pairs: for each of them a number that is equal for equal pairs, shape ``(n,)``.
        cost: for each of them what it costs a batch, say its number of tokens, shape ``(n,)``.

    Returns:
        The same indices in another order, shape ``(n,)``.
    """
    _, kind, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    by_kind = np.argsort(kind, kind="stable")
    rank = np.empty_like(by_kind)  # 0 for a first occurrence, else which copy it is
    rank[by_kind] = np.arange(len(indices)) - np.repeat(np.cumsum(counts) - counts, counts)

    firsts, copies = np.flatnonzero(rank == 0), np.flatnonzero(rank)
    if len(copies) == 0:
        return indices
    turn = (rank[copies] - 0.5) / (counts[kind[copies]] - 1)
    copies = copies[np.argsort(turn, kind="stable")]

    passed = np.cumsum(cost[firsts])
    interval = passed[-1] / len(copies)
    slots = np.searchsorted(passed, (np.arange(len(copies)) + 0.5) * interval)
    return np.insert(indices[firsts], slots, indices[copies])


def _digest(pair: dict[str, Any]) -> bytes:
    """A key that only equal token sequences share; the length keeps source and target apart."""
    source, target = pair["source"].numpy(), pair["target"].numpy()
    key = hashlib.blake2b(len(source).to_bytes(8, "little"), digest_size=16)
    key.update(source.tobytes())
    key.update(target.tobytes())
    return key.digest()
