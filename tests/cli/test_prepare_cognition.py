"""prepare/cognition.sh, run as a user runs it."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from prepare_scripts import publish, read_back, runner

from compgen.data import bitext, cognition
from compgen.data.preparation import Preparation

run = runner("cognition")
WORDS = {"dog": "狗", "car": "汽车", "liked": "喜欢", "saw": "看见", "big": "大", "all": "大家"}
SIZES = {"train": 60, "valid": 12, "test": 8}  # in the publisher's layout


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small CoGnition in the publisher's layout, and the checksums of its files in ``sums``."""
    draw = random.Random(1)
    files: dict[str, list[str]] = {"eval/lexicon": ["dog\t狗"]}

    def add(prefix: str, size: int, space: str = " ") -> None:
        sentences = [draw.choices(list(WORDS), k=draw.randint(2, 6)) for _ in range(size)]
        files[f"{prefix}.en"] = [" ".join(sentence) for sentence in sentences]
        files[f"{prefix}.zh"] = [space.join(WORDS[w] for w in sentence) for sentence in sentences]

    for part, size in SIZES.items():
        add(f"data/{part}", size)
    whole = "data/cg-test/cg-test"
    files |= {f"{whole}.{end}": [] for end in ("en", "zh", "compound")}
    for number, kind in enumerate(("NP", "VP", "PP")):
        add(f"data/cg-test/{kind}/{kind}", 15, space="")
        for end in ("en", "zh"):
            files[f"{whole}.{end}"] += files[f"data/cg-test/{kind}/{kind}.{end}"]
        files[f"{whole}.compound"] += [f"compound {number} {i // 5}" for i in range(15)]
    texts = {name: "".join(f"{line}\n" for line in lines) for name, lines in files.items()}
    return publish(tmp_path_factory.mktemp("CoGnition"), texts)


@pytest.fixture(scope="module")
def arguments(clone: Path) -> list[object]:
    return ["--from", clone, "--checksums", clone / "sums", "--valid", "cg20"]


@pytest.fixture(scope="module")
def prepared(arguments: list[object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    dest = tmp_path_factory.mktemp("full") / "cognition"
    result = run(dest, *arguments)
    assert result.stdout == f"{dest}: 60 train, 5 valid, 45 test, 8 test1 pairs\n"
    assert list(dest.parent.iterdir()) == [dest]
    return dest


def test_text(prepared: Path, clone: Path, tmp_path: Path) -> None:
    publisher = {"train": "train", "test1": "test", "test": "cg-test/cg-test"}
    for subset, name in publisher.items():
        assert read(prepared / "raw" / f"{subset}.en") == read(clone / "data" / f"{name}.en")
        ours = read(prepared / "raw" / f"{subset}.zh")
        theirs = read(clone / "data" / f"{name}.zh")
        assert [x.replace("@@ ", "").replace(" ", "") for x in ours] == [
            x.replace(" ", "") for x in theirs
        ]
    # the training words are few enough to be whole again after the merges, and so is CG-test
    assert set(" ".join(read(prepared / "raw" / "test.zh")).split()) == set(WORDS.values())
    codes = tmp_path / "codes"
    bitext.learn_codes([clone / "data" / "train.zh"], cognition.MERGES, codes)
    assert read(prepared / "bpe.codes") == read(codes)


def test_compounds_follow_their_sentences(prepared: Path, clone: Path) -> None:
    folder = prepared / "cter"
    assert read(folder / "test.compound") == read(clone / "data" / "cg-test" / "cg-test.compound")
    assert read(folder / "test.type") == 15 * ["NP"] + 15 * ["VP"] + 15 * ["PP"]
    assert (folder / "lexicon").read_bytes() == (clone / "eval" / "lexicon").read_bytes()

    def rows(subset: str) -> list[tuple[str, ...]]:
        paths = [f"raw/{subset}.en", f"raw/{subset}.zh"]
        paths += [f"cter/{subset}.compound", f"cter/{subset}.type"]
        return list(zip(*(read(prepared / path) for path in paths), strict=True))

    start = rows("test").index(rows("valid")[0])
    assert start % 5 == 0
    assert rows("valid") == rows("test")[start : start + 5]


def test_the_low_resource_setting_has_no_part_of_the_training_set(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the last one of the 8 pairs of the random test is for validation."""
    monkeypatch.setattr(cognition, "LOW_RESOURCE_PAIRS", 1)
    files = {name: clone / name for name in cognition.OFFICIAL}

    def raw(**settings: object) -> dict[str, list[str]]:
        settings = {"low_resource": True, "tokens": "word"} | settings
        with Preparation("prepare/test.sh", tmp_path / "dest", settings) as work:
            cognition._write(work, files, cognition.OFFICIAL)
            assert not (work.data / "bpe.codes").exists()
            return {path.name: read(path) for path in work.raw.iterdir()}

    text, groups = raw(valid="valid", seed=None), raw(valid="cg20", seed=3)
    assert len(text) == len(groups) == 6
    for side in ("en", "zh"):
        valid, rest = (read(clone / "data" / f"{name}.{side}") for name in ("valid", "test"))
        assert text[f"train.{side}"] == groups[f"train.{side}"] == valid + rest[:7]
        assert text[f"valid.{side}"] == rest[7:]
        chosen = cognition.choose_groups(45, seed=3)
        assert groups[f"valid.{side}"] == [groups[f"test.{side}"][i] for i in chosen]
    # CG-test is cut into the words of these training pairs
    assert set(" ".join(text["test.zh"]).split()) == set(WORDS.values())
    assert chosen != cognition.choose_groups(45)


def test_fairseq_reads_it_back(prepared: Path) -> None:
    record = json.loads((prepared / "PREPARED.json").read_text())
    assert record["settings"]["tokens"] == "bpe"
    assert "subword-nmt" in record["versions"]
    read_back(prepared, "en", "zh")


def test_training_set_without_checksum(public: Callable[[str], Path], tmp_path: Path) -> None:
    """Official files with a training set of the wrong size, or without any."""
    data = tmp_path / "data"
    shutil.copytree(public("cognition"), data / "cognition")
    dest = tmp_path / "new" / "cognition"

    def refused(message: str, **environment: str) -> bool:
        done = run(dest, status=1, **environment)
        alone = done.stdout == "" and done.stderr.count("\n") == 1
        return alone and done.stderr.startswith("prepare/cognition.sh: ") and message in done.stderr

    assert refused("cognition/data/train.en is missing", COMPGEN_DATA=str(data))
    for side in ("en", "zh"):
        source = data / "cognition" / "data" / f"valid.{side}"
        shutil.copyfile(source, source.with_name(f"train.{side}"))
    wrong = "train.en has 10000 lines, not the publisher's 196246"
    assert refused(wrong, COMPGEN_DATA=str(data)) and not dest.exists()
    # nothing at hand: known files would be downloaded, these are not
    assert refused("data/train.en has no known checksum")
