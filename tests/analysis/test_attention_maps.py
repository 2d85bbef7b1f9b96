"""The recorded weights are those that the models attend with."""

import pytest
import torch
from random_batches import LENGTHS, PAD, batch, both_sides, build_model

from compgen_fairseq.analysis.attention_maps import SIDES, attention_maps, translator
from compgen_fairseq.analysis.checkpoint import Loaded

LAYERS, HEADS, DIM = 2, 4, 16
SIZES = both_sides(layers=LAYERS, attention_heads=HEADS, embed_dim=DIM, ffn_embed_dim=12)
SIZES |= {"dropout": 0.1, "criterion": ""}
CODES = {"source_codes": 5, "target_codes": 4}
MODELS = {
    "transformer": {},
    "proto_transformer": {},
    "cat_transformer": {"codes": 9},
    "sq_transformer sal": {"attention": "sal", **CODES},
    "sq_transformer sal-paper": {"attention": "sal", "sal_cross_attention": "paper", **CODES},
    "sq_transformer srl": {"attention": "srl", **CODES},
    "sq_transformer plain": {"attention": "plain", **CODES},
    "syntactic_attention": {"encoder_hidden_size": 8, "semantic_dim": 10},
}


def build(name: str):
    """A small model with random parameters, whose attention is far from even."""
    model = build_model(name.split()[0], **SIZES, **MODELS.get(name, {}))
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    if name == "proto_transformer":
        types = torch.arange(4, 12)
        for table in model.tables().values():
            table.fill(types, torch.randn(len(types), 2, DIM), torch.full((len(types),), 2))
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_weights_add_up_to_1_and_leave_padding_and_the_future_out(name):
    model, inputs = build(name), batch(LENGTHS)["net_input"]
    maps = attention_maps(model, inputs)
    source, target = inputs["src_tokens"].ne(PAD), inputs["prev_output_tokens"].ne(PAD)
    syntactic = name == "syntactic_attention"
    assert list(maps) == (["cross"] if syntactic else list(SIDES))
    queries = {"encoder": source, "decoder": target, "cross": target}
    keys = {"encoder": source, "decoder": target, "cross": source}
    for side, weights in maps.items():
        keep = keys[side]
        if syntactic:
            keep = torch.cat([torch.ones(len(keep), 1, dtype=torch.bool), keep], 1)
        shape = (1, 1) if syntactic else (LAYERS, HEADS)
        assert weights.shape == (len(source), *shape, queries[side].size(1), keep.size(1))
        rows = weights.permute(0, 3, 1, 2, 4)[queries[side]]
        torch.testing.assert_close(rows.sum(-1), torch.ones_like(rows[..., 0]))
        assert float(rows.std()) > 0.05
        hidden = ~keep[:, None].expand(-1, queries[side].size(1), -1)[queries[side]]
        assert float(rows[hidden[:, None, None].expand_as(rows)].abs().sum()) == 0
    if "decoder" in maps:
        assert float(maps["decoder"].triu(1).abs().sum()) == 0


@pytest.mark.parametrize("name", MODELS)
def test_recording_changes_nothing_and_leaves_nothing_behind(name):
    model, inputs = build(name), batch(LENGTHS)["net_input"]

    def hooks() -> list[tuple[int, int]]:
        return [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]

    before, own = model(**inputs)[0], hooks()
    first = attention_maps(model, inputs)
    assert torch.equal(model(**inputs)[0], before)
    assert hooks() == own
    assert all(getattr(module, "observer", None) is None for module in model.modules())
    again = attention_maps(model, inputs)
    assert all(torch.equal(first[side], again[side]) for side in first)


@pytest.mark.parametrize("name", MODELS)
def test_a_sentences_maps_do_not_depend_on_its_batch(name):
    model, inputs = build(name), batch(LENGTHS)["net_input"]
    together = attention_maps(model, inputs)
    source, target = inputs["src_tokens"], inputs["prev_output_tokens"]
    for i in range(len(source)):
        s, t = source[i][source[i].ne(PAD)], target[i][target[i].ne(PAD)]
        alone = {"src_tokens": s[None], "src_lengths": torch.tensor([len(s)])}
        for side, weights in attention_maps(model, alone | {"prev_output_tokens": t[None]}).items():
            ours = together[side][i]
            queries = ours[..., -len(s) :, :] if side == "encoder" else ours[..., : len(t), :]
            if side == "decoder":
                kept = queries[..., : len(t)]
            else:
                first = queries[..., : weights.size(-1) - len(s)]  # the start marker
                kept = torch.cat([first, queries[..., -len(s) :]], dim=-1)
            torch.testing.assert_close(kept, weights[0], rtol=1e-4, atol=1e-5)


def test_fairseqs_weights_are_the_softmax_of_its_products():
    model, inputs = build("transformer"), batch([(6, 3)])["net_input"]
    maps = attention_maps(model, inputs)
    x, _ = model.encoder.forward_embedding(inputs["src_tokens"])
    attention = model.encoder.layers[0].self_attn
    query, key = (
        (x @ part.weight.t() + part.bias).view(1, -1, HEADS, DIM // HEADS).transpose(1, 2)
        for part in (attention.q_proj, attention.k_proj)
    )
    expected = (query @ key.transpose(-1, -2) / (DIM // HEADS) ** 0.5).softmax(-1)
    torch.testing.assert_close(maps["encoder"][:, 0], expected)
    _, extra = model(**inputs)
    torch.testing.assert_close(maps["cross"][:, -1].mean(1), extra["attn"][0])


def test_syntactic_attentions_alignment_and_its_start_marker():
    model, inputs = build("syntactic_attention"), batch([(5, 6)])["net_input"]
    seen = {}
    hook = model.decoder.syntax.register_forward_hook(lambda *call: seen.update(weights=call[-1]))
    maps = attention_maps(model, inputs)
    hook.remove()
    torch.testing.assert_close(maps["cross"][0, 0, 0], seen["weights"][0])


def test_a_model_without_such_attention_is_refused():
    with pytest.raises(ValueError, match="LSTMModel has no attention"):
        attention_maps(build("lstm"), batch(LENGTHS)["net_input"])
    model = Loaded(build("transformer"), None, None, "a.pt")
    assert translator(model) is model
    with pytest.raises(
        ValueError, match=r"a\.pt holds a TransformerEncoderBase: name a model with"
    ):
        translator(Loaded(model.model.encoder, None, None, "a.pt"))
