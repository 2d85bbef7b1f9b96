"""Relative attention against a loop over every pair of positions."""

import math

import pytest
import torch

from compgen_fairseq.modules.relative_attention import RelativePositions, attend

HEADS, LENGTH, DIM = 3, 5, 4


@pytest.fixture
def parts():
    torch.manual_seed(0)
    return [torch.randn(2, HEADS, LENGTH, DIM) for _ in range(3)]


def causal(length: int) -> torch.Tensor:
    return torch.full((length, length), torch.finfo(torch.float32).min).triu(1)


def by_pairs(query, key, value, positions: RelativePositions) -> torch.Tensor:
    """Shaw et al., equations 3 and 4, with causal attention."""
    limit = positions.max_distance
    out = torch.zeros_like(query)
    for b in range(query.size(0)):
        for h in range(query.size(1)):
            for i in range(query.size(2)):
                scores = []
                for j in range(i + 1):
                    a_key = positions.keys[max(-limit, min(limit, j - i)) + limit]
                    scores.append(query[b, h, i] @ (key[b, h, j] + a_key) / math.sqrt(DIM))
                for j, weight in enumerate(torch.stack(scores).softmax(0)):
                    a_value = positions.values[max(-limit, min(limit, j - i)) + limit]
                    out[b, h, i] += weight * (value[b, h, j] + a_value)
    return out


def test_relative_attention_equals_the_loop_over_pairs(parts):
    positions = RelativePositions(DIM, max_distance=2)
    mask = causal(LENGTH)
    out, _ = attend(*parts, mask, positions(LENGTH, LENGTH))
    torch.testing.assert_close(out, by_pairs(*parts, positions))


def test_distances_are_clipped():
    positions = RelativePositions(1, max_distance=2)
    positions.keys.data = torch.arange(-2.0, 3.0)[:, None]
    positions.values.data = 10 * torch.arange(-2.0, 3.0)[:, None]
    keys, values = positions(4, 4)
    expected = [[0, 1, 2, 2], [-1, 0, 1, 2], [-2, -1, 0, 1], [-2, -2, -1, 0]]
    assert keys.squeeze(-1).tolist() == expected
    assert torch.equal(values, 10 * keys)
    assert torch.equal(positions(1, 4)[0], keys[-1:])  # a single query is the last position


def test_what_decoding_looked_up_serves_training():
    positions = RelativePositions(1)
    with torch.inference_mode():
        positions(7, 7)
    positions(7, 7)[0].sum().backward()
    assert positions.keys.grad.sum() == 49


def test_lookups_are_dropped_out_in_training_only():
    positions = RelativePositions(8, dropout=0.5)
    assert (positions(6, 6)[0] == 0).any()
    assert not (positions.eval()(6, 6)[0] == 0).any()


def test_asking_for_weights_changes_nothing(parts):
    mask = causal(LENGTH)
    out, weights = attend(*parts, mask, need_weights=True)
    torch.testing.assert_close(attend(*parts, mask)[0], out)
    torch.testing.assert_close(weights @ parts[2], out)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, LENGTH))
    assert torch.equal(weights.triu(1), torch.zeros_like(weights))


@pytest.mark.parametrize("need_weights", [False, True])
def test_truth_values_are_no_mask(parts, need_weights):
    with pytest.raises(ValueError, match="numbers, not truth values"):
        attend(*parts, causal(LENGTH) == 0, need_weights=need_weights)
