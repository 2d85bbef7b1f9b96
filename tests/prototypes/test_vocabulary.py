"""Special symbols and punctuation have no prototypes."""

import pytest
from fairseq.data import Dictionary

from compgen_fairseq.prototypes.vocabulary import fingerprint, is_punctuation, word_types


@pytest.mark.parametrize("token", [".", "...", ",@@", "&apos;", "&quot;@@", "▁(", "。", "$", "▁"])
def test_punctuation(token):
    assert is_punctuation(token)


@pytest.mark.parametrize("token", ["a", "don&apos;t", "'s", "U.S.", "3", "▁x", "e@@", "喜欢"])
def test_words(token):
    assert not is_punctuation(token)


def test_only_words_of_a_dictionary_can_have_prototypes():
    dictionary = Dictionary()
    for token in ("dog", ".", "&apos;", "cat"):
        dictionary.add_symbol(token)
    assert word_types(dictionary).tolist() == [False] * 4 + [True, False, False, True]


def test_the_fingerprint_tells_types_and_their_order_apart():
    def of(*tokens: str) -> int:
        dictionary = Dictionary()
        for token in tokens:
            dictionary.add_symbol(token)
        return fingerprint(dictionary)

    numbers = [of("a", "b"), of("b", "a"), of("ab"), of("a", "b")]
    assert len(set(numbers)) == 3 and numbers[0] == numbers[3]
    assert min(numbers) >= 0 and max(numbers) < 2**48, "an average of checkpoints sums them"
