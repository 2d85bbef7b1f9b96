"""Each term against numbers worked out by hand."""

from math import exp, log

import pytest
import torch

from compgen_fairseq.criterions import structural_terms as terms
from compgen_fairseq.modules.structural_outputs import SideOutputs

#: Two codes on a line through the plane; a sentence of two tokens and one of a single token.
CODEBOOK = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
KEEP = torch.tensor([[True, True], [True, False]])


def side(**changed) -> SideOutputs:
    """Embeddings (1, 1), (2, 1) / (0, 3), padding; and everything else about them."""
    embeddings = torch.tensor([[[1.0, 1.0], [2.0, 1.0]], [[0.0, 3.0], [99.0, 99.0]]])
    values = {
        "embeddings": embeddings,
        "keep": KEEP,
        "codes": torch.tensor([[0, 1], [0, 1]]),
        "posterior": torch.tensor([[[-2.0, -2.0], [-5.0, -1.0]], [[-9.0, -13.0], [7.0, 7.0]]]),
        "codebook": CODEBOOK,
        "next_codes": torch.tensor([[1, 0], [0, 0]]),
        "next_keep": KEEP,
        "layers": [embeddings[None]],
        "vectors": CODEBOOK[torch.tensor([[0, 1], [0, 1]])],
    }
    return SideOutputs(**{**values, **changed})


def test_the_mean_posterior_by_hand():
    # cosines (1, 0) and (0, 1) of two tokens, times log 3: q = (3/4, 1/4) and (1/4, 3/4)
    cosines = log(3) * torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]])
    total, number = terms.mean_posterior(side(posterior=cosines))
    assert number == 3
    torch.testing.assert_close(total, torch.tensor([1.75, 1.25]))


def test_entropy_by_hand():
    half, quarter = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
    assert terms.entropy(half).item() == pytest.approx(log(2))
    assert terms.entropy(quarter).item() == pytest.approx(0.25 * log(4) + 0.75 * log(4 / 3))
    certain = torch.tensor([1.0, 0.0], requires_grad=True)
    assert terms.entropy(certain).item() == pytest.approx(0)
    for mean in (certain, torch.zeros(2, requires_grad=True)):  # a batch may have no masked token
        terms.entropy(mean).backward()
        assert mean.grad.isfinite().all()


def test_cross_entropy_of_posterior_and_prior_by_hand():
    # q = (3/4, 1/4), p = (1/2, 1/2): log 2;  q = (1/4, 3/4), p = (1/5, 4/5)
    q = torch.tensor([[log(3), 0.0], [1.0, 1.0 + log(3)]], requires_grad=True)
    p = torch.tensor([[2.0, 2.0], [0.0, log(4)]], requires_grad=True)
    total, number = terms.mmi_cross_entropy(q, p)
    assert number == 2
    expected = log(2) + 0.25 * log(5) + 0.75 * log(5 / 4)
    assert total.item() == pytest.approx(expected)
    for gradient in torch.autograd.grad(total, (q, p)):  # into q as well as p
        assert gradient[1].abs().sum() > 0


def test_commitment_by_hand():
    # squared distances (1, 1), (2, 1)-(2, 0), (0, 3): 2, 1, 9, each halved: the width is 2
    embeddings = side().embeddings.requires_grad_()
    vectors = side().vectors.requires_grad_()
    total, number = terms.commitment(side(embeddings=embeddings, vectors=vectors))
    assert (total.item(), number.item()) == (6.0, 3)
    total.backward()
    assert vectors.grad is None  # the code is held fixed
    expected = torch.tensor([[[1.0, 1.0], [0.0, 1.0]], [[0.0, 3.0], [0.0, 0.0]]])
    torch.testing.assert_close(embeddings.grad, expected)


@pytest.mark.parametrize("code_stream", [True, False])
def test_code_prediction_by_hand(code_stream):
    # minus the distances to the codes: (-1, -1) -> code 1: log 2; (-4, 0) -> code 0:
    # 4 + log(1 + e^-4); (0, -4) -> code 0: log(1 + e^-4)
    read = torch.tensor([[[1.0, 0.0], [2.0, 0.0]], [[0.0, 0.0], [99.0, 99.0]]])
    other = torch.full_like(read, 5.0)
    codebook = CODEBOOK.clone().requires_grad_()
    final = torch.stack([read, other] if code_stream else [other, read])
    made = side(layers=[final], codebook=codebook, keep=torch.ones_like(KEEP))
    total, number = terms.code_prediction(made, code_stream)
    assert number == 3  # positions with a next token
    assert total.item() == pytest.approx(log(2) + 4 + 2 * log(1 + exp(-4)))
    total.backward()
    assert codebook.grad.abs().sum() > 0


def test_code_attraction_by_hand():
    # nearest codes of (1.5, 1), (0, 1), (-1, 0): 1, 0, 0; squares 1.25, 1, 1, halved
    read = torch.tensor([[[1.5, 1.0], [0.0, 1.0]], [[-1.0, 0.0], [99.0, 99.0]]])
    codebook = CODEBOOK.clone().requires_grad_()
    final = torch.stack([torch.zeros_like(read), read]).requires_grad_()
    total, number = terms.code_attraction(side(layers=[final], codebook=codebook), False)
    assert (total.item(), number.item()) == (1.625, 3)
    total.backward()
    assert codebook.grad is None
    torch.testing.assert_close(final.grad[1, 0, 0], torch.tensor([-0.5, 1.0]))
    on_codes = terms.code_attraction(side(layers=[final], codebook=codebook), True)
    assert on_codes[0].item() == 0.0  # the code stream lies on code 0


def test_srl_mse_by_hand():
    # one layer: differences (1, 1), (2, 0), (0, 4): 1 + 2 + 8; the other: (0, 2) three times: 6
    words = torch.zeros(2, 2, 2)
    first = torch.tensor([[[1.0, 1.0], [2.0, 0.0]], [[0.0, 4.0], [99.0, 99.0]]])
    second = torch.tensor([0.0, 2.0]).expand(2, 2, 2)
    layers = [torch.stack([codes, words]).requires_grad_() for codes in (first, second)]
    total, number = terms.srl_mse(side(layers=layers))
    assert (total.item(), number.item()) == (17.0, 3)
    total.backward()
    for layer in layers:  # the codes are held fixed
        assert layer.grad[0].eq(0).all() and layer.grad[1].ne(0).any()


def test_half_precision_is_summed_in_float32():
    words = torch.full((1, 300, 2), 16.0, dtype=torch.bfloat16)
    keep = torch.ones(1, 300, dtype=torch.bool)
    made = side(embeddings=words, vectors=torch.zeros_like(words), keep=keep)
    layers = [torch.stack([torch.zeros_like(words), words])]
    for total, _ in (terms.commitment(made), terms.srl_mse(side(layers=layers, keep=keep))):
        assert total.item() == 300 * 256


def test_recipes_are_the_published_weights():
    published = {
        "mmi_cross_entropy": (0.1, 0.1, 0.1),
        "mmi_entropy": (0.1, 0.1, 0.1),
        "encoder_commitment": (0.1, 0.1, 0.1),
        "encoder_code_prediction": (0.5, 0.5, 0.5),
        "encoder_code_attraction": (0.1, 0.1, 0.1),
        "decoder_commitment": (0.1, 0.0, 0.0),
        "decoder_code_prediction": (0.5, 0.1, 0.1),
        "decoder_code_attraction": (0.1, 0.01, 0.01),
        "srl_mse": (0.001, 0.001, 0.01),
    }
    recipes = zip(("scan", "cogs", "cognition"), zip(*published.values(), strict=True), strict=True)
    assert {name: vars(weights) for name, weights in terms.RECIPES.items()} == {
        name: dict(zip(published, weights, strict=True)) for name, weights in recipes
    }
