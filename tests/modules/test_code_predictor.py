"""What the prior sees and what it must not see."""

import pytest
import torch

from compgen_fairseq.modules.code_predictor import CodePredictor, draw_positions
from compgen_fairseq.modules.masks import causal_mask, padding_mask

DIM, HEADS, CODES = 8, 2, 4
# left and right padding; the last position of each sentence is its end
KEEP = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 1]]).bool()
EOS = torch.zeros_like(KEEP)
EOS[[0, 1, 2, 3], [4, 4, 3, 4]] = True


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def predictor() -> CodePredictor:
    made = CodePredictor(2, DIM, 12, HEADS, CODES).eval()
    torch.nn.init.normal_(made.bias)
    return made


def codebook_and_vectors() -> tuple[torch.Tensor, torch.Tensor]:
    """A codebook, and the vectors of the sentences' codes."""
    codebook = torch.randn(CODES, DIM)
    return codebook, codebook[torch.randint(CODES, KEEP.shape)]


def test_draws_one_token_of_each_sentence_and_never_its_end():
    seen = torch.zeros_like(KEEP)
    for _ in range(60):
        drawn = draw_positions(KEEP & ~EOS)
        assert drawn.sum(1).tolist() == [1, 1, 1, 0]  # a bare end has nothing to draw
        seen |= drawn
    assert torch.equal(seen, KEEP & ~EOS)
    draws = [draw_positions(KEEP & ~EOS, anew=False) for _ in range(9)]
    assert all(torch.equal(draw, draws[0]) for draw in draws)


def test_every_sentence_sees_itself_and_no_padding():
    made, (codebook, x) = predictor(), codebook_and_vectors()
    where = draw_positions(KEEP)
    mask = padding_mask(KEEP, x.dtype)
    logits = made(x, mask, where, codebook)
    assert logits.shape == (4, CODES)
    again = made(torch.where(KEEP.unsqueeze(-1), x, 99.0), mask, where, codebook)
    torch.testing.assert_close(again, logits)
    for neighbour in range(5):
        changed = x.clone()
        changed[0, neighbour] += torch.randn(DIM)
        again = made(changed, mask, where, codebook)
        assert not torch.allclose(again[0], logits[0], atol=1e-4)
        assert torch.equal(again[1:], logits[1:])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_under_autocast_a_position_that_sees_nothing_harms_no_other(dtype):
    """Padding on the left under a causal mask: ``--amp`` computes scores in half precision."""
    made, (codebook, x) = predictor(), codebook_and_vectors()
    with torch.autocast("cpu", dtype):
        mask = causal_mask(5, x) + padding_mask(KEEP, x.dtype)
        logits = made(x, mask, KEEP, codebook)
    alone = made(x, causal_mask(5, x) + padding_mask(KEEP, x.dtype), KEEP, codebook)
    torch.testing.assert_close(logits, alone, rtol=0, atol=0.1)


def test_masks_hide_what_they_should():
    like = torch.zeros(1)
    hidden = (padding_mask(KEEP, torch.float32) + causal_mask(5, like)) < -1e30
    for row in range(4):
        for i in range(5):
            for j in range(5):
                assert hidden[row, 0, i, j] == (j > i or not KEEP[row, j])
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        assert (2 * padding_mask(KEEP, dtype)).isfinite().all()  # as where both masks hide
