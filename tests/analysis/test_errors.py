"""How lines are put into groups."""

from argparse import Namespace

import pytest

from compgen_fairseq.analysis.errors import Verdicts, bins, by_compound, rates_of


def test_few_lengths_have_a_bin_each_and_many_share():
    assert [bins([3, 5, 9])(length) for length in (3, 5, 9)] == ["3", "5", "9"]
    name = bins(range(1, 49))
    assert [name(length) for length in (1, 4, 5, 48)] == ["1-4", "1-4", "5-8", "45-48"]
    assert len({name(length) for length in range(1, 49)}) == 12


def test_a_compound_is_wrong_in_a_group_if_one_of_its_lines_there_is():
    """Two compounds; the first has lines in both groups."""
    verdicts = Verdicts(
        hits={"A": [False, True, False, False], "B": [False, False, False, True]},
        units=[0, 0, 0, 1],
        keys=["short", "short", "long", "long"],
        order=["short", "long"],
    )
    found = by_compound(verdicts)
    assert found.hits == {"A": [True, False, False], "B": [False, False, True]}
    assert (found.units, found.keys) == ([0, 0, 1], ["short", "long", "long"])
    rates = rates_of(verdicts, Namespace(resamples=50, seed=1))
    assert rates["A"]["short"][:3] == (50.0, None, None) and rates["A"]["short"].units == 1
    assert rates["B"]["long"].percent == 50.0
    assert rates["B"]["long"][1:3] == pytest.approx((0.0, 100.0))
