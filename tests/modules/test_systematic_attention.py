"""One or two streams through one attention, with and without shared weights."""

import functools

import pytest
import torch

from compgen_fairseq.modules.relative_attention import RelativePositions
from compgen_fairseq.modules.systematic_attention import SystematicAttention

DIM, HEADS, BATCH, LENGTH = 12, 3, 2, 5


def attention(shared=False, relative=True, seed=0) -> SystematicAttention:
    torch.manual_seed(seed)
    positions = RelativePositions(DIM // HEADS, max_distance=3) if relative else None
    return SystematicAttention(DIM, HEADS, 0.0, shared, positions)


def streams(number=2, length=LENGTH) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(number, BATCH, length, DIM)


def masks() -> torch.Tensor:
    """Causal, and the second sentence's last position is padding."""
    lowest = torch.finfo(torch.float32).min
    mask = torch.full((BATCH, 1, LENGTH, LENGTH), lowest).triu(1)
    mask[1, ..., -1] = lowest
    return mask


def test_one_stream_equals_pytorchs_attention():
    made, x, mask = attention(relative=False), streams(1), masks()
    for linear in (made.qk_proj, made.v_proj, made.out_proj):
        torch.nn.init.normal_(linear.bias)
    names = "in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"
    values = (
        torch.cat([made.qk_proj.weight, made.v_proj.weight]),
        torch.cat([made.qk_proj.bias, made.v_proj.bias]),
        *(made.out_proj.weight, made.out_proj.bias),
    )
    theirs = torch.nn.MultiheadAttention(DIM, HEADS, batch_first=True)
    theirs.load_state_dict(dict(zip(names, values, strict=True)))
    expected, _ = theirs(x[0], x[0], x[0], attn_mask=mask.repeat(1, HEADS, 1, 1).flatten(0, 1))
    out = made.self_attention(x, mask)
    torch.testing.assert_close(out[0], expected)
    memory = streams(1, 7)
    expected, weights = theirs(x[0], memory[0], memory[0], average_attn_weights=False)
    out, own = made.cross_attention(x, memory, None, need_weights=True)
    torch.testing.assert_close(out[0], expected)
    torch.testing.assert_close(own, weights)


@pytest.mark.parametrize("relative", [True, False])
def test_shared_weights_come_from_the_codes_alone(relative):
    shared, own = attention(True, relative), attention(False, relative)
    x = streams()
    seen: list[torch.Tensor] = []
    shared.observer = seen.append
    both = shared.self_attention(x, masks())
    torch.testing.assert_close(both[:1], own.self_attention(x[:1], masks()))
    other = torch.stack([x[0], torch.randn_like(x[1])])
    changed = shared.self_attention(other, masks())
    weights, again = seen
    assert torch.equal(changed[0], both[0]) and not torch.equal(changed[1], both[1])
    if relative:
        assert torch.equal(weights, again)
        value = shared.v_proj(x[1]).view(BATCH, LENGTH, HEADS, -1).transpose(1, 2)
        mixed = weights @ value + torch.einsum(
            "bhij,ijd->bhid", weights, shared.relative(LENGTH, LENGTH)[1]
        )
        expected = shared.out_proj(mixed.transpose(1, 2).flatten(2))
        torch.testing.assert_close(both[1], expected)
    same = shared.self_attention(torch.stack([x[0], x[0]]), masks())
    torch.testing.assert_close(same[0], same[1])


def test_streams_that_attend_for_themselves_do_not_meet():
    made, x, memory = attention(), streams(), streams(2, 7)
    hidden = torch.zeros(BATCH, 1, 1, 7)
    hidden[1, ..., :2] = torch.finfo(torch.float32).min
    both = made.self_attention(x, masks())
    seen = []
    made.observer = seen.append
    crossed, weights = made.cross_attention(x, memory, hidden, need_weights=True)
    assert torch.equal(seen[0], weights)
    for i in range(2):
        alone = made.self_attention(x[i : i + 1], masks())
        torch.testing.assert_close(both[i], alone[0])
        alone, own = made.cross_attention(
            x[i : i + 1], memory[i : i + 1], hidden, need_weights=True
        )
        torch.testing.assert_close(crossed[i], alone[0])
    torch.testing.assert_close(weights, own)  # the last stream's
    assert weights[1, ..., :2].eq(0).all()


@pytest.mark.parametrize("shared, number", [(True, 2), (False, 2), (False, 1)])
def test_position_by_position_equals_all_at_once(shared, number):
    made, x, memory = attention(shared), streams(number), streams(number, 7)
    mask = masks()[:1]
    cross = attention(seed=3)
    whole = made.self_attention(x, mask)
    crossed, _ = cross.cross_attention(x, memory, None)
    cache, cross_cache = {}, {}
    for i in range(LENGTH):
        step = made.self_attention(x[:, :, i : i + 1], None, cache)
        torch.testing.assert_close(step[:, :, 0], whole[:, :, i])
        # after the first step the memory is not read again
        seen = memory if i == 0 else torch.full_like(memory, torch.nan)
        step, _ = cross.cross_attention(x[:, :, i : i + 1], seen, None, cross_cache)
        torch.testing.assert_close(step[:, :, 0], crossed[:, :, i])


def test_weights_are_dropped_out_in_training_only():
    made = SystematicAttention(DIM, HEADS, dropout=0.5, relative=RelativePositions(DIM // HEADS))
    x = streams(1)
    for attend in (made.self_attention, functools.partial(made.cross_attention, x)):
        made.train()
        assert not torch.equal(attend(x, None)[0], attend(x, None)[0])
        made.eval()
        assert torch.equal(attend(x, None)[0], attend(x, None)[0])


def test_a_width_that_the_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="width 10 is not a multiple of the 3 attention heads"):
        SystematicAttention(10, 3)
