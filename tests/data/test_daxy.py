"""The validation set of the daxy data: sources of its own, never the new word."""

import pytest

from compgen.data.daxy import hold_out_sources
from compgen.data.scan import Pair

PAIRS = [
    *(Pair(f"he is a{i} .", f"il est b{i} .") for i in range(20)),
    *(Pair("you re late .", f"phrase {i}") for i in range(6)),
    *(2 * [Pair("i am daxy .", "je suis daxiste .")]),
]


@pytest.mark.parametrize("size", [1, 5, 13])
def test_every_pair_is_on_one_side_and_so_is_every_source(size):
    valid, train = hold_out_sources(PAIRS, size)
    assert len(valid) == size
    assert sorted(valid + train) == sorted(PAIRS)
    assert not {pair.command for pair in valid} & {pair.command for pair in train}
    assert valid == [pair for pair in PAIRS if pair in valid]
    assert train[-2:] == PAIRS[-2:]


def test_the_seed_decides():
    assert hold_out_sources(PAIRS, 5, seed=1) != hold_out_sources(PAIRS, 5, seed=2)


@pytest.mark.parametrize("size", [-1, 0, 26, 100])
def test_an_impossible_size(size):
    with pytest.raises(ValueError, match=f"{size} of the training pairs can't be held out"):
        hold_out_sources(PAIRS, size)
