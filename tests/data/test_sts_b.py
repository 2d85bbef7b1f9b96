"""The STS benchmark: its lines and genres."""

import pytest

from compgen.data import sts_b

LINES = [
    'main-captions\timages\t2014\t7\t4.000\tA "b.\tC.',
    "main-captions\tMSRvid\t2012\t8\t0.2\td\te\tlicence\tsource",
    "main-news\theadlines\t2013\t9\t5\tf\tg",
]


def test_ratings_become_fractions() -> None:
    examples = sts_b.of_genres(sts_b.read("f", LINES), None)
    assert examples == [('A "b.', "C.", "0.8"), ("d", "e", "0.04"), ("f", "g", "1")]


@pytest.mark.parametrize(
    ("genres", "found"), [("images", "A"), ("main-captions", "Ad"), ("headlines,MSRvid", "df")]
)
def test_genres_have_two_names(genres: str, found: str) -> None:
    chosen = sts_b.of_genres(sts_b.read("f", LINES), genres)
    assert "".join(example.first[0] for example in chosen) == found


@pytest.mark.parametrize("line", ["", "a\tb\tc\td\t5.1\te\tf", "a\tb\tc\td\thigh\te\tf", "a\tb\t1"])
def test_bad_line(line: str) -> None:
    with pytest.raises(ValueError, match="f, line 2 is not of the form genre, file, year"):
        sts_b.read("f", [LINES[0], line])
