"""Annotations as they lie in a prepared folder."""

from pathlib import Path

import pytest

from compgen.data.sememes import Annotations

ANNOTATIONS = Annotations(["bird|禽", "liquid|液", "pour|倒"], {"turkey": (0,), "water": (1, 2)})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    ANNOTATIONS.write(tmp_path)
    assert (tmp_path / "sememes.txt").read_text() == "bird|禽\nliquid|液\npour|倒\n"
    assert (tmp_path / "annotations.tsv").read_text() == "turkey\t0\nwater\t1 2\n"
    assert Annotations.read(tmp_path) == ANNOTATIONS


@pytest.mark.parametrize("line", ["ice", "ice\t", "ice\tcold", "ice\t3", "ice\t-4"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    ANNOTATIONS.write(tmp_path)
    with (tmp_path / "annotations.tsv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=r"annotations\.tsv, line 3 is not a word"):
        Annotations.read(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"sememes\.txt: No such file"):
        Annotations.read(tmp_path)


def test_coverage() -> None:
    found = ANNOTATIONS.coverage("water the Water turkey the".split())
    assert found == {"types": 4, "annotated_types": 3, "tokens": 5, "annotated_tokens": 3}
