"""The layer's sublayers put together by hand."""

import pytest
import torch
import torch.nn.functional as F

from compgen_fairseq.modules.transformer_layer import FeedForward, StreamLayer

DIM, FFN, GATE, HEADS = 8, 6, 5, 2


def normed(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (DIM,))


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def scrambled(module: torch.nn.Module) -> torch.nn.Module:
    """The module with biases that matter too."""
    for name, parameter in module.named_parameters():
        if name.endswith("bias") and "norm" not in name:
            torch.nn.init.normal_(parameter)
    return module


def test_highway_equals_the_formula():
    ffn, r = scrambled(FeedForward(DIM, FFN, GATE)), torch.randn(2, 3, DIM)
    first, first_gate = ffn.inner.weight.split([FFN, GATE])
    bias, bias_gate = ffn.inner.bias.split([FFN, GATE])
    f = F.relu(r @ first.T + bias) @ ffn.outer.weight.T + ffn.outer.bias
    g = torch.sigmoid(F.relu(r @ first_gate.T + bias_gate) @ ffn.gate.weight.T + ffn.gate.bias)
    torch.testing.assert_close(ffn(r), normed(r * g + f * (1 - g)))
    ffn.gate.bias.data.fill_(100.0)  # wide open: the FFN is passed by
    torch.testing.assert_close(ffn(r), normed(r))
    ffn.gate.bias.data.fill_(-100.0)  # shut: no residual
    torch.testing.assert_close(ffn(r), normed(f))


@pytest.mark.parametrize(
    "option, part", [("dropout", "gate"), ("activation_dropout", "outer"), ("dropout", "norm")]
)
def test_dropout_on_hidden_layers_and_the_ffns_output(option, part):
    """The latter is all that the norm reads while the gate is shut."""
    ffn, x, seen = FeedForward(DIM, FFN, GATE, **{option: 0.5}), torch.randn(2, 3, DIM), []
    ffn.gate.bias.data.fill_(-1000.0)
    getattr(ffn, part).register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    for training in (True, True, False):
        ffn.train(training)(x)
    one, other, whole = seen
    assert not torch.equal(one, other)
    torch.testing.assert_close(one[one != 0], 2 * whole[one != 0])


def layer(**options) -> StreamLayer:
    return scrambled(StreamLayer(DIM, FFN, GATE, HEADS, **options))


def test_every_sublayer_ends_with_its_norm():
    made, x = layer(), torch.randn(1, 2, 5, DIM)
    attended = made.self_attn.self_attention(x, None)
    out, weights = made(x, None)
    torch.testing.assert_close(out, made.ffn(normed(x + attended)))
    assert weights is None


@pytest.mark.parametrize("cross, shared_weights", [("own", False), ("own", True), ("shared", True)])
def test_cross_attention(cross, shared_weights):
    made = layer(cross=cross, shared_weights=shared_weights)
    x, memory = torch.randn(2, 2, 5, DIM), torch.randn(2, 2, 4, DIM)
    attended = made.self_attn.self_attention(x, None)
    r = normed(x + attended)
    if cross == "shared":  # the codes read the encoder's words, once, for both residuals
        read = made.cross_attn.cross_attention(r[:1], memory[1:], None)[0]
        assert read.size(0) == 1
    else:  # each stream reads its own
        read = torch.cat(
            [
                made.cross_attn.cross_attention(r[i : i + 1], memory[i : i + 1], None)[0]
                for i in (0, 1)
            ]
        )
    out, weights = made(x, None, memory, need_weights=True)
    torch.testing.assert_close(out, made.ffn(normed(r + read)))
    assert weights.shape == (2, HEADS, 5, 4)


@pytest.mark.parametrize("cross", ["none", "own", "shared"])
@pytest.mark.parametrize("shared_weights", [True, False])
def test_the_word_stream_alone_is_the_same(cross, shared_weights):
    made = layer(cross=cross, shared_weights=shared_weights)
    x, memory = torch.randn(2, 2, 5, DIM), torch.randn(2, 2, 4, DIM)
    both, weights = made.attend(x, None, memory, need_weights=True)
    words, again = made.attend(x, None, memory, need_weights=True, words_only=True)
    torch.testing.assert_close(words, both[1:])
    torch.testing.assert_close(again, weights)


def test_dropout_on_what_sublayers_add_and_only_in_training():
    made = layer(dropout=0.5, attention_dropout=0.1, activation_dropout=0.1, cross="own")
    x, memory, seen = torch.randn(1, 9, 5, DIM), torch.randn(1, 9, 4, DIM), []
    for norm in (made.self_attn_norm, made.cross_attn_norm):
        norm.register_forward_hook(lambda _, args, out: seen.extend([args[0], out]))
    made(x, None, memory)
    for before, after in ((x, seen[0]), (seen[1], seen[2])):
        assert 0.4 < (before == after).float().mean() < 0.6
    made.eval()
    assert torch.equal(made(x, None, memory)[0], made(x, None, memory)[0])
