"""Equation 3: attention over both halves, by hand and against its own definition."""

import pytest
import torch
import torch.nn.functional as F

from compgen_fairseq.modules.representation_enhancement import RepresentationEnhancement

PADDING = torch.tensor([[False] * 5, [False, False, False, True, True]])


@pytest.fixture
def made() -> RepresentationEnhancement:
    torch.manual_seed(1)
    made = RepresentationEnhancement(8, 2, 4).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def states(batch: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(2)
    return tuple(torch.randn(batch, 5, 8, generator=draw) for _ in range(2))


def test_uniform_attention_by_hand():
    # queries and keys are zero, so every word reads the mean of all values; values and output are
    # identities. comp (1, 0), (3, 0); cont (0, 0), (0, 4): the mean is (1, 1). With the residuals
    # (0.5, 0) and (1.5, 2): (1.5, 1) and (2.5, 3), which the LayerNorm makes (1, -1) and (-1, 1).
    made = RepresentationEnhancement(2, 1, 2)
    with torch.no_grad():
        made.qkv_proj.weight.copy_(torch.cat([torch.zeros(4, 2), torch.eye(2)]))
        made.out_proj.weight.copy_(torch.eye(2))
    comp = torch.tensor([[[1.0, 0.0], [3.0, 0.0]]])
    cont = torch.tensor([[[0.0, 0.0], [0.0, 4.0]]])
    before = []
    made.layer_norm.register_forward_pre_hook(lambda _, inputs: before.extend(inputs))
    mix = made(comp, cont)
    torch.testing.assert_close(before[0], torch.tensor([[[1.5, 1.0], [2.5, 3.0]]]))
    torch.testing.assert_close(mix, torch.tensor([[[1.0, -1.0], [-1.0, 1.0]]]), rtol=1e-3, atol=0)


@pytest.mark.parametrize("padding", [None, PADDING])
def test_it_is_the_mean_of_the_halves_of_a_whole_self_attention(made, padding):
    """Here each of the 2T outputs is projected; padding is masked in both halves."""
    comp, cont = states()
    both = torch.cat([comp, cont], dim=1)
    mask = None if padding is None else torch.cat([padding, padding], dim=1)
    whole, _ = F.multi_head_attention_forward(
        *(3 * [both.transpose(0, 1)]),
        *(8, 2, made.qkv_proj.weight, made.qkv_proj.bias, None, None, False, 0.0),
        *(made.out_proj.weight, made.out_proj.bias),
        key_padding_mask=mask,
    )
    halves = (both + whole.transpose(0, 1)).chunk(2, dim=1)
    expected = made.layer_norm((halves[0] + halves[1]) / 2)
    torch.testing.assert_close(made(comp, cont, padding), expected, rtol=1e-4, atol=1e-5)


def test_it_starts_as_fairseqs_attention():
    """Xavier's weights, with a gain of the root of 1/2."""
    torch.manual_seed(1)
    for part in RepresentationEnhancement(64, 2, 32).qkv_proj.weight.chunk(3):
        assert part.std().item() == pytest.approx((2 * 64) ** -0.5, rel=0.05)


def test_dropout_is_for_training_alone_or_retained_in_generation_if_it_is_named():
    states = torch.randn(2, 3, 8)
    for options, differs in (
        ({"retain_dropout": True}, True),
        ({"retain_dropout": True, "retain_dropout_modules": ["TransformerEncoder"]}, False),
        ({"retain_dropout": False}, False),
    ):
        module = RepresentationEnhancement(8, 2, 4, dropout=0.5)
        assert not module(states, states).equal(module(states, states))
        once = module.eval()(states, states)
        module.dropout_module.make_generation_fast_("enhancement", **options)
        assert module(states, states).equal(once) != differs


def test_heads_of_another_width():
    made = RepresentationEnhancement(12, 2, head_dim=3)
    assert made.qkv_proj.weight.shape == (18, 12) and made.out_proj.weight.shape == (12, 6)
    comp, cont = torch.randn(2, 2, 5, 12)
    assert made(comp, cont, PADDING).shape == (2, 5, 12)
