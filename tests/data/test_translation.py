"""The steps before fairseq-preprocess, on small archives in the publishers' layout."""

import argparse
import dataclasses
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sentence_files import pack

from compgen.data import cognition
from compgen.data.corpora import CORPORA, Corpus
from compgen.data.preparation import Preparation
from compgen.data.translation import extract, gather, prepare


def options(**given: object) -> argparse.Namespace:
    names = ("folder", "checksums", "downloads", "mirror", "model")
    defaults = {"bpe_merges": 30, "sentencepiece": False, "workers": 1}
    return argparse.Namespace(**{**dict.fromkeys(names), **defaults, **given})


def raw(corpus: Corpus, folder: Path, dest: Path, **given: object) -> dict[str, list[str]]:
    """The lines of each file of ``raw``."""
    args = options(folder=folder, **given)
    with Preparation("prepare/test.sh", dest, {}) as work:
        found = gather(corpus, args, work.folder / "downloads")
        prepare(corpus, extract(corpus, found, work, {}), args, work, {})
        return {path.name: path.read_text().split("\n")[:-1] for path in work.raw.iterdir()}


def words(lines: list[str]) -> list[str]:
    return [line.replace("@@ ", "") for line in lines]


def sgm(*segments: str) -> str:
    lines = (f'<seg id="{i}">{segment}</seg>\n' for i, segment in enumerate(segments, 1))
    return f'<srcset setid="x" srclang="any">\n<doc docid="x">\n{"".join(lines)}</doc>\n</srcset>\n'


def wmt14(folder: Path) -> None:
    """The five corpora of WMT'14 En-Fr, 1,340 lines; the last is too long on one side."""
    corpora = {
        "training-parallel-europarl-v7.tgz": ("./training/europarl-v7.fr-en.{}", 1, 9),
        "training-parallel-commoncrawl.tgz": ("commoncrawl.fr-en.{}", 9, 20),
        "training-parallel-un.tgz": ("un/undoc.2000.fr-en.{}", 20, 30),
        "training-parallel-nc-v9.tgz": ("training/news-commentary-v9.fr-en.{}", 30, 40),
        "training-giga-fren.tar": ("giga-fren.release2.fixed.{}.gz", 40, 1341),
    }
    for file, (name, start, end) in corpora.items():
        lines = {"en": "It\u2019s line-{} .\n", "fr": "C\u2019est la ligne {}.\n", "de": "unused\n"}
        texts = {
            name.format(language): "".join(line.format(i) for i in range(start, end))
            for language, line in lines.items()
        }
        if "giga" in name:
            texts[name.format("fr")] = texts[name.format("fr")][:-1] + " Oui!" * 10 + "\n"
        pack(folder / file, texts)
    test = {
        "test-full/newstest2014-fren-src.en.sgm": sgm(
            "Rock &amp; Roll-x\u2019s", "A \u201cb\u201d"
        ),
        "test-full/newstest2014-fren-ref.fr.sgm": sgm("Rock " * 9, "C"),
    }
    pack(folder / "test-full.tgz", test)


def test_wmt14(tmp_path: Path) -> None:
    wmt14(tmp_path)
    lines = raw(CORPORA["wmt14_en_fr"], tmp_path, tmp_path / "dest")
    english = words(lines["train.en"])
    # in the order of the recipe; dashes are split, punctuation is normalised
    assert english[0] == "It &apos;s line @-@ 1 ."
    assert english == [f"It &apos;s line @-@ {i} ." for i in range(1, 1340) if i != 1333]
    assert words(lines["train.fr"])[0] == "C&apos; est la ligne 1 ."
    assert words(lines["valid.en"]) == ["It &apos;s line @-@ 1333 ."]
    # the test set is neither filtered nor normalised, but for the apostrophe
    assert words(lines["test.en"]) == ["Rock &amp; Roll @-@ x &apos;s", "A \u201c b \u201d"]
    assert words(lines["test.fr"]) == [" ".join(["Rock"] * 9), "C"]
    assert any("@@ " in line for line in lines["train.en"])
    # what is held out is filtered as the training set is
    twice = dataclasses.replace(CORPORA["wmt14_en_fr"], held_out=670)
    lines = raw(twice, tmp_path, tmp_path / "twice")
    assert words(lines["valid.en"]) == ["It &apos;s line @-@ 670 ."]


def iwslt14(folder: Path) -> None:
    def talks(language: str) -> str:
        spoken = [f"Zeile {i}-x, {'ja ' * (i == 5) * 9}Ü{i}." for i in range(3, 50)]
        head = ["<url>http://x</url>", "<keywords>a, b</keywords>", "<talkid>1</talkid>"]
        head += ["<title>Zeile 1-x, Ü1.</title>", "<description>Zeile 2-x, Ü2.</description>"]
        lines = "".join(f"{line}\n" for line in head + spoken)
        return lines if language == "de" else lines.replace("Zeile", "Line").replace("ja ", "")

    texts = {f"de-en/train.tags.de-en.{side}": talks(side) for side in ("de", "en")}
    for name in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"):
        for side in ("de", "en"):
            texts[f"de-en/IWSLT14.{name}.de-en.{side}.xml"] = sgm(f" {name} &amp; {side} ")
    pack(folder / "de-en.tgz", texts)


def test_iwslt14(tmp_path: Path) -> None:
    iwslt14(tmp_path)
    lines = raw(CORPORA["iwslt14_en_de"], tmp_path, tmp_path / "dest")
    # line 5 goes by its ratio before every 23rd is held out: 24 and 47 of the file
    valid = [24, 47]
    train = [i for i in range(1, 50) if i not in (5, *valid)]
    assert words(lines["train.de"]) == [f"zeile {i}-x , ü{i} ." for i in train]
    assert words(lines["train.en"]) == [f"line {i}-x , ü{i} ." for i in train]
    assert words(lines["valid.en"]) == [f"line {i}-x , ü{i} ." for i in valid]
    names = ("ted.dev2010", "tedx.dev2012", "ted.tst2010", "ted.tst2011", "ted.tst2012")
    assert words(lines["test.de"]) == [f"{name} &amp; de" for name in names]


def test_other_merges_use_the_finished_steps_again(tmp_path: Path) -> None:
    iwslt14(tmp_path)
    corpus, work = CORPORA["iwslt14_en_de"], tmp_path / ".dest.preparing"
    first = raw(corpus, tmp_path, tmp_path / "dest", bpe_merges=5)
    times = {name: (work / name).stat().st_mtime_ns for name in ("extracted", "tokenised", "code")}
    second = raw(corpus, tmp_path, tmp_path / "dest", bpe_merges=45)
    again = {name: (work / name).stat().st_mtime_ns for name in times}
    assert [name for name in times if times[name] != again[name]] == ["code"]
    assert first["train.en"] != second["train.en"]
    assert words(first["train.en"]) == words(second["train.en"])
    pieces = raw(corpus, tmp_path, tmp_path / "dest", sentencepiece=True, bpe_merges=45)
    assert "".join(pieces["train.de"][0].split()) == "▁zeile▁1-x,▁ü1."


@pytest.mark.parametrize("missing", [4, 2000])
def test_truncated_archive(tmp_path: Path, missing: int) -> None:
    iwslt14(tmp_path)
    path = tmp_path / "de-en.tgz"
    path.write_bytes(path.read_bytes()[:-missing])
    with pytest.raises(ValueError, match=r"de-en\.tgz is cut short or damaged \(.*\); get it"):
        raw(CORPORA["iwslt14_en_de"], tmp_path, tmp_path / "dest")
    assert not (tmp_path / "dest").exists()
    assert not (tmp_path / ".dest.preparing").exists()


def test_truncated_plain_tar(tmp_path: Path) -> None:
    wmt14(tmp_path)
    path = tmp_path / "training-giga-fren.tar"
    whole = path.read_bytes()
    path.write_bytes(whole[:2000])
    with pytest.raises(ValueError, match=r"training-giga-fren\.tar is cut short"):
        raw(CORPORA["wmt14_en_fr"], tmp_path, tmp_path / "dest")
    path.write_bytes(whole[: whole.index(b"giga-fren.release2.fixed.fr.gz")])
    with pytest.raises(ValueError, match=r"giga-fren\.release2\.fixed\.fr\.gz is in none of"):
        raw(CORPORA["wmt14_en_fr"], tmp_path, tmp_path / "dest")


def test_only_what_is_wanted_leaves_the_archive(tmp_path: Path) -> None:
    evil = {"../evil": "x", "/tmp/evil": "x", "de-en/readme": "x", "de-en/train.tags.de-en.de": "x"}
    path = pack(tmp_path / "de-en.tgz", evil)
    with (
        pytest.raises(ValueError, match="is in none of"),
        Preparation("prepare/test.sh", tmp_path / "dest", {}) as work,
    ):
        extract(CORPORA["iwslt14_en_de"], {"de-en.tgz": path}, work, {})
    left = {file.name for file in tmp_path.rglob("*") if file.is_file()}
    assert left == {"de-en.tgz", "train.tags.de-en.de", "extracted.done"}


def test_checksums_of_ones_own_files(tmp_path: Path) -> None:
    iwslt14(tmp_path)
    corpus, path = CORPORA["iwslt14_en_de"], tmp_path / "de-en.tgz"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  ./de-en.tgz\n")
    assert gather(corpus, options(folder=tmp_path), tmp_path) == {"de-en.tgz": path}
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ValueError, match=r"de-en\.tgz is not the publisher's file"):
        gather(corpus, options(folder=tmp_path), tmp_path)


def test_multi30k(public: Callable[[str], Path], tmp_path: Path) -> None:
    folder = public("multi30k")
    corpus = CORPORA["multi30k_en_de"]
    found = gather(corpus, options(), tmp_path)  # through $COMPGEN_DATA
    assert set(found.values()) == {folder / name for name in corpus.files}
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    changed = copy / "data" / "task1" / "tok" / "val.lc.norm.tok.de"
    changed.chmod(0o644)
    changed.write_bytes(changed.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"val\.lc\.norm\.tok\.de is not the publisher's file"):
        gather(corpus, options(folder=copy), tmp_path)
    listed = tmp_path / "sums"
    listed.write_text(f"{hashlib.sha256(changed.read_bytes()).hexdigest()}  {changed.name}\n")
    assert len(gather(corpus, options(folder=copy, checksums=listed), tmp_path)) == 6


def test_the_recipes_numbers_are_the_published_ones():
    names = ("merges", "longest", "ratio", "held_out")
    assert {name: tuple(getattr(c, n) for n in names) for name, c in CORPORA.items()} == {
        "wmt17_en_de": (40_000, 250, 1.5, 100),
        "wmt14_en_fr": (40_000, 250, 1.5, 1333),
        "iwslt14_en_de": (10_000, 175, 1.5, 23),
        "multi30k_en_de": (10_000, 0, 1.5, 0),
    }
    assert (cognition.MERGES, cognition.LOW_RESOURCE_PAIRS) == (2000, 1000)
