"""Brown clustering."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from compgen_fairseq.clustering import brown
from compgen_fairseq.clustering.brown import bigram_counts, brown_classes

EOS = 0


def mutual_information(table):
    return mutual_info_score(None, None, contingency=table)


def merged(table, i, j):
    table = table.copy()
    table[i] += table[j]
    table[:, i] += table[:, j]
    return np.delete(np.delete(table, j, 0), j, 1)


def test_bigrams_of_two_sentences():
    counts = bigram_counts([np.array([1, 2, EOS]), np.array([2, EOS])], 4, EOS)
    expected = np.zeros((4, 4))
    expected[EOS, 1] = expected[1, 2] = expected[EOS, 2] = 1
    expected[2, EOS] = 2
    assert np.array_equal(counts.toarray(), expected)


def test_bigrams_of_more_tokens_than_are_counted_at_once(monkeypatch):
    monkeypatch.setattr(brown, "CHUNK", 3)
    counts = bigram_counts([np.array([1, 1, 1, EOS]), np.array([2, EOS])], 3, EOS)
    assert counts.toarray().tolist() == [[0, 1, 1], [1, 2, 0], [1, 0, 0]]


@pytest.mark.parametrize("seed", range(5))
def test_the_cheapest_pair_is_the_best_of_all_pairs(seed):
    table = np.random.default_rng(seed).integers(0, 5, (9, 9)).astype(float)
    kept = brown._Merges(9)
    for size in range(1, 10):
        kept.add(table[size - 1, :size], table[:size, size - 1])
    classes = np.arange(9)
    for _ in range(2):  # after merging, too
        table = merged(table, *kept._cheapest_pair())
        kept.merge_best(classes)
    losses = {
        pair: mutual_information(table) - mutual_information(merged(table, *pair))
        for pair in itertools.combinations(range(7), 2)
    }
    assert kept._cheapest_pair() == min(losses, key=losses.__getitem__)
    assert set(classes) == set(range(7))


@pytest.mark.parametrize("seed", range(3))
def test_adding_and_merging_keeps_the_losses_right(seed, monkeypatch):
    """As many words as there are in the window are in it while the others come and go."""
    monkeypatch.setattr(brown, "WINDOW", 8)
    rng = np.random.default_rng(seed)
    sentences = [np.append(rng.zipf(1.5, 6) % 40, EOS) for _ in range(200)]
    seen = []
    monkeypatch.setattr(brown._Merges, "merge_best", check_then(brown._Merges.merge_best, seen))
    brown_classes(bigram_counts(sentences, 40, EOS), 5)
    assert len(seen) > 20


def check_then(merge_best, seen):
    """Compare the kept sums with what the table says, then merge."""

    def checked(self, classes):
        joint = self._joint[: self.size, : self.size]
        for kept, table in ((self._rows, joint), (self._columns, joint.T)):
            true = brown._saved(table[:, None], table[None]).sum(-1)
            off = ~np.eye(self.size, dtype=bool)
            np.testing.assert_allclose(kept[: self.size, : self.size][off], true[off], atol=1e-8)
        seen.append(self.size)
        merge_best(self, classes)

    return checked


def corpus(rng, sentences=400):
    """Determiner noun verb: types 1-3, 4-8, 9-12; 13 occurs alone once, between its like."""
    text = [
        np.array([rng.integers(1, 4), rng.integers(4, 9), rng.integers(9, 13), EOS])
        for _ in range(sentences)
    ]
    return [*text, np.array([1, 13, 9, EOS])]


@pytest.mark.parametrize("window", [48, 6])
def test_finds_parts_of_speech(window, monkeypatch):
    monkeypatch.setattr(brown, "WINDOW", window)
    classes = brown_classes(bigram_counts(corpus(np.random.default_rng(1)), 15, EOS), 4)
    groups = {tuple(np.flatnonzero(classes[:14] == c)) for c in range(4)}
    assert groups == {(0,), (1, 2, 3), (4, 5, 6, 7, 8, 13), (9, 10, 11, 12)}
    assert classes[14] == 0  # a type that does not occur


def test_classes_are_numbered_by_frequency_and_deterministic():
    counts = bigram_counts(corpus(np.random.default_rng(2)), 15, EOS)
    classes = brown_classes(counts, 3)
    mass = np.bincount(classes, weights=np.asarray(counts.sum(0)).ravel(), minlength=3)
    assert list(mass) == sorted(mass, reverse=True)
    assert np.array_equal(classes, brown_classes(counts, 3))


def test_more_classes_than_the_window_are_made(monkeypatch):
    monkeypatch.setattr(brown, "WINDOW", 3)
    text = [np.random.default_rng(1).integers(1, 12, 200)]
    classes = brown_classes(bigram_counts(text, 12, 0), 6)
    assert set(classes) == set(range(6))
