"""Pairs of sentences with the same sequence of classes."""

import pytest
import torch
from random_batches import dictionary

from compgen_fairseq.analysis.pairs import Pair, find_pairs, read_classes, read_pairs, write_pairs

UNK, EOS = 3, 2
CLASSES = torch.tensor([9, 9, 0, 9, 1, 1, 1, 2, 2, -1])  # types 4 to 6, and 7 and 8, are alike
TARGETS = torch.tensor([9, 9, 0, 9, 1, 1, 2, 2, 2, 2])


def sentence(*words: int) -> torch.Tensor:
    return torch.tensor([*words, EOS])


def find(sources, targets=None, limit=10, seed=1, target_classes=TARGETS):
    targets = targets or [sentence(4)] * len(sources)
    return find_pairs(sources, targets, CLASSES, target_classes, (UNK, UNK), limit, seed)


def test_only_different_sentences_of_one_structure_are_a_pair():
    sources = [
        sentence(4, 7),
        sentence(7, 4),  # another order
        sentence(5, 8),
        sentence(4, 7),  # the first one again
        sentence(4, UNK),
        sentence(5, UNK),
        sentence(4, 9),  # a word without a class
        sentence(5, 9),
        sentence(4),
    ]
    assert [set(pair[:2]) for pair in find(sources)] == [{0, 2}]
    assert find(4 * [sentence(4, 7)]) == []


def test_every_structure_has_its_turn_and_no_sentence_is_used_twice():
    many = [sentence(a, b, c) for a in (4, 5, 6) for b in (4, 5, 6) for c in (7, 8)]
    sources = [*many, sentence(4), sentence(5), sentence(7), sentence(8)]
    everything = find(sources, limit=100)
    assert len(everything) == len(many) // 2 + 2
    used = [i for pair in everything for i in pair[:2]]
    assert len(set(used)) == len(used)
    lengths = [len(sources[pair.a]) for pair in everything[:3]]
    assert sorted(lengths) == [2, 2, 4], "the first turn has a pair of each of three structures"
    assert find(sources, limit=100) == everything and find(sources, limit=4) == everything[:4]
    assert find(sources, limit=100, seed=2) != everything


def test_targets_of_one_structure_are_paired_first():
    sources = [sentence(a, b) for a in (4, 5) for b in (7, 8)]
    targets = [sentence(4), sentence(6), sentence(5), sentence(6, 6)]
    found = find(sources, targets)
    assert {(frozenset(pair[:2]), pair.targets) for pair in found} == {
        (frozenset({0, 2}), True),
        (frozenset({1, 3}), False),
    }
    by_length = find(sources, targets, target_classes=torch.zeros(10, dtype=torch.long))
    assert [pair.targets for pair in by_length] == [True, False]  # three are of one length
    unknown = find(sources, [sentence(UNK)] * 4)
    assert [pair.targets for pair in unknown] == [False, False]


def test_classes_of_a_file(tmp_path):
    words = dictionary(3)
    path = tmp_path / "classes"
    path.write_text("w0\tverb\nw2\tverb\nother\tnoun\n")
    classes = read_classes(str(path), words).tolist()
    w0, w1, w2 = (classes[words.index(f"w{i}")] for i in range(3))
    assert w0 == w2 != classes[words.eos()] and w1 == -1
    path.write_text("other\tnoun\n")
    with pytest.raises(ValueError, match="lists no word"):
        read_classes(str(path), words)


def test_a_pair_file_is_read_as_it_was_written(tmp_path):
    text = ["a b", "c d", "a d"]
    pairs = [Pair(2, 0, True), Pair(1, 0, False)]
    path = write_pairs(tmp_path / "pairs.tsv", pairs, text)
    assert read_pairs(str(path), text) == pairs
    for other, reason in (
        (["a b", "c d", "a e"], "line 2: sentence 2 of this subset is not 'a d'"),
        (["a b"], "line 2: sentence 2"),
    ):
        with pytest.raises(ValueError, match=reason):
            read_pairs(str(path), other)
    path.write_text(path.read_text() + "1\tx\t1\tc d\ta b\n")
    with pytest.raises(ValueError, match="line 4: not a pair"):
        read_pairs(str(path), text)
    path.write_text("0\t1\n")
    with pytest.raises(ValueError, match="columns a, b, targets, source_a, source_b"):
        read_pairs(str(path), text)
