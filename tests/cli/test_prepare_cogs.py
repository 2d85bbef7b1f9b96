"""prepare/cogs.sh, run as a user runs it."""

import json
from pathlib import Path

import pytest
from prepare_scripts import publish, read_back, runner

from compgen.data.preparation import hold_out

run = runner("cogs")
SUBSETS = {"train": "train", "valid": "dev", "test": "gen", "test1": "test"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small COGS in the publisher's layout, and the checksums of its files in ``sums``."""
    files = {}
    for part, names in {"train": 40, "dev": 6, "test": 5, "gen": 25}.items():
        case = "case{}" if part == "gen" else "in_distribution"
        lines = [
            f"Zoe{i} saw the cat .\t* cat ( x _ 3 ) ; see . agent ( x _ 1 , Zoe{i} )\t"
            f"{case.format(i)}\n"
            for i in range(names)
        ]
        files[f"data/{part}.tsv"] = "".join(lines)
    return publish(tmp_path_factory.mktemp("COGS"), files)


def test_folder_is_complete_and_read_by_fairseq(clone: Path, tmp_path: Path) -> None:
    dest = tmp_path / "cogs"
    result = run(dest, "--from", clone, "--checksums", clone / "sums", "--valid", "gen20")
    assert result.stdout == f"{dest}: 40 train, 5 valid, 25 test, 5 test1 pairs\n"
    assert list(tmp_path.iterdir()) == [dest]
    record = json.loads((dest / "PREPARED.json").read_text())
    assert record["command"].startswith("prepare/cogs.sh DEST --valid gen20 --seed 1 --checksums")
    assert set(record["inputs"]) == {f"data/{part}.tsv" for part in SUBSETS.values()}

    text = read_back(dest, "en", "lf")
    lines = (clone / "data" / "gen.tsv").read_text().splitlines()
    cases = (dest / "cases" / "test.case").read_text().splitlines()
    rows = zip(text["test.en"], text["test.lf"], cases, strict=True)
    assert ["\t".join(row) for row in rows] == lines
    cases = (dest / "cases" / "valid.case").read_text().splitlines()
    rows = zip(text["valid.en"], text["valid.lf"], cases, strict=True)
    assert ["\t".join(row) for row in rows] == hold_out(lines)[0]


def test_validation_is_the_development_set_or_a_part_that_the_seed_draws(
    clone: Path, tmp_path: Path
) -> None:
    flags = ["--from", clone, "--checksums", clone / "sums"]
    result = run(tmp_path / "dev", *flags)
    assert result.stdout.endswith(": 40 train, 6 valid, 25 test, 5 test1 pairs\n")
    assert [path.name for path in (tmp_path / "dev" / "cases").iterdir()] == ["test.case"]
    run(tmp_path / "gen20", *flags, "--valid", "gen20", "--seed", 2)
    lines = (clone / "data" / "gen.tsv").read_text().splitlines()
    chosen = [line.partition("\t")[0] for line in hold_out(lines, seed=2)[0]]
    assert (tmp_path / "gen20" / "raw" / "valid.en").read_text().splitlines() == chosen


def test_failed_preprocessing_leaves_nothing(clone: Path, tmp_path: Path) -> None:
    broken = tmp_path / "fairseq_cli"
    broken.mkdir()
    (broken / "__init__.py").touch()
    (broken / "preprocess.py").write_text("raise SystemExit('out of luck')\n")
    flags = ["--from", clone, "--checksums", clone / "sums"]
    result = run(tmp_path / "cogs", *flags, status=1, PYTHONPATH=str(tmp_path))
    assert "out of luck" in result.stderr
    assert "fairseq-preprocess failed" in result.stderr
    assert list(tmp_path.iterdir()) == [broken]
