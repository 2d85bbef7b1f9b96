"""Which use of a word a pattern matches."""

import argparse

import pytest

from compgen_fairseq.analysis.prototypes import context, tag_of

SENTENCE = "the dog he liked liked the cat that he liked".split()
PATTERNS = [context(r"(dog|cat) he liked=MOD"), context(r"he liked=he")]


def test_only_a_match_with_the_word_in_it_counts():
    assert tag_of(SENTENCE, 3, PATTERNS) == "MOD"
    assert tag_of(SENTENCE, 4, PATTERNS) == "other"
    assert tag_of(SENTENCE, 9, PATTERNS) == "he"
    assert tag_of(SENTENCE, 3, PATTERNS[::-1]) == "he", "the first pattern counts"
    assert tag_of(SENTENCE, 4, [context("^the.*cat=all")]) == "all"
    assert tag_of(["a", "a", "a"], 2, [context("a a=A")]) == "A", "matches may overlap"
    assert tag_of(SENTENCE, 4, [context("like=part")]) == "other", "not the whole word"


def test_the_tag_is_behind_the_last_equals_sign():
    assert context("a=b=c").pattern.pattern == "a=b" and context("a=b=c").tag == "c"
    for text in ("liked", "=MOD", "liked="):
        with pytest.raises(argparse.ArgumentTypeError, match="REGEX=TAG"):
            context(text)
    with pytest.raises(argparse.ArgumentTypeError, match="not a regular expression"):
        context("(liked=MOD")
