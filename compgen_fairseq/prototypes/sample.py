"""Which occurrences of each type go into its k-means, chosen before any state is computed.

A type that occurs often is clustered by a sample of its occurrences: those with the smallest keys.
An occurrence's key is a hash of its sentence pair, its place in it and a seed. So the sample
depends neither on the order of the corpus nor on how it is divided, it is known before the model
runs, and a sentence without a chosen occurrence need not be run at all.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compgen_fairseq.progress import progress

CHUNK = 4096  # sentences
SLACK = 2**22  # occurrences that are gathered before the surplus is thrown out

#: an occurrence that may still be chosen
OCCURRENCE = np.dtype([("key", "u8"), ("type", "i4"), ("sentence", "i8"), ("position", "i4")])


@dataclass(frozen=True)
class Sample:
    """The chosen occurrences, by type and within a type by key.

    Args:
        types: the type of each, ``(n,)``.
        sentences: the index of its pair in the corpus, ``(n,)``.
        positions: its place among the side's tokens, ``(n,)``.
        counts: how often each type that may be chosen occurs, ``(vocabulary,)``.
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


def survey(
    dataset: Any, indices: np.ndarray, seed: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Read a corpus once: a key for each pair, and how often each type occurs.

    Args:
        dataset: a parallel corpus.
        indices: the pairs to look at, ``(n,)``.
        seed: another seed, other keys.

    Returns:
        random-looking uint64 numbers, ``(n,)``, the same multiset of them for the same multiset of
        pairs, the copies of a pair having different ones; and the counts by side, ``(types,)`` up
        to the last type that occurs.
    """
    parts = [np.zeros(0, dtype=np.uint64)]
    counts = {side: np.zeros(0, dtype=np.int64) for side in ("source", "target")}
    for chunk in _shown(indices, "counting types"):
        pairs = [dataset[int(i)] for i in chunk]
        key = np.full(len(chunk), seed, dtype=np.uint64)
        for side, before in counts.items():
            tokens, lengths, positions = _flatten([tokens_of(pair, side) for pair in pairs])
            counts[side] = np.bincount(tokens, minlength=len(before))
            counts[side][: len(before)] += before
            mixed = _mix(_mix(positions.astype(np.uint64)) ^ tokens.astype(np.uint64))
            key = _mix(key + np.add.reduceat(mixed, np.cumsum(lengths) - lengths))
        parts.append(key)
    keys = np.concatenate(parts)
    order = np.argsort(keys, kind="stable")
    copy = np.empty_like(keys)
    copy[order] = _rank(keys[order])
    return _mix(keys + copy), counts


def choose(
    dataset: Any,
    indices: np.ndarray,
    keys: np.ndarray,
    side: str,
    counts: np.ndarray,
    size: int,
    most: int,
    least: int = 1,
) -> Sample:
    """Choose up to ``size`` occurrences of each type, fewer if they are more than ``most`` in all.

    Args:
        dataset: a parallel corpus.
        indices: the pairs to look at, ``(n,)``.
        keys: those of :func:`survey`.
        side: ``"source"`` or ``"target"``.
        counts: how often each type of the vocabulary occurs; 0 for one not to choose from.
        size: the most occurrences of one type.
        most: the most occurrences in all.
        least: the smallest ``size`` that ``most`` may lead to.

    Raises:
        ValueError: if ``least`` occurrences of each type are more than ``most``.
    """
    largest = int(counts.max(initial=0))
    # the largest size with sum(min(counts, size)) <= most
    sizes = range(1, min(size, largest) + 1)
    size = bisect_right(sizes, most, key=lambda number: np.minimum(counts, number).sum())
    if size < min(least, largest):
        raise ValueError(
            f"{least} states of each of {np.count_nonzero(counts):,} types are more than the "
            f"{most:,} that there is memory for; raise --prototype-memory or --prototype-min-count"
        )
    limits = np.where(counts > 0, np.uint64(2**64 - 1), np.uint64(0))
    pool, fresh, kept = np.zeros(0, OCCURRENCE), [], 0
    for chunk, chunk_keys in zip(_shown(indices, "choosing states"), _chunks(keys), strict=True):
        tokens, lengths, positions = _flatten([tokens_of(dataset[int(i)], side) for i in chunk])
        found = _mix(np.repeat(chunk_keys, lengths) ^ _mix(positions.astype(np.uint64)))
        wanted = found < limits[tokens]
        columns = (found, tokens, np.repeat(chunk, lengths), positions)
        fresh.append(np.rec.fromarrays([column[wanted] for column in columns], OCCURRENCE))
        if len(pool) + sum(map(len, fresh)) > 2 * kept + SLACK:
            pool, fresh = _smallest(np.concatenate([pool, *fresh]), size), []
            kept = len(pool)
            full = np.bincount(pool["type"], minlength=len(counts)) == size
            last = np.zeros_like(limits)
            last[pool["type"]] = pool["key"]  # of several keys for one type the last stays
            limits[full] = last[full]
    pool = _smallest(np.concatenate([pool, *fresh]), size)
    types, sentences, positions = (pool[name].copy() for name in ("type", "sentence", "position"))
    return Sample(types, sentences, positions, counts, size)


def _smallest(pool: np.ndarray, size: int) -> np.ndarray:
    """The occurrences with the ``size`` smallest keys of each type, sorted by type and key."""
    pool = pool[np.lexsort((pool["key"], pool["type"]))]
    return pool[_rank(pool["type"]) < size]


def _rank(ordered: np.ndarray) -> np.ndarray:
    """How many equal ones stand before each of some sorted numbers, ``(n,)``."""
    return np.arange(len(ordered)) - np.searchsorted(ordered, ordered)


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    return (array[i : i + CHUNK] for i in range(0, len(array), CHUNK))


def _shown(indices: np.ndarray, description: str) -> Iterable[np.ndarray]:
    total = -(-len(indices) // CHUNK)
    return progress(_chunks(indices), f"prototypes: {description}", total, f" x {CHUNK} pairs")


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
