"""Prototype attention equals the paper's masked attention and leaves other tokens alone."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from compgen_fairseq.modules.prototype_attention import PrototypeAttention, PrototypeTable

DIM, HEADS, K = 8, 2, 3
TYPES = torch.tensor([4, 6, 7])  # of 9; type 7 has one prototype
TOKENS = torch.tensor([[4, 5, 6, 4, 2], [1, 7, 7, 6, 2]])


@pytest.fixture
def table() -> PrototypeTable:
    torch.manual_seed(0)
    table = PrototypeTable(9, DIM, fingerprint=5)
    vectors, counts = torch.randn(3, K, DIM), torch.tensor([3, 2, 1])
    table.fill(TYPES, vectors, counts)
    return table


@pytest.fixture
def sublayer() -> PrototypeAttention:
    sublayer = PrototypeAttention(DIM, HEADS).eval()
    for name, parameter in sublayer.named_parameters():  # biases and LayerNorm too
        torch.nn.init.normal_(parameter, mean=float(name == "norm.weight"))
    return sublayer


def test_equals_masked_attention_over_all_prototypes_of_the_sentence(sublayer, table):
    """What lies behind a type's count does not matter."""
    table.vectors[1, 2] = table.vectors[2, 1:] = 100.0
    x = torch.randn(5, 2, DIM)
    out = sublayer(x, table.select(TOKENS))
    for b, sentence in enumerate(TOKENS.tolist()):
        owned = [
            (place, table.vectors[table.slots[token], i])
            for place, token in enumerate(sentence)
            if table.slots[token] >= 0
            for i in range(int(table.counts[table.slots[token]]))
        ]
        keys = torch.stack([vector for _, vector in owned])
        places = torch.tensor([place for place, _ in owned])
        allowed = places == torch.arange(5).unsqueeze(1)
        weights = torch.cat([p.weight for p in (sublayer.query, sublayer.key, sublayer.value)])
        biases = torch.cat([p.bias for p in (sublayer.query, sublayer.key, sublayer.value)])
        attended, _ = torch.nn.functional.multi_head_attention_forward(
            *(x[:, b], keys, keys, DIM, HEADS, weights, biases, None, None, False, 0.0),
            *(sublayer.output.weight, sublayer.output.bias),
            attn_mask=~allowed,
            need_weights=False,
        )
        expected = sublayer.norm(x[:, b] + attended)
        has = allowed.any(1)
        torch.testing.assert_close(out[has, b], expected[has])
        assert torch.equal(out[~has, b], x[~has, b]), "a token without prototypes changed"
        assert has.tolist() == [table.slots[t] >= 0 for t in sentence]


def test_a_table_is_drawn_and_filled_anew(table):
    for k in (2, 4):
        table.draw(TYPES, k)
        assert table.vectors.shape == (3, k, DIM) and table.vectors.requires_grad
    table.fill(TYPES, torch.ones(3, K, DIM), torch.ones(3))
    assert torch.equal(table.vectors, torch.ones(3, K, DIM)) and not [*table.parameters()]
    table.fill(TYPES[1:2], torch.ones(1, K, DIM), torch.ones(1))
    assert table.slots.ge(0).nonzero().flatten().tolist() == [6]


def test_it_starts_as_embeddings_and_attention_do():
    torch.manual_seed(1)
    table, made = PrototypeTable(99, 64), PrototypeAttention(64, 2)
    table.draw(torch.arange(4, 90), K)
    assert table.vectors.std().item() == pytest.approx(64**-0.5, rel=0.05)
    for part in (made.query, made.key, made.value):  # Xavier's, with a gain of the root of 1/2
        assert part.weight.std().item() == pytest.approx((2 * 64) ** -0.5, rel=0.05)


def test_a_batch_without_any_such_token_passes_and_gives_no_nan(sublayer, table):
    x = torch.randn(2, 1, DIM, requires_grad=True)
    out = sublayer(x, table.select(torch.tensor([[5, 2]])))
    assert torch.equal(out, x)
    out.sum().backward()
    assert torch.equal(sublayer.query.weight.grad, torch.zeros(DIM, DIM))


def test_cost_grows_with_the_length_not_with_its_square(sublayer, table):
    def flops(length: int) -> int:
        selection = table.select(TYPES[torch.arange(length) % 3].unsqueeze(0))
        with FlopCounterMode(display=False) as counter:
            sublayer(torch.randn(length, 1, DIM), selection)
        return counter.get_total_flops()

    per_token = (flops(400) - flops(200)) / 200
    assert per_token == 2 * 2 * DIM * DIM, "a token costs its query and its output, no more"


def test_dropout_on_the_prototypes_in_training_only():
    """A share of their numbers is zero, the others are larger by 1 / (1 - p)."""
    table = PrototypeTable(9, DIM, dropout=0.25)
    table.fill(TYPES, torch.ones(3, K, DIM), torch.full((3,), K))
    torch.manual_seed(1)
    draws = torch.stack([table.select(TOKENS).vectors for _ in range(300)])
    dropped = draws.eq(0).float().mean()
    assert abs(dropped - 0.25) < 0.01
    torch.testing.assert_close(draws[draws != 0], torch.full((int((draws != 0).sum()),), 4 / 3))
    assert torch.equal(table.eval().select(TOKENS).vectors, torch.ones(3, K, DIM))


@pytest.mark.parametrize("option", ["dropout", "attention_dropout"])
def test_dropout_in_the_sublayer_in_training_only(option, table):
    made = PrototypeAttention(DIM, HEADS, **{option: 0.5})
    x, chosen = torch.randn(5, 2, DIM), table.select(TOKENS)
    assert not torch.equal(made(x, chosen), made(x, chosen))
    made.eval()
    assert torch.equal(made(x, chosen), made(x, chosen))


def test_the_identity_changes_nothing_and_learns(table):
    """Whatever gain and bias the LayerNorm before it has: there is none of its own."""
    identity = PrototypeAttention(DIM, HEADS, dropout=0.5, attention_dropout=0.5, identity=True)
    x = torch.randn(5, 2, DIM) * 3 + 2
    out = identity(x, table.select(TOKENS))
    assert torch.equal(out, x)
    (out * torch.randn(5, 2, DIM)).sum().backward()
    assert identity.output.weight.grad.abs().sum() > 0
    assert not torch.allclose(PrototypeAttention(DIM, HEADS)(x, table.select(TOKENS)), x)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (PrototypeTable(9, DIM, 6), "a dictionary with other types"),
        (PrototypeTable(9, DIM + 2, 5), "are 8 wide, the model 10"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_in_one_sentence(other, reason, table):
    with pytest.raises(RuntimeError, match=reason):
        other.load_state_dict(table.state_dict())


def test_bad_sizes_are_named(table):
    with pytest.raises(ValueError, match="3 attention heads don't divide a width of 8"):
        PrototypeAttention(8, 3)
    with pytest.raises(ValueError, match=r"prototypes \(2, 3, 8\) for 3 types"):
        table.fill(TYPES, torch.zeros(2, 3, DIM), torch.ones(3))


@pytest.mark.parametrize(
    ("types", "counts", "reason"),
    [
        ([4, 9], [1, 1], "different numbers from 0 to 8"),
        ([-1, 4], [1, 1], "different numbers from 0 to 8"),
        ([4, 4], [1, 1], "different numbers from 0 to 8"),
        ([4, 6], [0, 1], "from 1 to 3 prototypes"),
        ([4, 6], [1, 4], "from 1 to 3 prototypes"),
    ],
)
def test_types_and_counts_that_do_not_fit_are_refused(types, counts, reason, table):
    with pytest.raises(ValueError, match=reason):
        table.fill(torch.tensor(types), torch.zeros(2, K, DIM), torch.tensor(counts))
    assert table.counts.tolist() == [3, 2, 1]
