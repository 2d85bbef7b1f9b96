"""Labelled sentences: how they are written, and what is refused."""

from pathlib import Path

import pytest
from sentence_files import pretrained

from compgen.data.labelled_sentences import Example, Subwords, finish_sets
from compgen.data.preparation import Preparation
from compgen.text import table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretrained(tmp_path_factory.mktemp("pretrained") / "data")


def test_sentences_look_like_the_pretraining_text(folder: Path) -> None:
    subwords = Subwords(folder)

    def words(text: str) -> str:
        return subwords(text).replace("@@ ", "")

    # that text has small letters from a to v and y, no x or z, and no punctuation
    assert words("The Film  was GOOD.") == "the film was good"
    assert words("isn't it? 1975\u2028text") == "isn t it te t"
    assert words("zzz 42 !") == ""
    types = {line.split()[0] for line in (folder / "dict.txt").read_text().splitlines()}
    assert set(subwords("Stateless societies' authors").split()) <= types


@pytest.mark.parametrize(
    ("more", "sentence", "expected"),
    [
        ("T@@ 1\n. 1\n", "The Film.", "The ilm ."),  # of the capitals it has the T alone
        ("\U0001d400 1\n", "The Film", "the film"),  # a capital that has no small letter
        ("&apos;t 1\n' 1\n& 1\n; 1\n", "isn't", "isn &apos;t"),  # as Moses escapes it
    ],
)
def test_marks_of_the_pretraining_text(more, sentence, expected, tmp_path: Path) -> None:
    folder = pretrained(tmp_path / "data")
    with (folder / "dict.txt").open("a", encoding="utf-8") as file:
        file.write(more)
    assert Subwords(folder)(sentence).replace("@@ ", "") == expected


def test_folder_without_codes(tmp_path: Path) -> None:
    folder = pretrained(tmp_path / "data")
    (folder / "code").write_text("no codes at all\n")
    with pytest.raises(ValueError, match=r"code does not hold subword-nmt's BPE codes"):
        Subwords(folder)
    (folder / "code").unlink()
    with pytest.raises(ValueError, match=r"data/code is missing"):
        Subwords(folder)


def test_table() -> None:
    lines = ["id\tb\ta", '1\tx "y\t z ', "2\t\t"]
    assert table("t", lines, ("a", "b")) == [["z", 'x "y'], ["", ""]]
    with pytest.raises(ValueError, match="t has no column 'c'; its first line names id, b, a"):
        table("t", lines, ("a", "c"))
    for line, n in (("1\t2", 2), ("1\t2\t3\t4", 4)):
        with pytest.raises(ValueError, match=f"t, line 4 has {n} fields, but the first has 3"):
            table("t", [*lines, line], ("a",))
    with pytest.raises(ValueError, match="t has no column 'a'"):
        table("t", [], ("a",))


def test_bad_examples_leave_nothing(folder: Path, tmp_path: Path) -> None:
    subwords = Subwords(folder)
    good = [Example("the film was good", None, "1")]
    bad = {"none of 0, 1": [*good, Example("the film", None, "2")], "no sentence for test": []}
    for message, examples in bad.items():
        with (
            pytest.raises(ValueError, match=message),
            Preparation("prepare/test.sh", tmp_path / "dest", {}) as work,
        ):
            finish_sets(work, {"train": good, "test": examples}, subwords, ("0", "1"), {})
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["word\n", "word 1\nword 2\n", "<s> 1\n"])
def test_broken_dictionary(text: str, tmp_path: Path) -> None:
    broken = pretrained(tmp_path / "data")
    (broken / "dict.txt").write_text(text)
    with pytest.raises(ValueError, match=r"dict\.txt is not a fairseq dictionary"):
        Subwords(broken)


def test_a_symbol_in_the_dictionary_adds_no_characters(tmp_path: Path) -> None:
    folder = pretrained(tmp_path / "data")
    with (folder / "dict.txt").open("a") as file:
        file.write("<s> 1 #fairseq:overwrite\n")
    assert "1" not in Subwords(folder)("the 1 film")
