"""HowNet: its publishers' layouts, the sememes of English words."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compgen.data import hownet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four Chinese words, three English entries, four sememes."""
    (tmp_path / "sememe_1400_EnZh.txt").write_text("liquid|液\nbird|禽\nplace|地方\npour|倒\n")
    (tmp_path / "hownet.txt").write_text("水\t液\n浇\t倒 液\n火鸡\t禽\n土耳其\t地方\n")
    (tmp_path / "en2zh_dict.txt").write_text(
        "water\t浇/水/不在\nTurkey\t土耳其\nturkey\t火鸡\ntap water\t水\nxylem\t木质部\n"
    )
    return tmp_path


def test_a_word_has_the_sememes_of_its_translations(folder: Path) -> None:
    found = hownet.read_translated(folder)
    assert found.names == ["bird|禽", "liquid|液", "place|地方", "pour|倒"]
    assert found.words == {"turkey": (0, 2), "water": (1, 3)}
    assert found.of("Turkey") == (0, 2)
    assert found.of("xylem") == ()


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("hownet.txt", "水 液", "hownet.txt, line 5 does not have 2 fields"),
        ("hownet.txt", "冰\t冷", "hownet.txt, line 5: the sememe 冷 is not in sememe_1400_EnZh"),
        ("en2zh_dict.txt", "ice", "en2zh_dict.txt, line 6 does not have 2 fields"),
        ("sememe_1400_EnZh.txt", "cold", "EnZh.txt, line 5 is not of the form"),
    ],
)
def test_a_bad_line_is_named(folder: Path, name: str, line: str, message: str) -> None:
    with (folder / name).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=message):
        hownet.read_translated(folder)


def test_senses_of_openhownet(tmp_path: Path) -> None:
    senses = [
        {"en_word": "apple", "Def": "{tool|用具:{cook food|做饭:instrument={~}}}"},
        {"en_word": "apple ", "Def": '{fruit|水果:modifier={"Apple Inc|苹果"}}RMK={x|y}'},
        {"en_word": "apple tree", "Def": "{tree|树:{reproduce|生殖:PatientProduct={fruit|水果}}}"},
        {"en_word": "", "Def": "{human|人}"},
    ]
    path = tmp_path / "senses.json"
    path.write_text(json.dumps(senses, ensure_ascii=False))
    found = hownet.read_senses(path)
    names = ["Apple_Inc|苹果", "cook_food|做饭", "fruit|水果", "human|人", "reproduce|生殖"]
    assert found.names == [*names, "tool|用具", "tree|树"]
    assert found.words == {"apple": (0, 1, 2, 5)}


@pytest.mark.parametrize("text", ["[]", "{}", '[{"en_word": "apple"}]', "[1]", '{"a": "b"}'])
def test_what_is_no_list_of_senses_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "senses.json").write_text(text)
    with pytest.raises(ValueError, match=r"senses\.json is not a list of OpenHowNet's senses"):
        hownet.read_senses(tmp_path / "senses.json")


def test_the_published_files(public: Callable[[str], Path]) -> None:
    folder = public("hownet")
    found = hownet.read_translated(folder)
    assert len(found.names) == 1400
    assert found.names == sorted(found.names)
    assert len(found.words) == 15989
    assert [found.names[index] for index in found.of("dog")] == [
        "domesticated|家养",
        "livestock|牲畜",
    ]
    coverage = found.coverage((folder / "corpus.en").read_text().split())
    counts = {"types": 31389, "annotated_types": 7572, "tokens": 335326}
    assert coverage == {**counts, "annotated_tokens": 204213}
