"""The short text that says which sentences are right."""

import pytest

from compgen.reporting.verdicts import pack, parts, unpack


@pytest.mark.parametrize(
    ("values", "per"),
    [
        *(([0.0, 1.0, 1.0], 1), ([0.2, 1.0], 5), ([1 / 4, 1 / 6], 12), ([0.0, 0.0], 1)),
        *(([i % (per + 1) / per for i in range(77)], per) for per in (1, 4, 5)),
    ],
)
def test_values_come_back(values, per):
    assert parts(values) == per
    assert unpack(pack(values, per), per) == values
    with pytest.raises(ValueError):
        unpack("eNo=", per)


def test_values_that_are_no_shares_of_a_few_are_not_packed():
    assert parts([2**-0.5]) is None and parts([1 / 61]) is None
