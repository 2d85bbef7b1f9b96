"""Before stage 2 the plain Transformer, bit for bit; after it prototypes at every layer."""

import copy
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from random_batches import (
    both_sides,
    build_model,
    configured,
    dictionary,
    dictionary_of,
    step_by_step,
)

from compgen_fairseq.models.known_dictionary import fingerprint
from compgen_fairseq.modules.prototype_attention import PrototypeAttention

SIZES = both_sides(layers=2, embed_dim=16, ffn_embed_dim=32, attention_heads=2)
DICTIONARY = Dictionary()
for count, token in enumerate(["the", "dog", "ran", ".", "rare", "far"]):
    DICTIONARY.add_symbol(token, n=3 if token == "rare" else 20 + count)
TASK = SimpleNamespace(source_dictionary=DICTIONARY, target_dictionary=DICTIONARY)
THE, DOG, RAN, DOT, RARE, FAR = range(4, 10)
SOURCE = torch.tensor([[1, 1, THE, DOG, DOT, 2], [RAN, FAR, DOG, THE, RARE, 2]])
TARGET = torch.tensor([[2, THE, RAN, DOG], [2, FAR, DOG, 1]])
K = 3


def build(arch: str = "proto_transformer", seed: int = 1, sizes: dict = SIZES, **options):
    return build_model(arch, TASK, seed, **sizes, **options)


def run(model, source=SOURCE, target=TARGET):
    return model(source, (source != 1).sum(1), target)[0]


def fill(model, types=(THE, DOG, FAR)):
    torch.manual_seed(3)
    for table in model.tables().values():
        counts = torch.full((len(types),), K)
        table.fill(torch.tensor(types), torch.randn(len(types), K, 16), counts)
    return model


@pytest.mark.parametrize("variant", ["one-pass", "target-side", "source-and-target"])
@pytest.mark.parametrize("training", [False, True])
def test_stage_1_is_the_plain_transformer_bit_for_bit(variant, training):
    """The same seed gives the same weights, outputs, dropout and gradients."""
    plain, model = build("transformer"), build(prototypes=variant)
    results = []
    for one in (plain, model):
        one.train(training)
        torch.manual_seed(7)
        out = run(one)
        out.square().sum().backward()
        gradients = {n: p.grad for n, p in one.named_parameters()}
        results.append((out, gradients))
    (expected, theirs), (out, ours) = results
    assert torch.equal(out, expected)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    added = set(ours) - set(theirs)
    assert added and all(ours[name] is None for name in added)


def test_the_model_is_built_without_the_gpus(monkeypatch):
    """Of several, PyTorch would initialise every one to keep its random numbers, and warn."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: pytest.fail("a GPU is used"))
    build(prototypes="random")


def test_the_new_sublayers_are_the_only_parameters_added():
    """About 6 million at CoGnition's size, as section 4.3 says."""
    sizes = {"encoder_layers": 6, "encoder_embed_dim": 512, "decoder_layers": 1}
    count = {
        arch: sum(p.numel() for p in build(arch, sizes=sizes).parameters())
        for arch in ("transformer_iwslt_de_en", "proto_transformer_cognition")
    }
    added = count["proto_transformer_cognition"] - count["transformer_iwslt_de_en"]
    assert added == 6 * (4 * 512 * 513 + 2 * 512) and 6e6 < added < 6.5e6


@pytest.mark.parametrize("variant", ["one-pass", "target-side", "source-and-target", "random"])
def test_stage_2_uses_prototypes_and_trains_everything(variant):
    model = build(prototypes=variant, prototypes_per_token=K).train()
    if variant != "random":
        before = run(model.eval())
        assert not torch.equal(run(fill(model)), before)
    run(model.train()).square().sum().backward()
    still = {n for n, p in model.named_parameters() if p.grad is None}
    assert still == set()
    stacks = {"source": model.encoder, "target": model.decoder}
    drawn: list[torch.Tensor] = []
    for side in model.tables():
        parts = [m for m in stacks[side].modules() if isinstance(m, PrototypeAttention)]
        assert len(parts) == 2 and all(m.query.weight.grad.abs().sum() > 0 for m in parts)
        assert not any(torch.equal(m.query.weight, other) for m in parts for other in drawn)
        drawn += [m.query.weight for m in parts]


def test_random_prototypes_are_trained_vectors_of_frequent_words():
    model = build(prototypes="random", prototypes_per_token=K, prototype_min_count=20)
    table = model.encoder.prototypes
    having = table.slots.ge(0).nonzero().flatten().tolist()
    assert having == [THE, DOG, RAN, FAR], "punctuation, rare and special types have none"
    assert "encoder.prototypes.vectors" in dict(model.named_parameters())
    run(model).sum().backward()
    assert table.vectors.grad.abs().sum() > 0
    twin = build(seed=5, prototypes="random", prototypes_per_token=K)
    twin.load_state_dict(model.state_dict())
    assert torch.equal(run(twin.eval()), run(model.eval()))


@pytest.mark.parametrize("variant", ["one-pass", "source-and-target"])
def test_a_sentence_does_not_depend_on_its_batch(variant):
    model = fill(build(prototypes=variant)).eval()
    together = run(model)
    for i, skipped in ((0, 2), (1, 0)):
        end = int((TARGET[i] != 1).sum())
        alone = run(model, SOURCE[i : i + 1, skipped:], TARGET[i : i + 1, :end])
        torch.testing.assert_close(together[i, :end], alone[0])


@pytest.mark.parametrize("variant", ["one-pass", "target-side", "source-and-target"])
def test_step_by_step_decoding_equals_one_pass(variant):
    model = build_model("proto_transformer", prototypes=variant, **SIZES)
    model = fill(model, range(4, 16)).eval()
    for (step, _), (whole, _) in step_by_step(model, {3: [2, 0, 3, 1], 5: [3, 2]}):
        torch.testing.assert_close(step[:, 0], whole[:, -1], rtol=1e-4, atol=1e-5)


def test_checkpoints_carry_the_table_and_stage_1_may_be_a_plain_transformer():
    model = fill(build()).eval()
    fresh = build(seed=5)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(run(fresh.eval()), run(model))
    plain = build("transformer", seed=6).eval()
    fresh = build(seed=5)
    fresh.load_state_dict(plain.state_dict())
    assert torch.equal(run(fresh.eval()), run(plain))


def test_a_checkpoint_with_the_sublayer_in_a_layer_norm_is_refused():
    model = build()
    state = {
        name.replace("prototype_attn", "self_attn_layer_norm.prototype_attn"): value
        for name, value in model.state_dict().items()
    }
    with pytest.raises(ValueError, match="train it again, or use revision"):
        model.load_state_dict(state)


def test_a_copy_is_independent():
    model = fill(build()).eval()
    expected = run(model)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.encoder.prototypes.vectors.zero_()
    assert torch.equal(run(twin), expected)


@pytest.mark.parametrize("variant", ["one-pass", "source-and-target"])
def test_with_prototypes_the_layers_are_still_fairseqs(variant):
    """With a sublayer that does nothing, whatever the LayerNorms have learned: stage 2 begins with
    the outputs of stage 1."""
    results = []
    for one in (build("transformer"), fill(build(prototypes=variant, prototype_identity=True))):
        torch.manual_seed(9)
        for norm in (part for part in one.modules() if isinstance(part, torch.nn.LayerNorm)):
            torch.nn.init.normal_(norm.weight, 1, 0.3)
            torch.nn.init.normal_(norm.bias, 0, 0.3)
        encoded = one.eval().encoder(SOURCE, src_lengths=None, return_all_hiddens=True)
        logits, extra = one.decoder(TARGET, encoded, alignment_layer=0, alignment_heads=1)
        logits.square().sum().backward()
        results.append((logits, extra, encoded, {n: p.grad for n, p in one.named_parameters()}))
    (expected, more, memory, gradients), (logits, extra, encoded, ours) = results
    assert torch.equal(logits, expected)
    torch.testing.assert_close((extra, encoded), (more, memory))
    torch.testing.assert_close({name: ours[name] for name in gradients}, gradients)


def test_prototypes_stand_behind_self_attention_with_the_models_dropout():
    model = fill(build(prototypes="source-and-target", dropout=0.4, attention_dropout=0.3))
    order: list[str] = []
    parts = ("self_attn", "self_attn_layer_norm", "prototype_attn", "encoder_attn", "fc1")
    for stack in (model.encoder, model.decoder):
        assert stack.prototypes.dropout.p == stack.layers[1].prototype_attn.dropout.p == 0.4
        assert stack.layers[1].prototype_attn.attention_dropout.p == 0.3
        for name in parts:
            if part := getattr(stack.layers[0], name, None):
                part.register_forward_pre_hook(lambda *_, name=name: order.append(name))
    run(model.train())
    assert order == [*(name for name in parts if name != "encoder_attn"), *parts]


def test_activation_checkpointing_recomputes_with_prototypes():
    gradients = []
    for checkpointed in (False, True):
        model = fill(build(checkpoint_activations=checkpointed, dropout=0.0)).train()
        run(model).square().sum().backward()
        gradients.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("arch", "k", "heads", "ffn"),
    [
        ("proto_transformer", 3, 8, 2048),
        ("proto_transformer_iwslt_de_en", 4, 4, 1024),
        ("proto_transformer_cognition", 3, 4, 1024),
        ("proto_transformer_wmt_en_de", 5, 8, 2048),
        ("proto_transformer_wmt_en_ro", 6, 8, 2048),
    ],
)
def test_presets_are_the_papers(arch, k, heads, ffn):
    args = configured(arch)
    assert args.prototypes_per_token == k
    assert (args.encoder_layers, args.encoder_embed_dim) == (6, 512)
    assert (args.encoder_attention_heads, args.encoder_ffn_embed_dim) == (heads, ffn)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"encoder_normalize_before": True}, "leave out --encoder-normalize-before"),
        ({"prototypes": "best"}, "--prototypes is one of one-pass"),
        ({"prototypes": "random", "prototype_min_count": 99}, "no word of the source dictionary"),
        ({"prototype_layer": "first"}, "--prototype-layer is one of last-but-one, last, not first"),
        ({"cross_self_attention": True}, "leave out --cross-self-attention"),
        (
            {"prototypes": "random", "checkpoint_activations": True},
            "leave out --checkpoint-activations",
        ),
    ],
)
def test_bad_options_are_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        build(**options)


def test_tables_know_the_dictionary_of_their_side():
    task = SimpleNamespace(source_dictionary=dictionary(4), target_dictionary=dictionary_of("a"))
    model = build_model("proto_transformer", task, prototypes="source-and-target", **SIZES)
    for side, table in model.tables().items():
        assert table.fingerprint == fingerprint(getattr(task, f"{side}_dictionary"))
