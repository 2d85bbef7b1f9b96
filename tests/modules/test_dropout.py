"""The dropout of the CPU."""

import pytest
import torch

from compgen_fairseq.modules.dropout import apply_dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_zeroes_a_share_p_and_keeps_the_mean(p):
    torch.manual_seed(1)
    x = torch.ones(1001, 997)
    y = apply_dropout(x, p, training=True)
    assert y.unique().tolist() == [0.0, pytest.approx(1 / (1 - p))]
    deviation = (p * (1 - p) / x.numel()) ** 0.5
    assert abs(float((y == 0).double().mean()) - p) < 5 * deviation
    assert float(y.mean()) == pytest.approx(1.0, abs=0.01)


def test_a_rate_of_nearly_1_drops_nearly_all():
    assert apply_dropout(torch.ones(1000), 1 - 1e-6, training=True).count_nonzero() < 10


def test_neighbours_are_independent():
    torch.manual_seed(2)
    kept = (apply_dropout(torch.ones(400_000), 0.3, training=True) > 0).double() - 0.7
    for lag in (1, 2, 3, 4, 5):
        assert abs(float((kept[:-lag] * kept[lag:]).mean())) < 5 * 0.21 / 400_000**0.5


def test_the_gradient_passes_where_the_value_does():
    x = torch.ones(7, 5, requires_grad=True)
    y = apply_dropout(x, 0.4, training=True)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_the_seed_decides_and_evaluation_changes_nothing():
    x = torch.randn(3, 5)
    draws = []
    for _ in range(2):
        torch.manual_seed(3)
        draws.append(apply_dropout(x, 0.5, training=True))
    assert torch.equal(*draws)
    assert apply_dropout(x, 0.5, training=False) is x
    assert apply_dropout(x, 0.0, training=True) is x
