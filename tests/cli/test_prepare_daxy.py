"""prepare/daxy.sh, run as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from prepare_scripts import publish, read_back, runner

from compgen.data.daxy import hold_out_sources
from compgen.data.scan import read_official

run = runner("daxy")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Small files in the publisher's layout, and their checksums in ``sums``."""
    daxy = "IN: i am daxy . OUT: je suis daxiste .\n"
    lines = {
        "train.daxy": "".join(f"IN: he is a{i} . OUT: il est b{i} .\n" for i in range(9))
        + 2 * daxy,
        "test.daxy": "IN: he is daxy . OUT: il est daxiste .\n",
        "test": "IN: he is daxy . OUT: il est daxiste .\nIN: i m new . OUT: je suis neuf .\n",
    }
    return publish(tmp_path / "files", lines)


def test_folder_is_complete_and_read_by_fairseq(files: Path, tmp_path: Path) -> None:
    dest = tmp_path / "daxy"
    flags = ["--checksums", files / "sums", "--valid-size", 3, "--seed", 2]
    result = run(dest, "--from", files, *flags)
    assert result.stdout == f"{dest}: 8 train, 3 valid, 1 test, 2 test1 pairs\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["daxy", "files"]
    record = json.loads((dest / "PREPARED.json").read_text())
    assert record["command"].startswith("prepare/daxy.sh DEST --valid-size 3 --seed 2")
    text = read_back(dest, "en", "fr")
    pairs = {
        subset: sorted(
            f"IN: {en} OUT: {fr}"
            for en, fr in zip(text[f"{subset}.en"], text[f"{subset}.fr"], strict=True)
        )
        for subset in ("train", "valid", "test", "test1")
    }
    assert sorted(pairs["train"] + pairs["valid"]) == sorted(
        (files / "train.daxy").read_text().splitlines()
    )
    held_out, _ = hold_out_sources(read_official(files / "train.daxy"), 3, seed=2)
    assert text["valid.en"] == [pair.command for pair in held_out]
    assert pairs["test"] == (files / "test.daxy").read_text().splitlines()
    assert pairs["test1"] == (files / "test").read_text().splitlines()


def test_the_publishers_files(public: Callable[[str], Path], tmp_path: Path) -> None:
    dest = tmp_path / "daxy"
    result = run(dest, COMPGEN_DATA=str(public("daxy").parent))
    assert result.stdout == f"{dest}: 10499 train, 500 valid, 8 test, 1191 test1 pairs\n"
    train = (dest / "raw" / "train.en").read_text().splitlines()
    assert train.count("i am daxy .") == sum("daxy" in line for line in train) == 1000
    for subset in ("valid", "test", "test1"):
        assert not set(train) & set((dest / "raw" / f"{subset}.en").read_text().splitlines())
