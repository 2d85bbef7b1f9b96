"""Prototype attention equals the paper's masked attention and leaves other tokens alone."""

import copy

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from compgen_fairseq.modules.prototype_attention import (
    PrototypeAttention,
    PrototypeLayerNorm,
    PrototypeTable,
)

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
def sublayer(table: PrototypeTable) -> PrototypeAttention:
    sublayer = PrototypeAttention(DIM, HEADS, table).eval()
    for name, parameter in sublayer.named_parameters():  # biases and LayerNorm too
        torch.nn.init.normal_(parameter, mean=float(name == "norm.weight"))
    return sublayer


def test_equals_masked_attention_over_all_prototypes_of_the_sentence(sublayer, table):
    x = torch.randn(5, 2, DIM)
    table.select(TOKENS)
    out = sublayer(x)
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


def test_nothing_happens_before_the_table_is_filled(sublayer):
    empty = PrototypeTable(9, DIM)
    sublayer.shared = (empty,)
    x = torch.randn(5, 2, DIM)
    empty.select(TOKENS)
    assert not empty.filled
    assert sublayer(x) is x


def test_what_lies_behind_the_count_does_not_matter(sublayer, table):
    x = torch.randn(5, 2, DIM)
    table.select(TOKENS)
    before = sublayer(x)
    table.vectors[1, 2] = table.vectors[2, 1:] = 100.0
    assert torch.equal(sublayer(x), before)


def test_a_batch_without_any_such_token_passes_and_gives_no_nan(sublayer, table):
    x = torch.randn(2, 1, DIM, requires_grad=True)
    table.select(torch.tensor([[5, 2]]))
    out = sublayer(x)
    assert torch.equal(out, x)
    out.sum().backward()
    assert sublayer.query.weight.grad is not None
    assert torch.equal(sublayer.query.weight.grad, torch.zeros(DIM, DIM))


def test_gradients_reach_the_token_and_the_parameters_not_the_table(sublayer, table):
    x = torch.randn(5, 2, DIM, requires_grad=True)
    table.select(TOKENS)
    (sublayer(x) * torch.randn(5, 2, DIM)).sum().backward()
    assert x.grad is not None and x.grad.abs().min() > 0
    unused = {"key.bias"}  # shifts all scores of a token alike
    for name, parameter in sublayer.named_parameters():
        assert name in unused or parameter.grad.abs().sum() > 0, name
    assert not table.vectors.requires_grad


def test_cost_grows_with_the_length_not_with_its_square(sublayer, table):
    def flops(length: int) -> int:
        table.select(TYPES[torch.arange(length) % 3].unsqueeze(0))
        with FlopCounterMode(display=False) as counter:
            sublayer(torch.randn(length, 1, DIM))
        return counter.get_total_flops()

    per_token = (flops(400) - flops(200)) / 200
    assert per_token == 2 * 2 * DIM * DIM, "a token costs its query and its output, no more"


def test_the_norm_keeps_its_names_and_a_copy_its_own_table(sublayer, table):
    norm = PrototypeLayerNorm(DIM, sublayer)
    names = set(norm.state_dict())
    assert {"weight", "bias", "prototype_attn.query.weight"} <= names
    assert not any("vectors" in name for name in names), "the table is saved with every layer"
    pair = torch.nn.ModuleList([table, norm])
    twin = copy.deepcopy(pair)
    assert twin[1].prototype_attn.shared[0] is twin[0]


def test_a_table_takes_the_size_of_what_it_loads(table):
    fresh = PrototypeTable(9, DIM, fingerprint=5)
    fresh.load_state_dict(table.state_dict())
    assert all(torch.equal(fresh.state_dict()[n], v) for n, v in table.state_dict().items())


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (PrototypeTable(10, DIM, 5), "a dictionary of 9 types, not to this one of 10"),
        (PrototypeTable(9, DIM, 6), "a dictionary with other types"),
        (PrototypeTable(9, DIM + 2, 5), "are 8 wide, the model 10"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_in_one_sentence(other, reason, table):
    with pytest.raises(RuntimeError, match=reason):
        other.load_state_dict(table.state_dict())


def test_bad_sizes_are_named(table):
    with pytest.raises(ValueError, match="3 attention heads don't divide a width of 8"):
        PrototypeAttention(8, 3, table)
    with pytest.raises(ValueError, match=r"prototypes \(2, 3, 8\) for 3 types"):
        table.fill(TYPES, torch.zeros(2, 3, DIM), torch.ones(3))
