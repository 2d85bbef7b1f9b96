"""PAWS: its two kinds of files."""

import pytest

from compgen.data import paws

HEADER = "id\tsentence1\tsentence2\tlabel"


def test_read() -> None:
    lines = [HEADER, '1\tA `` b " .\tB a .\t0', "2\tb or b'c\tc\t1"]
    expected = [('A `` b " .', "B a .", "0"), ("b or b'c", "c", "1")]
    assert paws.read("f", lines) == expected


def test_byte_literals_of_quoras_questions() -> None:
    lines = [HEADER, "7\tb'It\\'s a caf\\xc3\\xa9?'\tb\"What's b'x' ?\"\t1"]
    assert paws.read("f", lines) == [("It's a café?", "What's b'x' ?", "1")]


@pytest.mark.parametrize("broken", ["b'\\xff'", "b'a'b'", "b'é'"])
def test_broken_literal(broken: str) -> None:
    with pytest.raises(ValueError, match=r"f, line 2 has a broken b'\.\.\.' literal"):
        paws.read("f", [HEADER, f"7\t{broken}\tx\t1"])
