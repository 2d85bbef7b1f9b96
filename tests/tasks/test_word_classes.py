"""The classes that the task hands to a model."""

import pytest
import torch
from fairseq.data import Dictionary

from compgen.data import scan
from compgen_fairseq.tasks.word_classes import FINDERS, SIDES

PAIRS = [
    *("walk = W", "run = R", "jump = J", "turn left = L", "turn right = r"),
    *("walk left = L W", "run left = L R", "walk right = r W", "run right = r R"),
    *("walk twice = W W", "run twice = R R", "run twice = R R"),
]


def corpus(pairs=PAIRS):
    """The pairs as a data set, and both dictionaries."""
    dictionaries = (Dictionary(), Dictionary())
    dataset = []
    for pair in pairs:
        sides = zip(dictionaries, pair.split("="), strict=True)
        encoded = (d.encode_line(text, line_tokenizer=str.split).long() for d, text in sides)
        dataset.append(dict(zip(SIDES, encoded, strict=True)))
    return dataset, dictionaries


def named(classes: torch.Tensor, dictionary: Dictionary) -> set[str]:
    """Classes of more than one word."""
    members: dict[int, list[str]] = {}
    for index in range(dictionary.nspecial, len(dictionary)):
        members.setdefault(int(classes[index]), []).append(dictionary[index])
    return {" ".join(sorted(words)) for words in members.values() if len(words) > 1}


@pytest.mark.parametrize("codes", [None, (5, 3), (9, 9)])
def test_exchangeable_words_have_one_class(codes, caplog):
    """5 of the source: verbs, directions, turn, twice and the end; 3 of the target."""
    dataset, dictionaries = corpus()
    with caplog.at_level("INFO"):
        *coded, source, target, owners = FINDERS["substitution"](dataset, dictionaries, codes)
    assert "substitution test, source: 5 classes, {walk, run, jump} {left, right}" in caplog.text
    for both in (coded, (source, target)):
        for classes, dictionary in zip(both, dictionaries, strict=bool(both)):
            assert classes.shape == (len(dictionary),) and classes.dtype == torch.long
            ends = classes[dictionary.eos()]
            assert (classes[dictionary.nspecial :] != ends).all()
            expected = {"jump run walk", "left right"} if classes is both[0] else {"J R W", "L r"}
            assert named(classes, dictionary) == expected
    expected = {"J": "jump", "R": "run", "W": "walk", "L": "left", "r": "right"}
    for word, owner in enumerate(owners.tolist()):
        exchanged = expected.get(dictionaries[1][word])
        assert owner == (source[dictionaries[0].index(exchanged)] if exchanged else -1)
    if codes is not None:
        assert [c.unique().tolist() for c in coded] == [list(range(5)), list(range(3))]


def test_brown_classes_are_as_many_as_asked_for():
    dataset, dictionaries = corpus()
    for number in (2, 4):
        source, target = FINDERS["brown"](dataset, dictionaries, (number, 3))
        assert source.unique().tolist() == list(range(number))
        assert target.unique().tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["brown", "substitution"])
def test_copies_of_a_pair_count_once(kind):
    """Augmentation repeats each bare verb 1,000 times."""
    found = [FINDERS[kind](*corpus(pairs), (4, 2)) for pairs in (PAIRS, PAIRS + 50 * ["jump = J"])]
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_classes_that_are_more_than_the_codes_are_merged(caplog):
    """The words "around" and "opposite" fail the test, but stand between the same classes."""
    train = {f"{pair.command} = {pair.actions}" for pair in scan.RULES["around_right"]().train}
    dataset, dictionaries = corpus(sorted(pair for pair in train if pair.index("=") < 29))
    with caplog.at_level("INFO"):
        source, target, *_ = FINDERS["substitution"](dataset, dictionaries, (6, 4))
    pairs = {"left right", "around opposite", "thrice twice", "after and"}
    assert named(source, dictionaries[0]) == {"jump look run walk", *pairs}
    turns = "I_TURN_LEFT I_TURN_RIGHT"
    assert named(target, dictionaries[1]) == {"I_JUMP I_LOOK I_RUN I_WALK", turns}
    assert "source: 10 classes, merged into 6, {jump, look, run, walk} {" in caplog.text


def test_more_codes_than_types_are_refused():
    dataset, dictionaries = corpus()
    reason = "--code-classes brown, source side: 99 classes can't be made of the 8 types that occur"
    with pytest.raises(ValueError, match=reason):
        FINDERS["brown"](dataset, dictionaries, (99, 3))
