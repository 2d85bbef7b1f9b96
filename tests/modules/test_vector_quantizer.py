"""Nearest codes, who gets the gradient, the moving average, and float32 throughout."""

import pytest
import torch

from compgen_fairseq.modules.vector_quantizer import VectorQuantizer, code_logits

CODES = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])


def quantizer(codes=CODES, num_types=5, **options) -> VectorQuantizer:
    made = VectorQuantizer(len(codes), codes.size(1), num_types, **options)
    made.weight.data.copy_(codes)
    return made


def quantize(made, x, tokens=None):
    tokens = torch.zeros(x.shape[:2], dtype=torch.long) if tokens is None else tokens
    return made.quantize(x, tokens)


def test_distances_by_hand():
    x = torch.tensor([[1.0, 0.0], [2.0, 2.0]])
    expected = torch.tensor([[-1.0, -4.0, -17.0], [-8.0, -5.0, -8.0]])
    assert torch.equal(code_logits(x, CODES), expected)


def test_cosines_by_hand():
    codes = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.6, 0.8]])
    logits = code_logits(torch.tensor([[5.0, 0.0]]), codes, "cosine")
    torch.testing.assert_close(logits, torch.tensor([[1.0, 0.0, -1.0, 0.6]]))


def test_ties_go_to_the_lowest_code():
    codes = torch.tensor([[9.0, 9.0], [1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    x = torch.zeros(1, 3, 2)
    assert quantize(quantizer(codes), x).codes.tolist() == [[1, 1, 1]]
    assert quantize(quantizer(codes.repeat(30, 1)), x).codes.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("straight_through", [True, False])
def test_the_gradient_goes_to_the_embeddings_or_to_the_codes(straight_through):
    """Of the nearest code, which replaces the embedding."""
    made = quantizer(straight_through=straight_through)
    x = torch.tensor([[[1.0, 0.5], [2.9, 0.2], [2.8, 0.1]]], requires_grad=True)
    found = quantize(made, x)
    assert found.codes.tolist() == [[0, 1, 1]]
    torch.testing.assert_close(found.vectors, CODES[found.codes])
    upstream = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]])
    to_x, to_codes = torch.autograd.grad(
        (found.vectors * upstream).sum(), (x, made.weight), allow_unused=True, retain_graph=True
    )
    assert torch.equal(found.raw, found.vectors)
    (raw,) = torch.autograd.grad((found.raw * upstream).sum(), made.weight)
    assert torch.equal(raw, torch.tensor([[1.0, 2.0], [8.0, 10.0], [0.0, 0.0]]))
    if straight_through:
        assert torch.equal(to_x, upstream)
        assert to_codes is None
    else:
        assert to_x is None
        assert torch.equal(to_codes, torch.tensor([[1.0, 2.0], [8.0, 10.0], [0.0, 0.0]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_moving_average_by_hand(dtype):
    made = quantizer(ema_decay=0.75)
    x = torch.tensor(
        [[[3.0, 4.0], [0.0, 2.0], [90.0, 90.0]], [[-5.0, 0.0], [70.0, 70.0], [80.0, 80.0]]],
        dtype=dtype,
    )
    codes = torch.tensor([[0, 0, 0], [1, 2, 1]])
    keep = torch.tensor([[True, True, False], [True, False, False]])
    made.update_ema(x, codes, keep)
    # directions (0.6, 0.8) + (0, 1) and (-1, 0) alone; code 2, without tokens: its own, (0, 1)
    unit = torch.tensor([0.6, 1.8]) / (0.6**2 + 1.8**2) ** 0.5
    expected = torch.stack([unit / 4, torch.tensor([2.0, 0.0]), torch.tensor([0.0, 3.25])])
    torch.testing.assert_close(made.codebook().detach(), expected)
    # in half precision the optimizer's master copy would undo a move of the parameter
    assert torch.equal(made.weight.data, CODES) == (dtype == torch.bfloat16)
    assert made.ema_offset.any() == (dtype == torch.bfloat16)
    made.update_ema(x, codes, keep)
    torch.testing.assert_close(made.codebook()[0].detach(), unit * 7 / 16)


def test_weight_decay_shrinks_what_the_average_has_moved():
    made, code = quantizer(ema_decay=0.9), CODES.clone()
    optimizer = torch.optim.AdamW([made.weight], lr=0.1, weight_decay=0.5)
    made.weight.grad = torch.zeros_like(CODES)
    toward = torch.tensor([[1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    for _ in range(3):
        made.update_ema(toward.unsqueeze(1), torch.arange(3).unsqueeze(1), torch.ones(3, 1).bool())
        optimizer.step()
        code = (1 - 0.1 * 0.5) * (code + 0.1 * (toward - code))
        torch.testing.assert_close(made.codebook().detach(), code)


def test_the_mask_code_is_averaged_too_and_no_token_has_it():
    made = VectorQuantizer(2, 2, 5, ema_decay=0.5, mask_code=True)
    made.weight.data.copy_(CODES)
    found = quantize(made, torch.tensor([[[0.0, 4.0]]]))
    assert found.logits.size(-1) == 2 and found.codes.item() == 0
    assert torch.equal(found.mask_code, CODES[2]) and torch.equal(found.codebook, CODES[:2])
    made.update_ema(torch.ones(1, 1, 2), found.codes, torch.tensor([[True]]))
    torch.testing.assert_close(made.vectors()[2].detach(), torch.tensor([0.0, 2.5]))


def test_no_moving_average_with_decay_1_or_without_tokens():
    x, codes = torch.ones(1, 2, 2), torch.zeros(1, 2, dtype=torch.long)
    for decay, keep in ((1.0, torch.tensor([[True, True]])), (0.5, torch.tensor([[False, False]]))):
        made = quantizer(ema_decay=decay)
        made.update_ema(x, codes, keep)
        assert torch.equal(made.codebook(), CODES)


def test_frozen_codes_follow_the_type_and_survive_saving():
    made = quantizer()
    x, tokens = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]), torch.tensor([[3, 4]])
    assert not made.frozen
    made.freeze(torch.tensor([0, 0, 0, 2, 1]))
    copy = quantizer()
    copy.load_state_dict(made.state_dict())
    for frozen in (made, copy):
        assert frozen.frozen
        found = quantize(frozen, x, tokens)
        assert found.codes.tolist() == [[2, 1]]
        assert torch.equal(found.vectors, CODES[[2, 1]].unsqueeze(0))


@pytest.mark.parametrize("code", [-1, 3])
def test_types_are_frozen_to_codes_that_there_are(code):
    made = quantizer()
    with pytest.raises(ValueError, match="every type needs a code from 0 to 2"):
        made.freeze(torch.tensor([0, 1, 2, 0, code]))
    assert not made.frozen


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_codebook_stays_float32_in_a_half_precision_model(dtype):
    codes = CODES + 1e-4  # not representable in half precision
    made = torch.nn.Sequential(quantizer(codes)).to(dtype)[0]
    assert made.weight.dtype == made.ema_offset.dtype == made.codebook().dtype == torch.float32
    assert torch.equal(made.weight.data, codes)
    found = quantize(made, torch.tensor([[[1.0, 0.0]]], dtype=dtype))
    assert found.logits.dtype == torch.float32
    assert found.vectors.dtype == dtype
    made.weight.grad = torch.ones_like(codes)
    assert made.to(dtype).weight.grad.dtype == torch.float32


def test_memory_is_given_to_a_codebook_without_any():
    made = quantizer().to("meta").to_empty(device="cpu")
    made.load_state_dict(quantizer().state_dict())
    assert torch.equal(made.codebook(), CODES)


def test_autocast_leaves_the_logits_and_the_moving_average_in_float32():
    x, codes = torch.randn(4, 6, 8), torch.randn(3, 8)
    found = []
    for on in (True, False):
        made = quantizer(codes, ema_decay=0.5)
        with torch.autocast("cpu", torch.bfloat16, enabled=on):
            logits = code_logits(x, codes)
            made.update_ema(x, logits.argmax(-1), torch.ones(4, 6, dtype=torch.bool))
        found.append((logits, made.codebook()))
    assert all(map(torch.equal, *found))


def test_embeddings_that_are_no_numbers_have_a_code():
    """So that fairseq can say of the loss that it is none."""
    found = quantize(quantizer(), torch.full((1, 2, 2), torch.nan))
    assert found.codes.lt(3).all() and found.logits.isnan().all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_codes": 1}, "at least 2 codes, not 1"),
        ({"similarity": "dot"}, "one of distance, cosine, not 'dot'"),
        ({"ema_decay": 1.5}, "between 0 and 1, not 1.5"),
    ],
)
def test_impossible_quantizers_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        VectorQuantizer(**{"num_codes": 3, "dim": 2, "num_types": 5, **options})
