"""Cleaning, tokenising and cutting text, against the tools' own commands where there is one."""

import gzip
import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compgen.data import bitext
from compgen.data.bitext import Bpe, Moses, SentencePiece, fits

TEXT = [
    "the dog saw the other dog near the old house",
    "she saw a house and the dogs in the house",
    "the older dogs saw nothing",
    "in the old days nobody saw the dogs",
]


def test_only_a_line_feed_ends_a_line_and_no_mark_begins_a_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffa\u2028b\rc\x85d\n\nlast".encode())
    assert list(bitext.stream_lines(path)) == ["a\u2028b\rc\x85d", "", "last"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_other_encodings_are_refused_by_file_and_line(tmp_path: Path, pack) -> None:
    path = tmp_path / ("text.gz" if pack is gzip.compress else "text")
    path.write_bytes(pack("one\nz\u00fcrich\n".encode("latin-1")))
    with pytest.raises(ValueError, match=rf"{path.name}, line 2 is not UTF-8 text \(b'\\xfc'"):
        list(bitext.stream_lines(path))


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    whole = gzip.compress("".join(f"Zeile {i}\n" for i in range(5000)).encode())
    path.write_bytes(whole)
    assert list(bitext.stream_lines(path)) == [f"Zeile {i}" for i in range(5000)]
    for damaged in (whole[:-5], whole[: len(whole) // 2], b"no gzip"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"text\.gz is cut short or damaged"):
            list(bitext.stream_lines(path))


def test_talks(tmp_path: Path) -> None:
    path = tmp_path / "train.tags.de-en.en"
    path.write_text(
        "<url>http://www.ted.com/talks/x</url>\n<keywords>talks, x</keywords>\n"
        "<talkid>1</talkid>\n<title>Al: On url</title>\n<description>He talks.</description>\n"
        " Thank you.\n\nThe <url> tag is gone.\n"
    )
    spoken = ["Al: On url", "He talks.", " Thank you.", "", "The <url> tag is gone."]
    assert list(bitext.read_talks(path)) == spoken


def test_segments(tmp_path: Path) -> None:
    path = tmp_path / "test.sgm"
    path.write_text(
        '<srcset setid="x" srclang="any">\n<DOC docid="1"><p>\n<seg id="1">A &amp; B\u2019s</seg>\n'
        '<SEG id="2"> two\nlines  </SEG><seg id="3"></seg>\n</p></DOC></srcset>\n'
    )
    assert list(bitext.read_segments(path)) == ["A & B's", "two lines", ""]
    for broken in ('<seg id="1">open', "<p>none</p>", '<seg id="1">a</seg><seg id="2">b'):
        path.write_text(broken)
        with pytest.raises(ValueError, match=r"test\.sgm is not a complete test set"):
            list(bitext.read_segments(path))


def test_each_side_is_read_as_its_name_says(tmp_path: Path) -> None:
    source, target = tmp_path / "a.en", tmp_path / "b.sgm.gz"
    source.write_text("a b\n")
    target.write_bytes(gzip.compress(b'<doc>\n<seg id="1">c</seg>\n</doc>'))
    assert list(bitext.read_pairs(source, target, "read")) == [("a b", "c")]


@pytest.mark.parametrize("longer", ["source", "target"])
def test_sides_must_match(tmp_path: Path, longer: str) -> None:
    for side in ("source", "target"):
        (tmp_path / side).write_text("a\n" * (5 if side == longer else 4))
    with pytest.raises(ValueError, match=f"has only 4 lines and .*{longer} has more"):
        list(bitext.read_pairs(tmp_path / "source", tmp_path / "target", "read"))


def test_no_part_may_be_empty(tmp_path: Path) -> None:
    pairs = [("train", ("a", "b")), ("valid", ("c", "d"))]
    with pytest.raises(ValueError, match="no pair is left for test"):
        bitext.write_parts(pairs, tmp_path / "parts", ("en", "de"))


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("a b c", "a b", True),  # exactly 1.5
        ("a b", "a b c", True),
        ("a b c d", "a b", False),
        ("a", "b c", False),
        ("", "", False),
        ("a", "", False),
        ("a " * 8, "b " * 8, True),
        ("a " * 9, "b " * 8, False),
        ("a " * 8, "b " * 9, False),
        ("a" * 1000, "b", True),
        ("a", "b" * 1001, False),
    ],
)
def test_length_filter(source: str, target: str, kept: bool) -> None:
    assert fits((source, target), 8, 1.5) is kept


@pytest.mark.parametrize(
    ("moses", "line", "clean"),
    [
        (Moses("en"), "  a\u00a0 b\t\u2028c.\r", "a b c."),
        (Moses("en", tokenize=True), "It's 10-fold, Mr. X!", "It &apos;s 10-fold , Mr. X !"),
        (Moses("de", tokenize=True, split_dashes=True), "10-fach", "10 @-@ fach"),
        (Moses("fr", tokenize=True), "l'an [1]", "l&apos; an &#91; 1 &#93;"),
        (Moses("de", tokenize=True, lowercase=True), "Das Ärgste!", "das ärgste !"),
        (Moses("de", normalize=True), "„Ja“ \u2013 sagte…", '"Ja" - sagte...'),
        (Moses("en", normalize=True), "zero\u200bwidth\ufeff \x07bell", "zero width bell"),
        (Moses("en", tokenize=True), "„Ja\u200b", "„ Ja \u200b"),  # nothing is normalised
    ],
)
def test_moses(moses: Moses, line: str, clean: str) -> None:
    assert moses(line) == clean


def test_bpe_equals_subword_nmt(tmp_path: Path) -> None:
    texts = [tmp_path / "en", tmp_path / "de"]
    texts[0].write_text("".join(f"{line}\n" for line in TEXT[:2]))
    texts[1].write_text("".join(f"{line}\n" for line in TEXT[2:]))
    bitext.learn_codes(texts, 12, tmp_path / "code")

    def official(*arguments: str) -> str:
        command = [str(Path(sys.executable).with_name("subword-nmt")), *arguments]
        text = "".join(f"{line}\n" for line in TEXT)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return done.stdout

    assert (tmp_path / "code").read_text() == official("learn-bpe", "-s", "12")
    cut = [Bpe(tmp_path / "code")(line) for line in TEXT]
    assert cut == official("apply-bpe", "-c", str(tmp_path / "code")).splitlines()
    assert any("@@ " in line for line in cut)
    assert [line.replace("@@ ", "") for line in cut] == TEXT


def test_sentencepiece(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("".join(f"{line}\n" for line in TEXT))
    for name in ("one", "again"):
        bitext.learn_sentencepiece([text, text], 30, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "again").read_bytes()
    cut = [SentencePiece(tmp_path / "one")(line) for line in TEXT]
    assert any(len(line.split()) > len(line.split("▁")) for line in cut)
    assert [line.replace(" ", "").replace("▁", " ").strip() for line in cut] == TEXT


def test_nothing_to_learn_from(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a b\n" * 3)
    with pytest.raises(ValueError, match="no word of two letters to learn BPE from"):
        bitext.learn_codes([text], 10, tmp_path / "code")
    text.write_text("ab cd\n")
    with pytest.raises(ValueError, match="no two letters twice to learn BPE from"):
        bitext.learn_codes([text], 10, tmp_path / "code")
    with pytest.raises(ValueError, match="cannot learn 1000 pieces: Vocabulary size"):
        bitext.learn_sentencepiece([text], 1000, tmp_path / "model")


@pytest.mark.parametrize("workers", [1, 2])
def test_transform_keeps_the_order_and_reads_little(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bitext, "BATCH", 10)
    read = 0

    def pairs() -> Iterator[bitext.Pair]:
        nonlocal read
        for read in range(1000):
            yield f"A{read}", f"B{read}"

    changed = bitext.transform(pairs(), str.lower, str.upper, workers)
    start = list(itertools.islice(changed, 15))
    assert read <= 10 * (2 * workers + 3)
    assert [*start, *changed] == [(f"a{i}", f"B{i}") for i in range(1000)]


def test_workers_end_with_their_parent() -> None:
    code = """
import itertools, os, signal
from compgen.data import bitext
pairs = (("a", "b") for _ in itertools.count())
next(bitext.transform(pairs, str.lower, str.lower, 2))
os.kill(os.getpid(), signal.SIGKILL)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read()  # its end comes when the last worker has closed it
    assert process.returncode == -signal.SIGKILL
