"""The published rules of CTER, corner by corner, and on the real test set."""

import pytest

from compgen.scoring import cter
from compgen.scoring.cter import fingerprint
from compgen.scoring.cter_rates import CTER, groups, rates
from compgen.scoring.cter_rules import OwnRules
from compgen.text import read_lines

ENTRIES = """
the\t/
every\t每/所有
another\t另/又
red\t红
large\t大
dog\t狗/犬
car\t车
liked\t喜欢/
saw\t看到/看
left\t/
near\t附近/近
about\t/
mod0\t他喜欢的
mod1\t店里/商店
mod2\t地上/地板上
""".strip()


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    path = tmp_path_factory.mktemp("cter") / "lexicon"
    path.write_text(ENTRIES + "\n")
    return cter.read_lexicon(path)


def faults(compound, hypothesis, lexicon, **entries):
    line = cter.Line(compound, compound, hypothesis, cter.parse(compound))
    return cter.Rules({**lexicon, **entries}).judge(line)


@pytest.mark.parametrize(
    ("compound", "atoms"),
    [
        ("the dog", {"DET": "the", "N": "dog"}),
        ("liked the dog he liked", {"V": "liked", "DET": "the", "N": "dog", "MOD": "mod0"}),
        ("on the dog on the floor", {"P": "on", "DET": "the", "N": "dog", "MOD": "mod2"}),
        ("the large red dog", {"DET": "the", "ADJ": "red", "N": "dog"}),
        ("the dog he liked at the store", {"DET": "the", "N": "dog", "MOD": "mod1"}),
        ("the dog near the car", {"DET": "the", "N": "car", "P": "near"}),
    ],
)
def test_a_later_atom_of_a_type_replaces_the_earlier(compound, atoms):
    assert cter.parse(compound) == atoms


@pytest.mark.parametrize("compound", ["the cat", "the dog she liked", "on the floors"])
def test_modifiers_are_replaced_as_strings_and_unknown_words_refused(compound):
    with pytest.raises(
        ValueError, match=f"in the compound '{compound}' is not an atom of CoGnition"
    ):
        cter.parse(compound)


@pytest.mark.parametrize(
    ("compound", "hypothesis", "expected"),
    [
        ("the dog", "我 有 狗 。", ()),
        ("the dog", "我有犬。", ()),
        ("the dog", "我有猫。", ("atom:N:dog",)),
        ("the dog he liked", "他 喜@@ 欢的 狗", ()),  # subwords are joined
        ("the dog he liked", "他\u3000喜\u00a0欢 ▁的 狗", ()),  # so are words, whatever is between
        ("the dog he liked", "他 喜@@欢的 狗", ("atom:MOD:mod0",)),  # "@@" needs its space
        ("the large dog", "大家 都 有 狗", ()),  # any place will do
        ("every red dog", "猫", ("atom:DET:every", "atom:ADJ:red", "atom:N:dog")),
        ("the red dog", "狗 是 红 的", ("order:ADJ-N",)),
        ("every red dog", "狗 每 红", ("order:DET-N", "order:ADJ-N")),
        ("the red dog", "狗 红 狗", ()),  # the adjective's first before the noun's last
        ("the red dog", "红 狗 红", ()),
        ("every dog", "狗 所有", ("order:DET-N",)),
        ("every dog", "狗 所有 犬", ()),  # last over all alternatives
        ("saw every dog", "看到 狗 每", ("order:DET-N",)),
        ("the dog he liked", "狗 他喜欢的", ("order:MOD-N",)),
        ("near the dog at the store", "狗 商店 附近", ("order:MOD-N",)),
        ("saw the dog he liked", "看 狗 他喜欢的", ()),  # a verb frees the modifier
        ("liked the dog he liked", "狗 他喜欢的", ()),  # an empty alternative has positions
        ("left the dog he liked", "狗 他喜欢的", ("order:MOD-N",)),  # "/" alone has none
        ("liked the dog", "爱 狗", ()),
        ("about the dog", "狗", ()),
        ("saw the dog he liked", "狗 他喜欢的", ("atom:V:saw",)),  # no order is looked at then
        ("the dog", "", ("atom:N:dog",)),
    ],
)
def test_verdicts(compound, hypothesis, expected, lexicon):
    assert faults(compound, hypothesis, lexicon) == expected


@pytest.mark.parametrize(
    ("determiner", "noun", "hypothesis", "expected"),
    [
        (("每", ""), ("狗",), "狗每", ("order:DET-N",)),  # 0 is not before 0
        (("每", ""), ("狗",), "有狗每", ()),  # an empty alternative is found at 0 already
        (("每",), ("狗", ""), "狗每", ()),  # and at the end still
        (("",), ("",), "", ("order:DET-N",)),
        (("",), ("",), "猫", ()),
        ((), ("狗",), "狗", ()),
        (("每",), (), "每", ()),
        (("狗",), ("狗",), "狗", ("order:DET-N",)),  # one place for both
    ],
)
def test_empty_alternatives(determiner, noun, hypothesis, expected, lexicon):
    assert faults("every dog", hypothesis, lexicon, every=determiner, dog=noun) == expected


def test_lexicon(tmp_path):
    path = tmp_path / "lexicon"
    path.write_text("dog\t狗/犬\nthe\t/\nliked\t喜欢/\ndog\t小狗\nfrom\t//来\ncar\t\n")
    assert cter.read_lexicon(path) == {
        "dog": ("小狗",),
        "the": (),
        "liked": ("喜欢", ""),
        "from": ("", "", "来"),
        "car": ("",),
    }
    path.write_text("dog\t狗\ncar 车\n")
    with pytest.raises(
        ValueError, match="lexicon, line 2: not an atom, a tab and its translations"
    ):
        cter.read_lexicon(path)
    with pytest.raises(ValueError, match="nowhere: No such file"):
        cter.read_lexicon(tmp_path / "nowhere")
    path.write_text("")
    with pytest.raises(ValueError, match="lexicon: it has no atoms"):
        cter.read_lexicon(path)


@pytest.mark.parametrize(
    ("compounds", "message"),
    [
        (["the dog"] * 9, "compound: 9 lines are not groups of 5"),
        (
            ["the dog"] * 5 + ["the car"] * 4 + ["the dog"],
            "line 10: 'the dog' is not the compound of line 6, 'the car'; groups of 5 lines share",
        ),
        (["the cat"] * 5, "line 1: 'cat' in the compound 'the cat' is not an atom of CoGnition"),
        (["the dog"] * 5 + ["the farm"] * 5, "line 6: 'farm' is not in the lexicon"),
        ([], "compound: it has no compounds"),
    ],
)
def test_compounds_that_cannot_be_scored(compounds, message, lexicon, tmp_path):
    path = tmp_path / "compound"
    path.write_text("".join(f"{compound}\n" for compound in compounds))
    with pytest.raises(ValueError, match=message):
        cter.Rules(lexicon).read_compounds(path)


def test_lines_that_do_not_fit():
    with pytest.raises(ValueError, match="1 sources, 2 compounds, 2 hypotheses"):
        cter.align(["a"], ["the dog"] * 2, ["狗"] * 2)
    good, bad = "see the dog run .", "see the doggy dog run ."
    with pytest.raises(
        ValueError, match="line 2: the compound 'the dog' is not in the source 'see"
    ):
        cter.align([good, bad], ["the dog"] * 2, ["狗"] * 2)
    unknown = ["see <unk> dog run .", "see the do@@ <unk> run ."]
    assert len(cter.align([good, *unknown], ["the dog"] * 3, ["狗"] * 3)) == 3
    moses = {
        "dog's tail": "the dog &apos;s tail",
        "l'homme": "l&apos; homme dort",
        "R&D lab": "an R & D lab",
    }
    assert len(cter.align(list(moses.values()), list(moses), [""] * 3, lambda _: {})) == 3
    with pytest.raises(ValueError, match=r"the compound 'C\+\+ code' is not in the source"):
        cter.align(["the C code runs ."], ["C++ code"], [""], lambda _: {})
    with pytest.raises(ValueError, match="line 1: the compound is empty"):
        cter.align(["a"], [""], [""], lambda _: {})


def test_context_is_what_the_compound_leaves():
    (line,) = cter.align(["a dog saw the dog run ."], ["the dog"], [""])
    assert (line.compound_length, line.context_length) == (2, 5)


def test_rates_and_groups():
    compounds = ["the dog"] * 5 + ["saw the dog at the store"] * 5 + ["near every red dog"] * 5
    sources = [
        f"{'so ' * (3 * (i % 5) + i // 5)}{compound} ." for i, compound in enumerate(compounds)
    ]
    lines = cter.align(sources, compounds, [""] * 15)
    wrong = [i in (0, 3, 4, 14) for i in range(15)]
    total = rates(wrong)
    assert total == CTER(4, 15, 2, 3)
    assert (total.instance, total.aggregate) == (pytest.approx(400 / 15), pytest.approx(200 / 3))
    table = groups(lines, wrong)
    assert list(table["type"]) == ["NP", "VP", "PP"]
    assert table["type"]["NP"] == CTER(3, 5, 1, 1)
    assert {k: v.wrong for k, v in table["compound_length"].items()} == {"2": 3, "4": 1, "6": 0}
    assert {k: (v.n, v.wrong) for k, v in table["context_length"].items()} == {
        "0-4": (4, 1),
        "5-7": (3, 0),
        "8-10": (3, 1),
        "11-13": (3, 1),
        "14+": (2, 1),
    }
    assert table["context_length"]["11-13"].compounds == 3
    assert {k: v.n for k, v in table["modifier"].items()} == {"with": 5, "without": 10}
    assert rates([]).instance == rates([]).aggregate == 0.0


def test_the_real_references(public):
    folder = public("cognition")
    test = folder / "data/cg-test"
    lexicon = cter.read_lexicon(folder / "eval/lexicon")
    compounds = cter.Rules(lexicon).read_compounds(test / "cg-test.compound")
    lines = cter.align(read_lines(test / "cg-test.en"), compounds, read_lines(test / "cg-test.zh"))
    failed = list(map(cter.Rules(lexicon).judge, lines))
    table = groups(lines, list(map(bool, failed)))

    assert rates(list(map(bool, failed))) == CTER(283, 10800, 212, 2160)
    assert {k: (v.n, v.wrong) for k, v in table["type"].items()} == {
        "NP": (3600, 32),
        "VP": (3600, 49),
        "PP": (3600, 202),
    }
    assert failed[976] == ("atom:N:doctor",) and failed[1978] == ("order:MOD-N",)
    for kind in cter.TYPES:
        names = read_lines(test / kind / f"{kind}.compound")
        assert len(names) == 3600 and {
            cter.Line("", name, "", cter.parse(name)).type for name in names
        } == {kind}


def test_lexicons_that_judge_otherwise_have_other_fingerprints():
    lines = ["N\tdog\tHund", "ADJ\told\talt"]
    others = [["N\tdog\tKöter", lines[1]], [lines[0], "DET\told\talt"], [*lines, "order\tADJ\tN"]]
    others += [["match\tcharacters", *lines], lines[:1]]
    found = [fingerprint(OwnRules(one).lexicon) for one in (lines, *others)]
    assert len(set(found)) == 6 and fingerprint(OwnRules(lines[::-1]).lexicon) == found[0]


def test_context_length_counts_words_not_subwords():
    (line,) = cter.align(["a ki@@ tten saw the dog run ."], ["the dog"], [""])
    assert line.context_length == 5


def test_the_longest_atom_counts():
    rules = OwnRules(["N\tmill\tMühle", "N\tmill worker\tMüller", "ADJ\told\talt"])
    assert rules.bad == [] and rules.parse("old mill worker") == {"ADJ": "old", "N": "mill worker"}
