"""prepare/pretraining.sh, run as a user runs it."""

import json
from pathlib import Path

import pytest
from prepare_scripts import publish, runner

from compgen.data.pretraining import documents, split

run = runner("pretraining")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small HowNet in the publisher's layout, and the checksums of its files in ``sums``."""
    words = "the water birds fly over dogs in cold air then"
    files = {
        "sememe_1400_EnZh.txt": "liquid|液\nanimal|兽\nmove|动\n",
        "hownet.txt": "水\t液\n狗\t兽\n飞\t动\n",
        "en2zh_dict.txt": "water\t水\nDogs\t狗\nfly\t飞\nfly in\t飞\n",
        "corpus.en": "\n".join([" ".join([words] * 12), " ".join([words] * 9) + " cold air"]),
    }
    return publish(tmp_path_factory.mktemp("CL-SP"), files)


def test_folder_is_complete_and_read_by_the_task(clone: Path, tmp_path: Path) -> None:
    from fairseq.data import Dictionary, data_utils

    dest = tmp_path / "text"
    result = run(dest, "--from", clone, "--checksums", clone / "sums", "--bpe-merges", 5)
    assert result.stdout == (
        f"{dest}: 21 train, 1 valid sentences\n"
        "annotated: 3 of 10 types (30.0%)\n"
        "annotated: 63 of 212 tokens (29.7%)\n"
    )
    assert list(tmp_path.iterdir()) == [dest]
    record = json.loads((dest / "PREPARED.json").read_text())
    assert record["sentences"] == {"train": 21, "valid": 1}
    assert record["sememes"]["annotated_tokens"] == 63
    assert set(record["inputs"]) == {path.name for path in clone.iterdir()} - {"sums"}
    assert (dest / "sememes.txt").read_text() == "animal|兽\nliquid|液\nmove|动\n"
    assert (dest / "annotations.tsv").read_text() == "dogs\t0\nfly\t2\nwater\t1\n"

    dictionary = Dictionary.load(str(dest / "dict.txt"))
    assert len(dictionary) == record["vocabulary"]["subwords"]
    for part in ("train", "valid"):
        text = (dest / "raw" / part).read_text().splitlines()
        data = data_utils.load_indexed_dataset(str(dest / part), dictionary)
        assert [dictionary.string(line) for line in data] == text
    train = (dest / "raw" / "train").read_text()
    assert "@@ " in train
    line = "the water birds fly over dogs in cold air then\n"
    assert train.replace("@@ ", "") == 12 * line + "\n" + 9 * line + "\n"
    assert (dest / "raw" / "valid").read_text().replace("@@ ", "") == "cold air\n\n"


def test_own_text_and_openhownet(clone: Path, tmp_path: Path) -> None:
    text, senses = tmp_path / "text", tmp_path / "senses.json"
    lines = [f"Dogs  like the water of river {number} ." for number in range(40)]
    text.write_text("\n\n\n".join("\n".join(lines[i : i + 4]) for i in range(0, 40, 4)))
    senses.write_text(
        json.dumps([{"en_word": "river", "Def": "{waters|水域:modifier={linear|线}}"}])
    )
    result = run(tmp_path / "dest", "--text", text, "--senses", senses, "--bpe-merges", 5)
    assert "annotated: 40 of 320 tokens (12.5%)" in result.stdout
    record = json.loads((tmp_path / "dest" / "PREPARED.json").read_text())
    assert record["sentences"] == {"train": 38, "valid": 2}
    assert set(record["inputs"]) == set(record["settings"]) - {"bpe_merges"} == {"text", "senses"}


def test_documents_and_their_division(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("\n\n" + "a b\nc\n \n" + "d\n" * 39 + "\n")
    found = list(documents(path))
    assert found == [["a b", "c"], ["d"] * 39]
    train, valid = split(found)
    assert train == ["a b", "c", "", *["d"] * 37, ""]
    assert valid == ["d", "d", ""]
