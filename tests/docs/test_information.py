"""docs/notes/information.py on cases computed by hand."""

import math

import information
import pytest


@pytest.fixture
def data(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "train.src").write_text("walk left\nrun1 right\nrun\n")
    (tmp_path / "raw" / "train.tgt").write_text("L W\nR R\nW\n")
    return tmp_path


def test_source_codes(data):
    # one-word sentences do not count; {walk run} is told by what follows, left and right are not
    assert information.information(data, "walk run | left right") == pytest.approx((math.log(2), 0))
    marginal = -(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25))
    found = information.information(data, "walk run | left | right")
    assert found == pytest.approx((marginal, 0.5 * math.log(2)))


def test_target_codes(data):
    # L W </s>, R R </s>, W </s>: L or R is open once, W or R then is told by it
    of_code, given = information.information(data, "walk run | left right", "L | R | W | </s>")
    eighths = [1, 2, 2, 3]
    assert of_code == pytest.approx(-sum(n / 8 * math.log(n / 8) for n in eighths))
    assert given == pytest.approx(2 / 8 * math.log(2))
