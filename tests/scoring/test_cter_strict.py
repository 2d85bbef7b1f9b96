"""The strict rules: what the context supplies does not count, what a translator may say does."""

import pytest

from compgen.scoring import cter
from compgen.scoring.cter_strict import StrictRules
from compgen.text import read_lines

LEXICON = {
    "the": (),
    "every": ("每", "所有"),
    "another": ("另", "又", "再", "还", "别"),
    "large": ("大",),
    "quiet": ("静",),
    "dog": ("狗", "犬"),
    "car": ("车",),
    "child": ("孩",),
    "peanut": ("花生",),
    "liked": ("喜欢", ""),
    "from": ("来", "从"),
    "took": ("带", "花"),
    "met": ("遇到", "见"),
    "behind": ("后", "后面"),
    "inside": ("里", "进"),
    "except": ("除了", "除"),
    "about": (),
    "mod0": ("他喜欢的",),
    "mod2": ("地上", "地板上"),
}


def faults(compound, hypothesis, source=None):
    line = cter.Line(source or compound, compound, hypothesis, cter.parse(compound))
    published = cter.Rules(LEXICON).judge(line)
    return published, StrictRules(LEXICON).judge(line)


@pytest.mark.parametrize(
    ("compound", "hypothesis", "fault"),
    [
        ("the large dog", "大家都看着狗。", "atom:ADJ:large"),
        ("the large dog", "大房子里有一只小小的狗。", "order:ADJ-N"),
        ("another dog", "他特别爱狗。", "atom:DET:another"),
        ("another dog", "他还没有吃。狗就走了。", "atom:DET:another"),
        ("another dog", "店里又来了一只狗。", "atom:DET:another"),
        ("every dog", "每个人都在店里看狗。", "atom:DET:every"),
        ("every dog", "每只叫她的狗。", "order:DET-N"),
        ("the dog on the floor", "他在地板上写关于狗的事。", "order:MOD-N"),
        ("the large dog", "很大很懒的狗。", "order:ADJ-N"),
        ("the dog", "他吃热狗。", "atom:N:dog"),
        ("every child", "每个小女孩。", "atom:N:child"),
        ("behind the dog", "然后狗叫了。", "order:P-N"),
        ("behind the dog", "他在狗的大房子后面。", "order:P-N"),
        ("inside the car", "那里有一辆车。", "order:P-N"),
        ("except the dog", "狗除了。", "order:P-N"),
        ("took every peanut", "他吃了每颗花生。", "atom:V:took"),
        ("met the dog", "他遇到了她。狗很高兴。", "order:V-N"),
        ("met the dog he liked", "他遇到了狗他喜欢的。", "order:MOD-N"),
        ("liked the dog he liked", "她看他喜欢的狗。", "atom:V:liked"),
        ("liked the dog", "她看狗。", "atom:V:liked"),
    ],
)
def test_errors_beyond_the_published_rules(compound, hypothesis, fault):
    assert faults(compound, hypothesis) == ((), (fault,))


@pytest.mark.parametrize(
    ("compound", "hypothesis"),
    [
        ("every large dog he liked", "每只他喜欢的大狗。"),
        ("every large dog he liked", "他喜欢的每一只大个子的狗。"),
        ("the quiet dog on the floor", "安静的地板上的狗。"),
        ("met the dog on the floor", "他在地板上遇到了狗。"),
        ("met the dog on the floor", "他遇到了狗在地上。"),
        ("met the dog on the floor", "他在地板上。他遇到了狗。"),
        ("behind every large dog", "他在每只大狗的后面。"),
        ("behind the dog", "他在狗的房子后面。"),
        ("except the dog he liked", "除了他喜欢的那只狗。"),
        ("liked the dog he liked", "她喜欢他喜欢的狗。"),
        ("took the dog", "他把狗带回家。"),
        ("about the dog", "狗。"),
        ("another dog", "店里还有一只狗。"),
        ("met another dog", "他又遇到了一只狗。"),
        ("from the dog", "他收到了狗寄来的信。"),
    ],
)
def test_right_translations(compound, hypothesis):
    assert faults(compound, hypothesis) == ((), ())


@pytest.mark.parametrize(
    ("compound", "hypothesis", "fault"),
    [
        ("liked the dog he liked", "她喜爱他非常喜欢的狗。", "atom:MOD:mod0"),
        ("from the dog he liked", "他看了他喜欢的狗的信。", "atom:P:from"),
    ],
)
def test_what_the_lexicon_lacks(compound, hypothesis, fault):
    assert faults(compound, hypothesis) == ((fault,), ())


def test_one_noun_cannot_serve_compound_and_context():
    source = "the car hit the dog in the car ."
    assert faults("the car", "狗被车撞了。", source) == ((), ("atom:N:car",))
    assert faults("the car", "车撞了车里的狗。", source) == ((), ())


def test_the_real_references(public):
    folder = public("cognition")
    test = folder / "data/cg-test/cg-test"
    lexicon = cter.read_lexicon(folder / "eval/lexicon")
    lines = cter.align(*(read_lines(test.with_suffix(end)) for end in (".en", ".compound", ".zh")))
    strict = StrictRules(lexicon)
    assert sum(bool(strict.judge(line)) for line in lines) == 336


def test_a_part_of_the_nouns_own_word_is_no_adjective():
    rules = StrictRules({"the": (), "large": ("大",), "building": ("楼", "大楼")})
    compound = "the large building"
    lines = [
        cter.Line(compound, compound, text, cter.parse(compound))
        for text in ("有大楼。", "有大大楼。")
    ]
    assert list(map(rules.judge, lines)) == [("order:ADJ-N",), ()]


def test_a_noun_in_subwords_is_in_the_context_too():
    rules = StrictRules({"the": (), "car": ("车",)})
    line = cter.Line(
        "the c@@ ar hit it in the c@@ ar .", "the car", "车里。", cter.parse("the car")
    )
    assert rules.judge(line) == ("atom:N:car",)
