"""Which words can stand for each other."""

import random

import pytest

from compgen.data import scan
from compgen_fairseq.clustering import substitution
from compgen_fairseq.clustering.substitution import change, substitution_classes


@pytest.mark.parametrize(
    "one, other, expected",
    [
        ([1, 7, 2, 7], [1, 8, 2, 8], ((7, 8),)),
        ([1, 7, 2, 7], [1, 8, 2, 7], ((7, 8),)),
        ([1, 2], [1, 2], ()),
        ([1, 2], [2, 1], None),
        ([1, 1], [2, 3], None),
        ([1, 1], [1, 1, 1], None),
        ([], [], ()),
    ],
)
def test_change(one, other, expected):
    assert change(one, other) == expected


def classes(*examples: str, seed: int | None = None, target: bool = False) -> set[str]:
    """Of examples like "walk twice = W W"; classes of one word are left out."""
    if seed is not None:
        examples = tuple(random.Random(seed).sample(examples, len(examples)))
    vocabularies: tuple[dict[str, int], dict[str, int]] = ({}, {})
    pairs = []
    for example in sorted(examples):
        for vocabulary, side in zip(vocabularies, example.split("="), strict=True):
            for word in side.split():
                vocabulary.setdefault(word, len(vocabulary))
    for example in examples:
        command, actions = (side.split() for side in example.split("="))
        pairs.append(([vocabularies[0][w] for w in command], [vocabularies[1][a] for a in actions]))
    both = substitution_classes(pairs, len(vocabularies[0]) + 1, len(vocabularies[1]))
    assert both[0][-1] == len(vocabularies[0])  # a word that does not occur
    members: dict[int, list[str]] = {}
    for word, index in vocabularies[target].items():
        members.setdefault(both[target][index], []).append(word)
    return {" ".join(sorted(words)) for words in members.values() if len(words) > 1}


VERBS = ("walk = W", "run = R", "walk twice = W W", "run twice = R R")


def test_words_that_exchange_one_translation_for_another_are_joined():
    assert classes(*VERBS) == {"run walk"}
    assert classes(*VERBS, "jump = J") == {"jump run walk"}
    assert classes(*VERBS, "hop = W") == {"hop run walk"}  # a synonym


def test_one_frame_that_contradicts_keeps_words_apart():
    assert classes(*VERBS, "turn = T", "turn twice = T") == {"run walk"}
    assert classes("walk and run = W R", "walk after run = R W") == set()
    assert classes("a walk = A W", "b walk = W W", "a run = A R", "b run = R R") == {"run walk"}


def test_the_exchange_is_the_same_everywhere():
    """Between "left" and "twice" L becomes W or R."""
    moves = ("walk left = L W", "run left = L R")
    assert classes(*VERBS, *moves) == {"run walk"}
    assert classes(*VERBS, *moves, "walk right = r W", "run right = r R") == {
        "run walk",
        "left right",
    }


def test_classes_are_not_joined_against_a_failed_test():
    """Of a and b, b and c, the more frequent pair is joined; a and c fail."""
    pairs = ["x a = X A", "x b = X B", "y a = Y A", "y b = Y B", "b z = B Z", "c z = C Z"]
    assert classes(*pairs) == {"a b c", "x y"}
    assert classes(*pairs, "q a q = A", "q c q = C C") == {"a b", "x y"}


def test_of_several_translations_one_must_do():
    assert classes("walk = W", "walk = W W", "run = R") == {"run walk"}
    assert classes("walk = W W", "run = R") == set()


def test_target_words_are_joined_by_what_exchanges_them():
    """Neither by source words that fail the test, nor by synonyms."""
    assert classes(*VERBS, "jump = J", "hop = W", target=True) == {"J R W"}
    assert (
        classes("walk = W", "turn = T", "walk twice = W W", "turn twice = T", target=True) == set()
    )
    assert classes("walk = W", "stroll = W", target=True) == set()
    assert classes("walk = W", "walk = A", "run = R", "run = B", target=True) == set()  # or A B


def test_what_two_classes_exchange_is_neithers():
    """After 0 that is 1 and 2, after 3 it is 4 and 5."""
    pairs = [([0, 1], [0, 2]), ([0, 2], [0, 3]), ([3, 4], [1, 2]), ([3, 5], [1, 3])]
    assert substitution_classes(pairs[:2], 6, 4)[2] == [-1, -1, 1, 1]
    assert substitution_classes(pairs, 6, 4) == ([0, 1, 1, 3, 4, 4], [0, 1, 2, 2], [-1] * 4)


def test_neither_order_nor_repetition_changes_anything():
    examples = (*VERBS, "jump = J", "turn = T", "turn twice = T", "jump = J")
    assert len({frozenset(classes(*examples, seed=seed)) for seed in range(10)}) == 1


@pytest.mark.parametrize("split", ["addjump", "around_right"])
def test_scans_own_categories_are_found(split):
    """Also of the verb that training shows by itself alone, and of the directions."""
    train = sorted(set(scan.RULES[split]().train), key=lambda pair: pair.command)
    examples = [f"{pair.command} = {pair.actions}" for pair in train if len(pair.command) < 25]
    assert classes(*examples) == {"jump look run walk", "left right"}
    turns = "I_TURN_LEFT I_TURN_RIGHT"
    assert classes(*examples, target=True) == {"I_JUMP I_LOOK I_RUN I_WALK", turns}


def test_what_would_take_too_long_is_refused(monkeypatch):
    words = range(9)  # each by itself, so that all of them have a common frame
    for name, most in (("MOST_PAIRS", 35), ("MOST_FRAMES", 0)):
        monkeypatch.setattr(substitution, name, most)
        with pytest.raises(ValueError, match=f"{most} .* it is for small data"):
            substitution_classes((([word], [word]) for word in words), 9, 9)
        monkeypatch.setattr(substitution, name, most + 1)
        substitution_classes((([word], [word]) for word in words), 9, 9)


def test_camps_that_fail_the_test_are_kept_apart_at_once():
    """300 words, of two camps: 22,350 of their 44,850 pairs fail."""
    pairs = [([i], [i]) for i in range(300)] + [([i, 300], [i, 300 + i % 2]) for i in range(300)]
    of, *_ = substitution_classes(pairs, 301, 302)
    assert of == [i % 2 for i in range(300)] + [300]
