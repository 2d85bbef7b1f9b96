"""BiRD: its pairs, and those of the same words."""

import pytest

from compgen.data import bird
from compgen.data.labelled_sentences import Example

COLUMNS = ("term1", "term2", "score")


def test_read() -> None:
    lines = ["term1\tterm2\trelation\tscore", "law school\tschool law\tAB-BA\t0.398"]
    assert bird.read("f", lines, COLUMNS) == [("law school", "school law", "0.398")]
    other = ["score\tB\tA", "1\ty\tx"]
    assert bird.read("f", other, ("A", "B", "score")) == [("x", "y", "1")]


@pytest.mark.parametrize("score", ["1.2", "-0.1", "nan", "high", ""])
def test_score_out_of_range(score: str) -> None:
    with pytest.raises(ValueError, match=rf"f, line 2: the score '{score}' is not in \[0, 1\]"):
        bird.read("f", ["term1\tterm2\tscore", f"a\tb\t{score}"], COLUMNS)


@pytest.mark.parametrize(
    ("one", "other", "swapped"),
    [
        ("Law school", "school law", True),
        ("law school", "Law school", False),
        ("law school", "school laws", False),
        ("law law school", "school school law", False),
        ("law school", "law", False),
    ],
)
def test_same_words_in_another_order(one: str, other: str, swapped: bool) -> None:
    assert bird.is_swapped(Example(one, other, "0.5")) is swapped
