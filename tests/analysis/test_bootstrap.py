"""Intervals of rates over groups."""

import numpy as np
import pytest

from compgen_fairseq.analysis.bootstrap import rate


def test_the_rate_is_that_of_all_lines():
    found = rate([True, False, False, True, True], [0, 0, 0, 1, 2], 200, 1)
    assert (found.percent, found.lines, found.units) == (60.0, 5, 3)
    assert 0 <= found.low <= 60 <= found.high <= 100


def test_one_unit_has_no_interval_and_no_line_no_rate():
    assert rate([True, False], [7, 7], 100, 1)[:3] == (50.0, None, None)
    with pytest.raises(ValueError, match="no lines"):
        rate([], [], 100, 1)


def test_the_interval_is_as_wide_as_the_binomials():
    hits = np.arange(400) % 4 == 0
    found = rate(hits.tolist(), range(400), 4000, 1)
    half = 196 * (0.25 * 0.75 / 400) ** 0.5
    assert found.low == pytest.approx(25 - half, abs=0.6)
    assert found.high == pytest.approx(25 + half, abs=0.6)
    again, other = (rate(hits.tolist(), range(400), 4000, seed) for seed in (1, 2))
    assert again == found != other


def test_lines_that_fall_together_count_as_one_draw():
    """The same rate with five times fewer independent units: the interval is sqrt(5) as wide."""
    hits = np.repeat(np.arange(80) % 4 == 0, 5).tolist()
    alone, grouped = rate(hits, range(400), 4000, 1), rate(hits, np.arange(400) // 5, 4000, 1)
    assert (grouped.high - grouped.low) / (alone.high - alone.low) == pytest.approx(5**0.5, abs=0.2)
