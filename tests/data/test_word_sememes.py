"""Words and their sememes in subwords."""

import numpy as np
from fairseq.data import Dictionary
from random_batches import dictionary_of

from compgen.data.sememes import Annotations
from compgen_fairseq.data.word_sememes import WordSememes

ANNOTATIONS = Annotations(
    ["a|甲", "b|乙", "c|丙"], {"fire": (2,), "firewater": (0,), "water": (0, 1)}
)


def words(text: str) -> tuple[list[bool], list[int]]:
    dictionary = dictionary_of("the", "Water", "fi@@", "re", "water", "wa@@", "ter", "Fi@@")
    tokens = np.array([dictionary.index(symbol) for symbol in text.split()])
    found = WordSememes(ANNOTATIONS, dictionary)(tokens)
    return found.starts.tolist(), found.rows.tolist()


def test_every_subword_inherits_its_words_annotation() -> None:
    starts, rows = words("the fi@@ re wa@@ ter Water")
    assert starts == [True, True, False, True, False, True]
    assert rows == [-1, 0, 0, 2, 2, 2]
    assert words("Fi@@ re") == ([True, False], [0, 0])


def test_a_word_of_several_subwords_is_not_its_last_one() -> None:
    assert words("fi@@ wa@@ ter the") == ([True, False, False, True], [-1, -1, -1, -1])
    assert words("fi@@ re wa@@") == ([True, False, True], [0, 0, -1])


def test_the_table_has_the_sememes_of_each_word() -> None:
    table = WordSememes(ANNOTATIONS, Dictionary()).table
    assert table.tolist() == [[2, -1], [0, -1], [0, 1]]


def test_a_table_of_no_word_can_be_looked_up() -> None:
    assert WordSememes(Annotations(["a|甲"], {}), Dictionary()).table.tolist() == [[-1]]
