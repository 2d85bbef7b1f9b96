"""Which words are shown, and their neighbours."""

import numpy as np
import pytest
from fairseq.data import Dictionary

from compgen_fairseq.analysis import vocabulary
from compgen_fairseq.analysis.embeddings import choose, neighbours


@pytest.fixture
def dictionary():
    found = Dictionary()
    for word, count in {"walk": 5, "jump": 1, "run": 5, "look": 7}.items():
        found.add_symbol(word, n=count)
    found.pad_to_multiple_(8)
    found.add_symbol("madeupword", n=2)
    return found


def test_words_are_chosen_by_frequency(dictionary):
    def words(*args):
        return [dictionary[i] for i in choose(dictionary, "source", *args)]

    assert words() == ["look", "walk", "run", "madeupword", "jump"]
    assert words(None, 2) == ["look", "walk"]
    assert words(["jump", "run", "jump"]) == ["run", "jump"]


def test_a_word_that_is_not_there_has_near_ones(dictionary):
    with pytest.raises(ValueError, match=r"near it are 'walk'$"):
        vocabulary.index(dictionary, "walks", "source")
    with pytest.raises(ValueError, match=r"dictionary$"):
        vocabulary.index(dictionary, "xyz", "source")


def test_neighbours_by_hand():
    points = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert neighbours(points, 2).tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    assert neighbours(points, 9).shape == (4, 3)


def test_a_word_is_no_neighbour_of_itself_beside_a_copy():
    assert neighbours(np.zeros((3, 2)), 2).tolist()[1] in ([0, 2], [2, 0])
