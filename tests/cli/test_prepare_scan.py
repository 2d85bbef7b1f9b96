"""prepare/scan.sh, run as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from prepare_scripts import contents, runner

from compgen.data import prepare_scan, scan
from compgen.data.preparation import Preparation, hold_out

run = runner("scan")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scan") / "new" / "jump_around_right"
    run("jump_around_right", folder)
    return folder


def test_folder_is_complete(prepared: Path) -> None:
    assert [path.name for path in prepared.parent.iterdir()] == [prepared.name]
    files = contents(prepared)
    assert "preprocess.log" not in files
    record = json.loads(files.pop("PREPARED.json"))
    assert record["pairs"] == {"train": 18528, "valid": 234, "test": 1173}
    assert set(record["sha256"]) == set(files)
    assert {f"raw/{part}.src" for part in ("train", "valid", "test")} < set(files)
    assert record["command"] == "prepare/scan.sh jump_around_right DEST --valid test20 --seed 1"
    assert record["vocabulary"] == {"src": 17, "tgt": 10}


def test_the_last_lines_of_the_official_file(tmp_path: Path, public: Callable[[str], Path]) -> None:
    official = public("scan")
    run("addjump", tmp_path / "scan", "--valid=last20", f"--from={official}")
    file = official / "add_prim_split" / "tasks_train_addprim_jump.txt"
    commands = [line.split(" OUT: ")[0].removeprefix("IN: ") for line in file.open()]
    raw = tmp_path / "scan" / "raw"
    found = [(raw / f"{part}.src").read_text().splitlines() for part in ("train", "valid")]
    assert found == [commands[:-2934], commands[-2934:]]


def test_each_part_is_what_the_options_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text: dict[str, list[str]] = {}

    def keep(work: Preparation, *_: str) -> None:
        text.update({path.name: path.read_text().splitlines() for path in work.raw.iterdir()})

    def parts(*flags: object) -> list[list[scan.Pair]]:
        prepare_scan.main([*map(str, flags), str(tmp_path / "scan")])
        sides = ((text[f"{part}.src"], text[f"{part}.tgt"]) for part in ("train", "valid", "test"))
        return [list(map(scan.Pair, *side)) for side in sides]

    monkeypatch.setattr(Preparation, "finish", keep)
    train, test = scan.split("jump_around_right")
    drawn = ("--valid-size", 50, "--seed", 3)
    valid = hold_out(test, 50, 3)[0]
    assert parts("jump_around_right", *drawn) == [train, valid, test]
    valid, rest = hold_out(train, 50, 3)
    assert parts("jump_around_right", *drawn, "--valid", "train20") == [rest, valid, test]
    assert parts("addjump", "--augment", 1)[0] == scan.augment(1)
    assert parts("addjump", "--augment", 1, "--atomic-copies", 2)[0] == scan.augment(1, 2)


def test_wrong_python(tmp_path: Path) -> None:
    result = run("right", tmp_path / "scan", status=1, PYTHON="no-such-python")
    assert "set PYTHON" in result.stderr
