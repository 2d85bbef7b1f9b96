"""CoGnition: cutting CG-test's Chinese, groups of five, compound types."""

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from compgen.data import cognition
from compgen.text import read_lines

FREQUENCIES = Counter({"他": 5, "喜欢": 4, "喜": 1, "欢": 1, "大家": 3, "大": 2, "家": 2, "。": 9})


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("他喜欢大家。", "他 喜欢 大家 。"),
        (" 他喜 欢大\u3000家。 ", "他 喜欢 大家 。"),  # its spaces do not count
        ("他见他。", "他 见 他 。"),  # an unknown character stands alone
        ("欢喜", "欢 喜"),
        ("", ""),
    ],
)
def test_cut(sentence: str, expected: str) -> None:
    assert cognition.Cutter(FREQUENCIES)(sentence) == expected


def test_cut_takes_the_most_probable_division() -> None:
    # P(ab) P(c) = 1/10 * 8/10 > P(a) P(bc) = 1/10 * 1/10, but P(abc) is higher with one word
    assert cognition.Cutter({"ab": 1, "c": 8, "a": 1, "bc": 1})("abc") == "ab c"
    assert cognition.Cutter({"ab": 1, "c": 1, "a": 1, "bc": 8})("abc") == "a bc"
    assert cognition.Cutter({"abc": 1, "ab": 1, "c": 1})("abc") == "abc"


def test_groups() -> None:
    chosen = cognition.choose_groups(100, seed=1)
    assert len(chosen) == 20
    groups = [chosen[i : i + 5] for i in range(0, 20, 5)]
    assert all(group == list(range(group[0], group[0] + 5)) for group in groups)
    assert all(group[0] % 5 == 0 for group in groups)
    assert chosen != cognition.choose_groups(100, seed=2)
    with pytest.raises(ValueError, match="101 lines"):
        cognition.choose_groups(101)


def test_pairs_must_be_aligned(tmp_path: Path) -> None:
    files = {f"data/valid.{side}": tmp_path / f"valid.{side}" for side in ("en", "zh")}
    files["data/valid.en"].write_text("a  dog \nthe dog\n")
    files["data/valid.zh"].write_text("狗\n狗\n")
    assert cognition.read_pairs(files, "valid") == (["a dog", "the dog"], ["狗", "狗"])
    files["data/valid.zh"].write_text("狗\n")
    with pytest.raises(ValueError, match=r"valid\.zh: it has 1 lines, for 2 sentences"):
        cognition.read_pairs(files, "valid")


@pytest.fixture(scope="module")
def files(public: Callable[[str], Path]) -> dict[str, Path]:
    return {name: public("cognition") / name for name in cognition.OFFICIAL}


def test_published_files(files: dict[str, Path]) -> None:
    for name, size in {"valid": 10_000, "test": 10_000, "cg-test/cg-test": 10_800}.items():
        assert len(cognition.read_pairs(files, name)[0]) == size
    source = cognition.read_pairs(files, "cg-test/cg-test")[0]
    types = cognition.compound_types(files, source)
    assert types == 3600 * ["NP"] + 3600 * ["VP"] + 3600 * ["PP"]
    with pytest.raises(ValueError, match=r"is not NP\.en, VP\.en and PP\.en in a row"):
        cognition.compound_types(files, [*source[1:], source[0]])
    compounds = read_lines(files["data/cg-test/cg-test.compound"])
    chosen = [compounds[i] for i in cognition.choose_groups(len(compounds))]
    assert len(chosen) == 2160
    assert set(Counter(chosen).values()) == {5}


def spans(divided: str) -> set[tuple[int, int]]:
    ends = [0]
    for word in divided.split():
        ends.append(ends[-1] + len(word))
    return set(itertools.pairwise(ends))


def test_cut_agrees_with_the_published_division(files: dict[str, Path]) -> None:
    valid, test = (cognition.read_pairs(files, name)[1] for name in ("valid", "test"))
    cut = cognition.Cutter(Counter(word for line in valid + test[:9000] for word in line.split()))
    same = found = expected = 0
    for line in test[9000:]:
        ours, theirs = spans(cut(line)), spans(line)
        same, found, expected = same + len(ours & theirs), found + len(ours), expected + len(theirs)
    assert 200 * same / (found + expected) == pytest.approx(96.5, abs=0.1)
