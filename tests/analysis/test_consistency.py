"""Which source token each step is aligned to."""

from types import SimpleNamespace

import pytest
import torch
from random_batches import dictionary_of

from compgen_fairseq.analysis import checkpoint, consistency
from compgen_fairseq.analysis.consistency import align

PAD, EOS = 1, 2


def test_the_most_attended_word_is_taken():
    weights = torch.tensor([[[0.1, 0.2, 0.3, 0.4], [0.5, 0.2, 0.2, 0.1]]])
    sources = torch.tensor([[7, 8, 9, EOS]])
    assert align(weights, sources, (EOS,)).tolist() == [[9, 7]]
    assert align(weights, sources, ()).tolist() == [[EOS, 7]]


def test_models_of_other_words_are_refused():
    one, other = dictionary_of("dog"), dictionary_of("Hund")
    models = [
        checkpoint.Loaded(None, SimpleNamespace(source_dictionary=s, target_dictionary=t), None, n)
        for n, s, t in (("a.pt", one, other), ("b.pt", one, other), ("c.pt", other, one))
    ]
    checkpoint.same_words(*models[:2])
    with pytest.raises(ValueError, match=r"a\.pt and c\.pt have other source dictionaries"):
        checkpoint.same_words(models[0], models[2])


def test_the_default_words_are_frequent_ones_of_meaning():
    words = dictionary_of("the", "dog", "xx@@", "12", "cat", "▁a", "&apos;s")
    text = "the dog xx@@ 12 ▁a &apos;s"
    data = [{"target": torch.tensor([words.index(w) for w in text.split()])}]
    data += 2 * [{"target": torch.tensor([words.index("cat"), words.eos()])}]
    args = SimpleNamespace(words=None, top=5, subset="test")
    assert [words[i] for i in consistency._words(args, words, data)] == ["cat", "dog"]
    with pytest.raises(ValueError, match="the subset test has no words with letters"):
        consistency._words(args, words, [{"target": torch.tensor([words.index("12")])}])


def test_padding_on_the_left_and_keys_that_are_no_words_are_left_out():
    start = torch.tensor([[[0.9, 0.0, 0.0, 0.04, 0.06]]])  # the start marker, then the source
    sources = torch.tensor([[PAD, PAD, 8, EOS]])
    assert align(start, sources, (PAD, EOS)).tolist() == [[8]]
    assert align(torch.tensor([[[0.0, 0.0, 0.0, 1.0]]]), sources, (PAD, EOS)).tolist() == [[8]]
    assert start[0, 0].tolist() == torch.tensor([0.9, 0.0, 0.0, 0.04, 0.06]).tolist()
