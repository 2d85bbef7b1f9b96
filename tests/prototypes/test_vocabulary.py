"""Special symbols and punctuation have no prototypes."""

import pytest
from random_batches import dictionary_of

from compgen_fairseq.prototypes.vocabulary import is_punctuation, word_types


@pytest.mark.parametrize("token", [".", "...", ",@@", "&apos;", "&quot;@@", "▁(", "。", "$", "▁"])
def test_punctuation(token):
    assert is_punctuation(token)


@pytest.mark.parametrize("token", ["a", "don&apos;t", "'s", "U.S.", "3", "▁x", "e@@", "喜欢"])
def test_words(token):
    assert not is_punctuation(token)


def test_only_words_of_a_dictionary_can_have_prototypes():
    dictionary = dictionary_of("dog", ".", "&apos;", "cat")
    assert word_types(dictionary).tolist() == [False] * 4 + [True, False, False, True]
