"""prepare/paws.sh, bird.sh, sts_b.sh and sst2.sh, run as a user runs them."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sentence_files
from prepare_scripts import contents, runner

from compgen.data.preparation import hold_out
from compgen_cli import prepare

SIZES: dict[str, dict[str, int]] = {
    "paws": {"train": 40, "valid": 8, "test": 6, "test1": 10},
    "bird": {"test": 12, "test1": 6},
    "sts_b": {"train": 24, "valid": 6, "test": 8},
    "sst2": {"train": 50, "valid": 10, "test": 10},
}
OPTIONS = {"sst2": ("--valid-size", 10)}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each data set in its publisher's layout, and ``pretrained``."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("pretrained", *SIZES):
        getattr(sentence_files, name)(folder / name)
    return folder


def main(name: str, *arguments: object) -> int:
    """What the script runs, in this process."""
    return prepare.main([name, *map(str, arguments)])


def task(folder: Path, classes: int) -> Any:
    """fairseq's own task on a prepared folder; one class: numbers."""
    from fairseq.tasks.sentence_prediction import SentencePredictionTask

    options = {"init_token": 0, "separator_token": None, "max_positions": 128, "seed": 1}
    options |= {"shorten_method": "none", "shorten_data_split_list": "", "no_shuffle": True}
    options |= {"d2v2_multi": False, "add_prev_output_tokens": False}
    cfg = {"data": str(folder), "num_classes": classes, "regression_target": classes == 1}
    return SentencePredictionTask.setup_task(SimpleNamespace(**options, **cfg))


@pytest.mark.parametrize("name", SIZES)
def test_folder_is_complete_and_read_by_fairseq(
    name: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dest, sizes = tmp_path / name, SIZES[name]
    arguments = (dest, "--pretrained", data / "pretrained", *OPTIONS.get(name, ()))
    result = runner(name)(*arguments, COMPGEN_DATA=str(data))
    said = ", ".join(f"{size} {subset}" for subset, size in sizes.items())
    assert result.stdout == f"{dest}: {said}\n"
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == [dest]
    record = json.loads((dest / "PREPARED.json").read_text())
    assert record["command"].startswith(f"prepare/{name}.sh DEST --pretrained ")
    assert record["pairs"] == sizes
    assert set(record["sha256"]) == contents(dest).keys() - {"PREPARED.json"}

    classes = 1 if name in ("bird", "sts_b") else 2
    reader = task(dest, classes)
    words = reader.source_dictionary
    for subset, size in sizes.items():
        lines = {
            key.suffix[1:]: key.read_text().split("\n")[:-1]
            for key in (dest / "raw").glob(f"{subset}.*")
        }
        dataset = reader.load_dataset(subset)
        assert len(dataset) == size
        for index in range(size):
            sample = dataset[index]
            inputs = [lines[key][index] for key in ("input0", "input1") if key in lines]
            tokens = sample["net_input.src_tokens"].tolist()
            text = " ".join(words[token] for token in tokens)
            assert text == "<s> " + " ".join(f"{one} </s>" for one in inputs)
            (label,) = sample["target"]
            assert float(label) == pytest.approx(float(lines["label"][index]))

    capsys.readouterr()
    main(name, *arguments)
    assert capsys.readouterr().out == f"{dest} is already prepared with these settings.\n"


def read(folder: Path, name: str) -> list[str]:
    return (folder / "raw" / name).read_text().replace("@@ ", "").split("\n")[:-1]


def test_what_stands_where(data: Path, tmp_path: Path) -> None:
    common = ("--pretrained", data / "pretrained", "--from")
    seed = ("--seed", 2)
    qqp = ("--corpus", "qqp", "--valid-size", 4, *seed)
    main("paws", tmp_path / "qqp", *common, data / "paws", *qqp)
    train, valid = (read(tmp_path / "qqp", f"{part}.input0") for part in ("train", "valid"))
    assert (len(train), len(valid)) == (26, 4)
    assert (valid, train) == hold_out(sentence_files.sentences(30, 30), 4, seed=2)
    assert read(tmp_path / "qqp", "test1.input0") == sentence_files.sentences(10, 10)

    main("bird", tmp_path / "bird", *common, data / "bird")
    for one, other in zip(
        *(read(tmp_path / "bird", f"test1.input{i}") for i in range(2)), strict=True
    ):
        assert one.split() == other.split()[::-1]

    genres = ("--genres", "images", "--ood", "MSRvid")
    main("sts_b", tmp_path / "sts", *common, data / "sts_b", *genres)
    assert read(tmp_path / "sts", "test.label") == ["0", "0.25", "0.5", "0.75"]
    assert read(tmp_path / "sts", "test1.label") == ["0.125", "0.375", "0.625", "0.875"]
    record = json.loads((tmp_path / "sts" / "PREPARED.json").read_text())
    assert record["command"].endswith(" --genres images --ood MSRvid")

    main("sst2", tmp_path / "sst2", *common, data / "sst2", "--valid-size", 10, *seed)
    valid, _ = hold_out(sentence_files.sentences(60, 60), 10, seed=2)
    held_out = read(tmp_path / "sst2", "valid.input0")
    assert [line.rpartition(" ")[0] for line in held_out] == valid
    text = read(tmp_path / "sst2", "test.input0")
    labels = read(tmp_path / "sst2", "test.label")
    assert [line.endswith("good") for line in text] == [label == "1" for label in labels]
    assert (tmp_path / "sst2" / "label" / "dict.txt").read_text() == "0 1\n1 1\n"


def test_the_same_bytes_again_and_other_settings_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--pretrained", data / "pretrained", "--from", data / "sst2", "--valid-size", 10)
    for name in ("one", "two"):
        main("sst2", tmp_path / name, *arguments)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    other = sentence_files.pretrained(tmp_path / "other")
    with (other / "dict.txt").open("a") as file:
        file.write("more 1\n")
    capsys.readouterr()
    for more in (("--seed", 2), ("--pretrained", other)):
        assert main("sst2", tmp_path / "one", *arguments, *more) == 1
        assert "was prepared with other settings" in capsys.readouterr().err
