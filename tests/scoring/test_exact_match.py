"""Exact match of sentences."""

import pytest

from compgen.scoring.exact_match import ExactMatch, exact_match, warn_of_lost_matches


def test_counts_whole_sentences():
    hypotheses = ["jump twice", "Jump twice", "jump", "jump twice .", ""]
    references = ["jump twice", "jump twice", "jump twice", "jump twice", "jump twice"]
    assert exact_match(hypotheses, references) == ExactMatch(correct=1, total=5)


def test_the_numbers_in_words():
    assert str(ExactMatch(7097, 7706)) == "ExactMatch = 92.10 (7097 / 7706)"
    assert ExactMatch(1, 8).percent == 12.5
    assert ExactMatch(0, 0).percent == 0


@pytest.mark.parametrize(
    ("hypotheses", "warning"),
    [
        (["run", "run", "run run jump", ""], "2 of 3 wrong sentences are beginnings"),
        (["run", "run", "run run jump", "jump run"], ""),  # half of them
        (["run ru", "run", "run run", "jump run"], ""),  # not whole words
        (["run run", "run", "run run", "jump run"], ""),
    ],
)
def test_outputs_that_end_too_soon_are_warned_of(hypotheses, warning, caplog):
    references = ["run run", "run", "run run", "jump run"]
    warn_of_lost_matches(hypotheses, references)
    assert warning in caplog.text and bool(caplog.text) == bool(warning)


def test_unknown_words_of_references_are_warned_of(caplog):
    references = ["run <<unk>>", "<unk>", "run", "<<unk>> <<unk>>"]
    warn_of_lost_matches(["run <unk>", "<unk>", "run", "jump jump"], references)
    assert "2 of 4 references have words that the dictionary lacks" in caplog.text
