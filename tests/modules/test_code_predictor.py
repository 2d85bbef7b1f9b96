"""What the prior sees, what it predicts, and what it must not see."""

import pytest
import torch

from compgen_fairseq.modules.code_predictor import CodePredictor, causal_mask, padding_mask

DIM, HEADS, CODES = 8, 2, 4
# left and right padding; the last position of each sentence is its end
KEEP = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 1]]).bool()
EOS = torch.zeros_like(KEEP)
EOS[[0, 1, 2, 3], [4, 4, 3, 4]] = True


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def predictor(**options) -> CodePredictor:
    return CodePredictor(2, DIM, 12, HEADS, **options).eval()


def codes() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A codebook, the sentences' codes, and their vectors."""
    codebook = torch.randn(CODES, DIM)
    drawn = torch.randint(CODES, KEEP.shape)
    return codebook, drawn, codebook[drawn]


def test_masks_one_drawn_token_of_each_sentence_and_never_its_end():
    made, (codebook, _, x) = predictor(context="masked"), codes()
    seen = torch.zeros_like(KEEP)
    for _ in range(60):
        logits, predicted = made(x, KEEP, EOS, codebook)
        assert predicted.sum(1).tolist() == [1, 1, 1, 0]  # a bare end has nothing to mask
        assert logits.shape == (3, CODES)
        seen |= predicted
    assert torch.equal(seen, KEEP & ~EOS)


def test_the_masked_code_does_not_leak():
    made, (codebook, drawn, x) = predictor(context="masked"), codes()
    torch.manual_seed(5)
    logits, predicted = made(x, KEEP, EOS, codebook)
    for shift in range(1, CODES):
        other = torch.where(predicted, (drawn + shift) % CODES, drawn)
        torch.manual_seed(5)
        again, _ = made(codebook[other], KEEP, EOS, codebook)
        assert torch.equal(again, logits)
    # the codes around it are seen, on both sides; those of padding are not
    torch.manual_seed(5)
    again, _ = made(torch.where(KEEP.unsqueeze(-1), x, 99.0), KEEP, EOS, codebook)
    torch.testing.assert_close(again, logits)
    row, column = predicted.nonzero()[0].tolist()
    for neighbour in set(range(5)) - {column}:
        changed = x.clone()
        changed[row, neighbour] += 1.0
        torch.manual_seed(5)
        again, _ = made(changed, KEEP, EOS, codebook)
        assert not torch.allclose(again[0], logits[0], atol=1e-4)
        assert torch.equal(again[1:], logits[1:])


@pytest.mark.parametrize("start", [True, False])
def test_left_context_sees_only_the_left(start):
    made, (codebook, _, x) = predictor(context="left", start=start), codes()

    def by_position(x):
        logits, predicted = made(x, KEEP, EOS, codebook)
        assert torch.equal(predicted, KEEP)
        return torch.full((*KEEP.shape, CODES), torch.nan).masked_scatter(
            predicted.unsqueeze(-1), logits
        )

    logits = by_position(x)
    for j in range(5):
        changed = x.clone()
        changed[:, j] += 1.0
        again = by_position(changed)
        first = j + 1 if start else j  # with a start vector position j predicts itself
        kept = KEEP[:, :first]
        assert torch.equal(again[:, :first][kept], logits[:, :first][kept])
        for row in range(2):  # the positions after it do see it, unless it is padding
            later = KEEP[row, first:]
            if later.any():
                same = torch.allclose(
                    again[row, first:][later], logits[row, first:][later], atol=1e-4
                )
                assert same == (not KEEP[row, j])


def test_left_context_does_not_depend_on_padding():
    made, (codebook, _, x) = predictor(context="left"), codes()
    logits, predicted = made(x, KEEP, EOS, codebook)
    rows = predicted.nonzero()[:, 0]
    for row, keep in enumerate(KEEP):
        alone, _ = made(
            x[row : row + 1, keep], keep[None, keep], EOS[row : row + 1, keep], codebook
        )
        torch.testing.assert_close(alone, logits[rows == row])


def test_cross_attention_reads_the_unpadded_memory():
    made, (codebook, _, x) = predictor(cross=True, start=False), codes()
    memory, seen = torch.randn(4, 3, DIM), torch.ones(4, 3, dtype=torch.bool)
    seen[:, 0] = False

    def logits(memory):
        return made(x, KEEP, EOS, codebook, memory, padding_mask(seen, x.dtype))[0]

    plain = logits(memory)
    hidden, visible = memory.clone(), memory.clone()
    hidden[:, 0] += 1.0
    visible[:, 1] += 1.0
    assert torch.equal(logits(hidden), plain)
    assert not torch.allclose(logits(visible), plain, atol=1e-4)


def test_the_output_layer_is_the_codebook():
    made, (codebook, _, x) = predictor(), codes()
    logits, _ = made(x, KEEP, EOS, codebook)
    doubled, _ = made(x, KEEP, EOS, 2 * codebook)
    torch.testing.assert_close(doubled, 2 * logits)
    codebook.requires_grad_()
    made(x, KEEP, EOS, codebook)[0].logsumexp(-1).sum().backward()
    assert codebook.grad.abs().sum() > 0


def test_logits_are_float32_in_half_precision():
    made, (codebook, _, x) = predictor().to(torch.bfloat16), codes()
    logits, _ = made(x.to(torch.bfloat16), KEEP, EOS, codebook)
    assert logits.dtype == torch.float32 and logits.isfinite().all()


def test_masks_hide_what_they_should():
    like = torch.zeros(1)
    hidden = (padding_mask(KEEP, torch.float32) + causal_mask(5, like)) < -1e30
    for row in range(4):
        for i in range(5):
            for j in range(5):
                assert hidden[row, 0, i, j] == (j > i or not KEEP[row, j])


def test_an_unknown_context_is_refused():
    with pytest.raises(ValueError, match="one of masked, left, not 'right'"):
        predictor(context="right")
