"""SCAN's grammar, splits and augmentation, checked against the publisher's files."""

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from compgen.data import scan
from compgen.data.preparation import hold_out

SIZES = {
    "addjump": (14670, 7706),
    "addturnleft": (21890, 1208),
    "right": (15225, 4476),
    "opposite_right": (15225, 4476),
    "around_right": (15225, 4476),
    "jump_around_right": (18528, 1173),
    "length": (16990, 3920),
}


@pytest.fixture(scope="module")
def official(public: Callable[[str], Path]) -> Path:
    return public("scan")


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("jump", "I_JUMP"),
        ("turn left", "I_TURN_LEFT"),
        ("walk right", "I_TURN_RIGHT I_WALK"),
        ("turn opposite right", "I_TURN_RIGHT I_TURN_RIGHT"),
        ("look opposite left twice", "I_TURN_LEFT I_TURN_LEFT I_LOOK " * 2),
        ("turn around left", "I_TURN_LEFT " * 4),
        ("jump around right", "I_TURN_RIGHT I_JUMP " * 4),
        ("run after jump twice", "I_JUMP I_JUMP I_RUN"),
        ("walk2 thrice and turn right", "I_WALK2 I_WALK2 I_WALK2 I_TURN_RIGHT"),
    ],
)
def test_interpret(command: str, actions: str) -> None:
    assert scan.interpret(command) == actions.strip()


@pytest.mark.parametrize(
    "command",
    [
        "",
        "turn",
        "twice",
        "left",
        "walk up",
        "walk twice thrice",
        "walk  left",
        "walk around left right",
        "walk and",
        "walk and run and look",
        "walk and run after look",
    ],
)
def test_interpret_refuses_what_the_grammar_does_not_derive(command: str) -> None:
    with pytest.raises(ValueError, match="Not a SCAN command"):
        scan.interpret(command)


def test_generate() -> None:
    pairs = scan.generate()
    assert len(pairs) == len({pair.command for pair in pairs}) == 20910
    assert len(scan.generate(("walk",))) == 39 + 2 * 39**2


def test_grammar_is_the_publishers(official: Path) -> None:
    simple = scan.split("simple", official)
    assert Counter(simple.train + simple.test) == Counter(scan.generate())


@pytest.mark.parametrize("name", scan.RULES)
def test_rule_sizes(name: str) -> None:
    assert tuple(map(len, scan.split(name))) == SIZES[name]


@pytest.mark.parametrize("name", scan.RULES)
def test_rules_give_the_publishers_splits(name: str, official: Path) -> None:
    published = scan.split(name, official, published=True)
    for pairs, lines in zip(scan.split(name), published, strict=True):
        assert Counter(pairs) == Counter(lines)


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16, 32])
def test_few_shot_splits(n: int, official: Path) -> None:
    train, test = scan.split(f"jump_num{n}", official)
    assert len(test) == 7706 - n
    extra = {pair for pair in train if "jump" in pair.command.split()} - {("jump", "I_JUMP")}
    assert len(extra) == n
    assert extra | set(test) == set(scan.split("addjump").test)


def test_files_are_found_through_the_environment(
    official: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPGEN_DATA", str(official.parent))
    assert scan.split("simple") == scan.split("simple", official)


def test_altered_files_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "simple_split"
    folder.mkdir()
    for part in ("train", "test"):
        (folder / f"tasks_{part}_simple.txt").write_text("IN: jump OUT: I_WALK\n")
    with pytest.raises(ValueError, match="not the official ones"):
        scan.split("simple", tmp_path)


def test_read_official(tmp_path: Path) -> None:
    path = tmp_path / "tasks.txt"
    path.write_text("IN: jump left OUT: I_TURN_LEFT I_JUMP\nIN: run OUT: I_RUN\n")
    assert scan.read_official(path) == [("jump left", "I_TURN_LEFT I_JUMP"), ("run", "I_RUN")]
    path.write_text("IN: run OUT: I_RUN\nrun I_RUN\n")
    with pytest.raises(ValueError, match="line 2 is not of the form"):
        scan.read_official(path)


def test_double_augmentation() -> None:
    pairs = scan.augment(2)
    assert len(pairs) == 97906
    copies = Counter(pairs)
    for verb in ("walk", "walk1", "walk2", "look1", "run2", "jump"):
        assert copies[scan.Pair(verb, f"I_{verb.upper()}")] == 1001
    assert copies[scan.Pair("jump1", "I_JUMP1")] == 1000
    assert copies[scan.Pair("walk2 left and run1", "I_TURN_LEFT I_WALK2 I_RUN1")] == 1
    assert not any("jump" in pair.command and " " in pair.command for pair in copies)
    plain = scan.split("addjump")
    assert set(plain.train) < set(copies)
    assert not set(plain.test) & set(copies)


def test_augmentation_sizes() -> None:
    clauses = 3 * (6 * 7 + 6)
    assert len(scan.augment(1, atomic_copies=5)) == clauses + 2 * clauses**2 + 1 + 8 * 5
    assert len(scan.augment(1, atomic_copies=0)) == clauses + 2 * clauses**2 + 1


@pytest.mark.parametrize(("name", "size"), [("addjump", 1541), ("around_right", 895)])
def test_hold_out_has_the_papers_sizes(name: str, size: int) -> None:
    test = scan.split(name).test
    chosen, others = hold_out(test)
    assert len(chosen) == size
    assert sorted(chosen + others) == sorted(test)
    assert [pair for pair in test if pair in set(chosen)] == chosen
    assert hold_out(test, seed=2)[0] != chosen


def test_hold_out_of_the_last() -> None:
    train = scan.split("addjump").train
    chosen, others = hold_out(train, seed=None)
    assert others + chosen == train and len(chosen) == len(train) // 5


@pytest.mark.parametrize("size", [-1, 0, 2, 3])
def test_hold_out_leaves_no_side_empty(size: int) -> None:
    pairs = [scan.Pair("run", "I_RUN"), scan.Pair("walk", "I_WALK")]
    with pytest.raises(ValueError, match="must have 1 to 1 items"):
        hold_out(pairs, size)


def test_bytes_do_not_change() -> None:
    train, test = scan.split("jump_around_right")
    digest = hashlib.sha256()
    for pairs in (test, train, hold_out(test, 100, seed=3)[0], scan.split("addjump").train):
        for side in zip(*pairs, strict=True):
            digest.update("".join(f"{line}\n" for line in side).encode())
    assert digest.hexdigest() == "455897a6bfd06cedd4e01ae8a88c3e877ba8bc360b8a88240b89319d6a6bb41e"
