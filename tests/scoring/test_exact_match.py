"""Exact match of sentences."""

from compgen.scoring.exact_match import ExactMatch, exact_match


def test_counts_whole_sentences():
    hypotheses = ["jump twice", "Jump twice", "jump", "jump twice .", ""]
    references = ["jump twice", "jump twice", "jump twice", "jump twice", "jump twice"]
    assert exact_match(hypotheses, references) == ExactMatch(correct=1, total=5)


def test_the_numbers_in_words():
    assert str(ExactMatch(7097, 7706)) == "ExactMatch = 92.10 (7097 / 7706)"
    assert ExactMatch(1, 8).percent == 12.5
    assert ExactMatch(0, 0).percent == 0
