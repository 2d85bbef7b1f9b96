"""Divergence and agreement, computed by hand."""

import math

import pytest
import torch

from compgen_fairseq.analysis.agreement import compare, divergence, together

HALVES, QUARTER = [0.5, 0.5, 0.0], [0.25, 0.75, 0.0]
FORWARD = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)  # of the quarters from the halves
BACKWARD = 0.25 * math.log(1 / 2) + 0.75 * math.log(3 / 2)


def test_a_weight_of_zero_counts_as_tiny():
    found = divergence(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    assert float(found) == pytest.approx(12 * math.log(10))


def test_rows_heads_layers_and_pairs():
    """Two pairs, one layer, two heads, three positions, of which the second pair has two."""
    first = torch.tensor([[[HALVES, QUARTER, HALVES], [QUARTER, QUARTER, HALVES]]])
    second = torch.tensor([[[QUARTER, QUARTER, QUARTER], [QUARTER, QUARTER, QUARTER]]])
    rows = torch.tensor([[True, True, True], [True, True, False]])
    found = compare(torch.stack([first, first]), torch.stack([second, second]), rows)
    one = (FORWARD + BACKWARD) / 2  # the mean of both directions
    assert len(found) == 2
    torch.testing.assert_close(found.kl[:, 0].tolist(), [[2 * one / 3, one / 3], [one / 2, 0.0]])
    # of the halves the first token is taken, of the quarters the second
    torch.testing.assert_close(found.same_token[:, 0].tolist(), [[1 / 3, 2 / 3], [0.5, 1.0]])
    assert found.same_pattern[:, 0].tolist() == [[0.0, 0.0], [0.0, 1.0]]
    means = found.means()
    assert means["same_token"] == pytest.approx((1 / 3 + 2 / 3 + 0.5 + 1) / 4)
    assert means["same_pattern"] == 0.25
    heads = found.heads()
    assert [(head["layer"], head["head"]) for head in heads] == [(1, 1), (1, 2)]
    assert heads[0]["kl"] == pytest.approx((2 / 3 + 1 / 2) / 2 * one)


def test_batches_are_put_together_pair_by_pair():
    weights = torch.rand(5, 2, 3, 4, 4).softmax(-1), torch.rand(5, 2, 3, 4, 4).softmax(-1)
    rows = torch.rand(5, 4) > 0.3
    rows[:, 0] = True
    whole = compare(*weights, rows)
    parts = [compare(*(w[part] for w in weights), rows[part]) for part in ([0, 1], [2, 3, 4])]
    assert together(parts).means() == pytest.approx(whole.means())
