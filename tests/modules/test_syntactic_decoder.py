"""Equations 4 to 6 by hand, and steps that equal the full pass."""

from math import exp, log, tanh

import pytest
import torch

from compgen_fairseq.modules.masks import padding_mask, same_words
from compgen_fairseq.modules.syntactic_decoder import SyntacticDecoder


def open_mask(h: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(h), 1, h.size(1), dtype=h.dtype)


def test_scaled_scores_are_divided_by_the_root_of_the_width():
    torch.manual_seed(1)
    decoder = SyntacticDecoder(4, scaled=True)
    h, summary = torch.randn(3, 5, 4), torch.randn(3, 4)
    query = decoder.initial(summary).relu()
    expected = (torch.einsum("bd,btd->bt", query, h) / 2).softmax(1)
    assert query.any()
    torch.testing.assert_close(decoder(h, summary, open_mask(h), 1)[:, 0], expected)


def test_three_steps_by_hand():
    """Equations 4 to 6 with one-dimensional states and two source words."""
    decoder = SyntacticDecoder(1)
    weights = {"weight_ih": [0.3, -0.2, 0.9, 0.4], "weight_hh": [-0.5, 0.1, 0.7, 0.2]}
    biases = {"bias_ih": [0.1, 0.6, -0.3, 0.2], "bias_hh": [0.0, 0.5, 0.2, -0.1]}
    for name, values in weights.items():
        getattr(decoder.layers[0], name).data = torch.tensor(values)[:, None]
    for name, values in biases.items():
        getattr(decoder.layers[0], name).data = torch.tensor(values)
    decoder.initial.weight.data = torch.tensor([[2.0]])
    decoder.initial.bias.data = torch.tensor([-0.5])

    def sigmoid(x):
        return 1 / (1 + exp(-x))

    roles, summary = [0.8, -1.5], 0.75
    s, state, cell, expected = max(0.0, 2.0 * summary - 0.5), 0.0, 0.0, []
    for _ in range(3):
        scores = [exp(s * role) for role in roles]
        alpha = [score / sum(scores) for score in scores]
        c = alpha[0] * roles[0] + alpha[1] * roles[1]
        i, f, g, o = (
            weights["weight_ih"][k] * c
            + weights["weight_hh"][k] * state
            + biases["bias_ih"][k]
            + biases["bias_hh"][k]
            for k in range(4)
        )
        cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
        s = state = sigmoid(o) * tanh(cell)
        expected.append(alpha)

    h = torch.tensor(roles)[None, :, None]
    found = decoder(h, torch.tensor([[summary]]), open_mask(h), 3)
    torch.testing.assert_close(found[0], torch.tensor(expected))
    found = decoder(h, torch.tensor([[-summary]]), open_mask(h), 1)
    assert found.tolist() == [[[0.5, 0.5]]]  # ReLU leaves the first query at zero


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 6])
def test_the_gradients_written_out_are_autograds(steps, tied):
    torch.manual_seed(1)
    decoder = SyntacticDecoder(4, scaled=True).double()
    h, summary = (torch.randn(3, *n, 4, dtype=torch.double) for n in ((5,), ()))
    keep = torch.arange(5) < torch.tensor([[5], [2], [4]])
    mask, seen = padding_mask(keep, h.dtype)[:, 0], torch.randn(3, steps, 5, dtype=torch.double)
    words = torch.tensor([[4, 5, 4, 4, 6], [5, 5, 1, 1, 1], [4, 5, 5, 4, 1]])
    same = same_words(words, h.dtype) if tied else None
    found = []
    for written_out in (True, False):
        inputs = [h.clone().requires_grad_(), summary.clone().requires_grad_()]
        if written_out:
            alpha = decoder(*inputs, mask, steps, same)
        else:
            state, said = decoder.begin(*inputs), []
            for _ in range(steps):
                weights, state = decoder.step(inputs[0], mask, state, same)
                said.append(weights)
            alpha = torch.cat(said, dim=1)
        wanted = [*inputs, *decoder.parameters()]
        gradients = torch.autograd.grad((alpha * seen).sum(), wanted, allow_unused=True)
        found.append([alpha, *(0 if g is None else g for g in gradients)])
    torch.testing.assert_close(*found)
    if steps == 6:
        assert all(gradient.abs().max() > 0 for gradient in found[0])


def test_steps_that_nobody_wants_are_not_taken():
    """The attention of the others, and all gradients, are those of all steps."""
    torch.manual_seed(1)
    decoder = SyntacticDecoder(4).double()
    h, summary = (torch.randn(4, *n, 4, dtype=torch.double) for n in ((5,), ()))
    same = same_words(torch.tensor([[4, 5, 4, 6, 4]] * 4), h.dtype)
    lengths = torch.tensor([3, 6, 1, 3])
    wanted = (torch.arange(6) < lengths[:, None]).unsqueeze(-1)
    seen, found = torch.randn(4, 6, 5, dtype=torch.double) * wanted, []
    for given in (None, lengths):
        inputs = [h.clone().requires_grad_(), summary.clone().requires_grad_()]
        alpha = decoder(*inputs, open_mask(h), 6, same, given)
        leaves = [*inputs, *decoder.parameters()]
        found.append([alpha * wanted, *torch.autograd.grad((alpha * seen).sum(), leaves)])
    torch.testing.assert_close(*found)
    assert not (alpha * ~wanted).any() and alpha.sum(-1).bool().equal(wanted.squeeze(-1))


def test_the_places_of_a_word_can_have_equal_gradients():
    """alpha = (0.5, 0.25, 0.25), and the loss is -log of the attention to the first two places,
    where one word stands: its score's gradient, alpha - alpha / 0.75 at each, is -1/6 and -1/12."""
    decoder = SyntacticDecoder(1)
    decoder.initial.weight.data, decoder.initial.bias.data = torch.ones(1, 1), torch.zeros(1)
    for same, expected in (
        (None, [-1 / 6, -1 / 12, 1 / 4]),
        (same_words(torch.tensor([[7, 7, 8]]), torch.float32), [-1 / 8, -1 / 8, 1 / 4]),
    ):
        h = torch.tensor([[[log(2)], [0.0], [0.0]]], requires_grad=True)
        alpha = decoder(h, torch.ones(1, 1), open_mask(h), 1, same)  # the query is 1
        torch.testing.assert_close(alpha, torch.tensor([[[0.5, 0.25, 0.25]]]))
        alpha[..., :2].sum().log().neg().backward()
        torch.testing.assert_close(h.grad[0, :, 0], torch.tensor(expected))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_masked_words_get_nothing_in_any_precision(dtype):
    torch.manual_seed(1)
    decoder = SyntacticDecoder(4).to(dtype)
    h, summary = 30 * torch.randn(3, 5, 4, dtype=dtype), 30 * torch.randn(3, 4, dtype=dtype)
    keep = torch.arange(5) < torch.tensor([[5], [2], [0]])  # the last: a row of padding only
    alpha = decoder(h, summary, padding_mask(keep, dtype)[:, 0], 4)
    alpha[:2].float().square().sum().backward()
    assert alpha.dtype == dtype and alpha.isfinite().all()
    assert alpha[1, :, 2:].eq(0).all()
    torch.testing.assert_close(alpha[:2].float().sum(-1), torch.ones(2, 4), atol=1e-2, rtol=0)
    assert all(p.grad.isfinite().all() for p in decoder.parameters())
