"""The chosen occurrences are a fixed random sample of each type, in any order of the corpus."""

import sys
from collections import Counter

import numpy as np
import pytest
import torch

from compgen_fairseq.prototypes import sample as module
from compgen_fairseq.prototypes.sample import choose, survey, tokens_of

TYPES = 12
ELIGIBLE = np.arange(TYPES) > 3


def corpus(pairs: int = 400, seed: int = 0) -> list[dict[str, torch.Tensor]]:
    """Random pairs, some of them several times; frequencies fall from type 4 to 11."""
    draw = np.random.default_rng(seed)
    odds = 1 / np.arange(1, 9) ** 2
    made = []
    for _ in range(pairs):
        source, target = (
            np.append(draw.choice(8, draw.integers(1, 9), p=odds / odds.sum()) + 4, 2)
            for _ in range(2)
        )
        pair = {"source": torch.from_numpy(source), "target": torch.from_numpy(target)}
        made += [pair] * draw.integers(1, 4)
    return made


def chosen(pairs: list, side: str = "source", size: int = 20, most: int = 10**6, **kwargs):
    keys, counts = survey(pairs, np.arange(len(pairs)), kwargs.pop("seed", 1))
    often = counts[side] * ELIGIBLE[: len(counts[side])]
    often[often < kwargs.pop("min_count", 1)] = 0
    return choose(pairs, np.arange(len(pairs)), keys, side, often, size, most, **kwargs)


def contents(sample, pairs: list) -> Counter:
    """What was chosen, without saying which copy of a pair it was."""
    found: Counter = Counter()
    for kind, i, place in zip(sample.types, sample.sentences, sample.positions, strict=True):
        pair = pairs[i]
        key = (int(kind), int(place), str(pair["source"].tolist()), str(pair["target"].tolist()))
        found[key] += 1
    return found


@pytest.mark.parametrize("side", ["source", "target"])
def test_chooses_up_to_size_occurrences_of_every_eligible_type(side):
    pairs = corpus()
    sample = chosen(pairs, side)
    truth = np.bincount(np.concatenate([tokens_of(p, side) for p in pairs]), minlength=TYPES)
    assert np.trim_zeros(sample.counts, "b").tolist() == (truth * ELIGIBLE).tolist()
    types, bounds = sample.bounds()
    assert types.tolist() == [t for t in range(4, TYPES) if truth[t]]
    assert np.diff(bounds).tolist() == np.minimum(truth[types], 20).tolist()
    for kind, i, place in zip(sample.types, sample.sentences, sample.positions, strict=True):
        assert tokens_of(pairs[i], side)[place] == kind
    occurrences = set(zip(sample.sentences.tolist(), sample.positions.tolist(), strict=True))
    assert len(occurrences) == len(sample), "an occurrence was chosen twice"


@pytest.mark.parametrize("slack", [10, 2**22])
def test_does_not_depend_on_the_order_of_the_corpus(slack, monkeypatch):
    """Not with a surplus that is thrown out many times on the way either."""
    pairs = corpus()
    expected = contents(chosen(pairs), pairs)
    assert contents(chosen(pairs, seed=2), pairs) != expected
    monkeypatch.setattr(module, "SLACK", slack)
    monkeypatch.setattr(module, "CHUNK", 7)
    shuffled = [pairs[i] for i in np.random.default_rng(3).permutation(len(pairs))]
    assert contents(chosen(shuffled), shuffled) == expected
    few = {"most": 70, "min_count": 30}
    assert contents(chosen(shuffled, **few), shuffled) == contents(chosen(pairs, **few), pairs)


def test_is_spread_over_the_corpus_and_over_the_copies_of_a_pair():
    pair = {"source": torch.tensor([4, 5, 2]), "target": torch.tensor([6, 2])}
    sample = chosen([pair] * 1000, size=100)
    assert [np.count_nonzero(sample.types == t) for t in (4, 5)] == [100, 100]
    places = sample.sentences[sample.types == 4]
    assert len(set(places)) == 100 and 400 < places.mean() < 600
    assert set(places) != set(sample.sentences[sample.types == 5]), "whole sentences were chosen"


def test_memory_lowers_the_size_of_every_type():
    pairs = corpus()
    sample = chosen(pairs, size=50, most=100)
    counts = sample.counts
    assert sample.size < 50 and len(sample) <= 100 < np.minimum(counts, sample.size + 1).sum()
    assert len(sample) == np.minimum(counts, sample.size).sum()
    assert chosen(pairs, size=sys.maxsize).size == counts.max()


def test_too_little_memory_is_refused():
    reason = "3 states of each of 8 types are more than the 9 that .* raise --prototype-memory"
    with pytest.raises(ValueError, match=reason):
        chosen(corpus(), most=9, least=3)
