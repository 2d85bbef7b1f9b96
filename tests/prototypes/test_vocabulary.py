"""Punctuation, which has no prototypes; special symbols: test_extract.py."""

import pytest

from compgen_fairseq.prototypes.vocabulary import is_punctuation


@pytest.mark.parametrize("token", [".", "...", ",@@", "&apos;", "&quot;@@", "▁(", "。", "$", "▁"])
def test_punctuation(token):
    assert is_punctuation(token)


@pytest.mark.parametrize("token", ["a", "don&apos;t", "'s", "U.S.", "3", "▁x", "e@@", "喜欢"])
def test_words(token):
    assert not is_punctuation(token)
