"""Which occurrences of each type go into its k-means, chosen before any state is computed.

A type that occurs often is clustered by a sample of its occurrences: those with the smallest keys.
An occurrence's key is a hash of its sentence pair, its place in it and a seed. So the sample
depends neither on the order of the corpus nor on how it is divided, it is known before the model
runs, and a sentence without a chosen occurrence need not be run at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CHUNK = 4096  # sentences
SLACK = 2**22  # occurrences that are gathered before the surplus is thrown out


@dataclass(frozen=True)
class Sample:
    """The chosen occurrences, by type and within a type by key.

    Args:
        types: the type of each, ``(n,)``.
        sentences: the index of its pair in the corpus, ``(n,)``.
        positions: its place among the side's tokens, ``(n,)``.
        counts: how often each type of the vocabulary occurs, chosen or not, ``(vocabulary,)``.
        size: the most occurrences that one type has here.
    """

    types: np.ndarray
    sentences: np.ndarray
    positions: np.ndarray
    counts: np.ndarray
    size: int

    def __len__(self) -> int:
        return len(self.types)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The types, ``(t,)``, and where each one's occurrences begin and end, ``(t + 1,)``."""
        types, starts = np.unique(self.types, return_index=True)
        return types, np.append(starts, len(self))


def tokens_of(pair: dict[str, Any], side: str) -> np.ndarray:
    """What the side's network reads: the source, or the target moved by one, ``(len,)``."""
    tokens = pair[side].numpy()
    return tokens if side == "source" else np.roll(tokens, 1)


def pair_keys(dataset: Any, indices: np.ndarray, seed: int) -> np.ndarray:
    """A random-looking number for each sentence pair; the copies of a pair differ in theirs.

    Args:
        dataset: a parallel corpus.
        indices: the pairs, ``(n,)``.
        seed: another seed, other numbers.

    Returns:
        uint64, ``(n,)``; the same multiset of pairs has the same multiset of numbers.
    """
    parts = []
    for chunk in _chunks(indices):
        pairs = [dataset[int(i)] for i in chunk]
        key = np.full(len(chunk), seed, dtype=np.uint64)
        for side in ("source", "target"):
            tokens, lengths, positions = _flatten([tokens_of(pair, side) for pair in pairs])
            mixed = _mix(_mix(positions.astype(np.uint64)) ^ tokens.astype(np.uint64))
            key = _mix(key + np.add.reduceat(mixed, np.cumsum(lengths) - lengths))
        parts.append(key)
    keys = np.concatenate(parts)
    order = np.argsort(keys, kind="stable")
    new = np.append(True, np.diff(keys[order]) > 0)
    places = np.arange(len(keys))
    copy = np.empty(len(keys), dtype=np.uint64)
    copy[order] = places - np.maximum.accumulate(np.where(new, places, 0))
    return _mix(keys + copy)


def choose(
    dataset: Any,
    indices: np.ndarray,
    keys: np.ndarray,
    side: str,
    eligible: np.ndarray,
    min_count: int,
    size: int,
    most: int,
    least: int = 1,
) -> Sample:
    """Choose up to ``size`` occurrences of each type, fewer if they are more than ``most`` in all.

    Args:
        dataset: a parallel corpus.
        indices: the pairs to look at, ``(n,)``.
        keys: what :func:`pair_keys` returned for them.
        side: ``"source"`` or ``"target"``.
        eligible: for each type of the vocabulary whether it may be chosen, ``(vocabulary,)``.
        min_count: types that occur less often are left out.
        size: the most occurrences of one type.
        most: the most occurrences in all.
        least: the smallest ``size`` that ``most`` may lead to.

    Raises:
        ValueError: if ``least`` occurrences of each type are more than ``most``.
    """
    counts = np.zeros(len(eligible), dtype=np.int64)
    limits = np.full(len(eligible), 2**64 - 1, dtype=np.uint64)
    pool, fresh, kept = _Pool.join([]), [], 0
    for chunk, chunk_keys in zip(_chunks(indices), _chunks(keys), strict=True):
        tokens, lengths, positions = _flatten([tokens_of(dataset[int(i)], side) for i in chunk])
        counts += np.bincount(tokens, minlength=len(eligible)) * eligible
        found = _mix(np.repeat(chunk_keys, lengths) ^ _mix(positions.astype(np.uint64)))
        wanted = eligible[tokens] & (found <= limits[tokens])
        fresh.append(_Pool(found, tokens, np.repeat(chunk, lengths), positions).only(wanted))
        gathered = len(pool.keys) + sum(len(part.keys) for part in fresh)
        if gathered > 2 * kept + SLACK:
            # what does not fit now will not fit when the counts have grown
            size = _fitting(counts, size, most)
            pool, fresh = _Pool.join([pool, *fresh]).smallest(size), []
            kept = len(pool.keys)
            full = np.bincount(pool.types, minlength=len(eligible)) >= size
            limits[full] = _last(pool.types, pool.keys, len(eligible))[full]
    size = _fitting(counts, size, most)  # rare types included: so it is below all sizes before
    counts[counts < min_count] = 0
    if size < min(least, counts.max(initial=0)):
        raise ValueError(
            f"{least} states of each of {np.count_nonzero(counts):,} types are more than the "
            f"{most:,} that memory is allowed for"
        )
    pool = _Pool.join([pool, *fresh])
    pool = pool.only(counts[pool.types] > 0).smallest(size)
    return Sample(pool.types, pool.sentences, pool.positions, counts, size)


@dataclass(frozen=True)
class _Pool:
    """Occurrences that may still be chosen, one array for each of their properties."""

    keys: np.ndarray
    types: np.ndarray
    sentences: np.ndarray
    positions: np.ndarray

    KINDS = (np.uint64, np.int32, np.int64, np.int32)

    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.keys, self.types, self.sentences, self.positions

    @classmethod
    def join(cls, pools: Sequence["_Pool"]) -> "_Pool":
        parts = zip(*(pool.arrays() for pool in pools), strict=True)
        empty = ([np.zeros(0)] for _ in cls.KINDS)
        arrays = map(np.concatenate, parts if pools else empty)
        return cls(*(a.astype(kind) for a, kind in zip(arrays, cls.KINDS, strict=True)))

    def only(self, chosen: np.ndarray) -> "_Pool":
        return _Pool(*(array[chosen] for array in self.arrays()))

    def smallest(self, size: int) -> "_Pool":
        """Those with the ``size`` smallest keys of each type, sorted by type and key."""
        order = np.lexsort((self.keys, self.types))
        types = self.types[order]
        places = np.arange(len(order))
        new = np.append(True, types[1:] != types[:-1])[: len(order)]
        rank = places - np.maximum.accumulate(np.where(new, places, 0))
        return self.only(order[rank < size])


def _fitting(counts: np.ndarray, size: int, most: int) -> int:
    """The largest number up to ``size`` with ``sum(min(counts, number)) <= most``."""
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(counts, middle).sum() <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _last(types: np.ndarray, keys: np.ndarray, vocabulary: int) -> np.ndarray:
    """The last key of each type, of keys sorted by type, ``(vocabulary,)``."""
    last = np.zeros(vocabulary, dtype=np.uint64)
    last[types] = keys  # of several values for one place the last stays
    return last


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    return (array[i : i + CHUNK] for i in range(0, len(array), CHUNK))


def _flatten(sentences: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All tokens in a row, the lengths, and the place of each token in its sentence."""
    lengths = np.array([len(tokens) for tokens in sentences])
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.concatenate(sentences), lengths, np.arange(lengths.sum()) - starts


def _mix(x: np.ndarray) -> np.ndarray:
    """Scatter 64-bit numbers over their range (the finalizer of SplitMix64, Steele et al. 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
