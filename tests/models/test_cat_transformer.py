"""The plain Transformer with CAT layers in the encoder."""

import pytest
import torch
from fairseq import models
from omegaconf import OmegaConf
from random_batches import LENGTHS, PAD, TASK, batch, both_sides, build_model, step_by_step

from compgen_fairseq.models.cat_transformer import REPRESENTATIONS

SIZES = both_sides(layers=2, attention_heads=2) | {"encoder_embed_dim": 16}


def build(arch: str = "cat_transformer", **options):
    return build_model(arch, **{**SIZES, "codes": 9, **options})


def test_the_detached_query_reaches_the_layers():
    for detached in (True, False):
        layers = build(detach_query=detached).encoder.layers
        assert all(layer.composition.detach_query == detached for layer in layers)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_a_sentence_does_not_depend_on_its_batch(representation):
    model = build(representation=representation).eval()
    sample = batch(LENGTHS)
    together, extra = model(**sample["net_input"])
    for i, tokens in enumerate(sample["net_input"]["src_tokens"]):
        prev = sample["net_input"]["prev_output_tokens"][i]
        prev, kept = prev[prev.ne(PAD)].unsqueeze(0), tokens.ne(PAD)
        alone, own = model(tokens[kept].unsqueeze(0), kept.sum().view(1), prev)
        torch.testing.assert_close(together[i, : prev.size(1)], alone[0], rtol=1e-4, atol=1e-5)
        for layer, whole in zip(
            own["composition"].layers, extra["composition"].layers, strict=True
        ):
            for name, states in vars(layer).items():
                padded = getattr(whole, name)[i, kept]
                torch.testing.assert_close(padded, states[0], rtol=1e-4, atol=1e-5)


def test_the_decoder_reads_the_representation_asked_for():
    tokens = batch(LENGTHS)["net_input"]["src_tokens"]
    found = []
    for name in REPRESENTATIONS:
        model = build(representation=name).eval()
        out = model.encoder(tokens)
        states = out["encoder_out"][0].transpose(0, 1)
        torch.testing.assert_close(states, getattr(out["composition"].layers[-1], name))
        found.append(states)
    assert not any(torch.allclose(found[i], found[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert torch.equal(out["composition"].keep, tokens.ne(PAD))


def test_step_by_step_decoding_equals_one_pass():
    for (logits, _), (full, _) in step_by_step(build().eval(), {3: [2, 0, 3, 1], 5: [3, 2]}):
        torch.testing.assert_close(logits[:, 0], full[:, -1], rtol=1e-4, atol=1e-5)


def test_the_enhancement_has_the_models_dropout():
    model = build(dropout=0.4)
    assert {layer.enhancement.dropout_module.p for layer in model.encoder.layers} == {0.4}


def test_what_is_added_to_the_transformer():
    archs = ("cat_transformer", "transformer")
    ours, theirs = (set(dict(build(arch).named_parameters())) for arch in archs)
    assert theirs < ours
    assert {".".join(name.split(".")[3:5]) for name in ours - theirs} == {
        *("composition.codebook", "composition.query_proj", "composition.key_proj"),
        *("composition.value_proj", "enhancement.qkv_proj", "enhancement.out_proj"),
        "enhancement.layer_norm",
    }


def test_options_out_of_a_yaml_file_count():
    options = {"_name": "cat_transformer_scan", **SIZES, "representation": "cont"}
    own = models.build_model(OmegaConf.create(options), TASK).encoder.composition
    assert (own.codes, own.representation) == (32, "cont")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"representation": "all"}, "--representation is one of cont, comp, mix, not all"),
        ({"encoder_normalize_before": True}, "can't take --encoder-normalize-before"),
        ({"encoder_layerdrop": 0.1}, "can't take --encoder-layerdrop"),
        ({"checkpoint_activations": True}, "can't take --checkpoint-activations"),
    ],
)
def test_errors_name_the_flag(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    model, sample = build().eval(), batch(LENGTHS)["net_input"]
    expected, _ = model(**sample)
    found, extra = model.to(dtype)(**sample)
    assert {
        part.dtype for layer in extra["composition"].layers for part in vars(layer).values()
    } == {dtype}
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.1)
    found.float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
