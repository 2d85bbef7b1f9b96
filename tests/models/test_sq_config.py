"""What goes together, what follows from it, and the papers' sizes."""

import pickle
from types import SimpleNamespace

import pytest
import torch
from fairseq import options
from random_batches import LENGTHS, TASK, batch, configured, dictionary
from sq_models import VARIANTS, build

from compgen_fairseq.models.sq_config import PRESETS, SQTransformerConfig
from compgen_fairseq.models.sq_transformer import SQTransformerModel


@pytest.mark.parametrize(
    "chosen, message",
    [
        ({"attention": "sal", "quantizer": "none"}, "--attention sal needs codes"),
        ({"attention": "srl", "quantizer": "none"}, "--attention srl needs codes"),
        ({"quantizer": "sovq", "mmi": "none"}, "--quantizer sovq needs an MMI term"),
        ({"quantizer": "vq", "mmi": "brown"}, "--mmi brown needs --quantizer sovq, not vq"),
        ({"attention": "plain", "mmi": "tokens"}, "--mmi tokens needs --quantizer sovq, not none"),
        ({"code_classes": "brown", "mmi": "brown"}, "--code-classes brown has no MMI terms"),
        ({"attention": "plain", "code_classes": "brown"}, "--code-classes brown needs codes"),
        ({"attention": "sal", "class_meanings": "own"}, "--class-meanings own goes with"),
        ({**VARIANTS["meanings"], "attention": "srl"}, "--class-meanings own goes with"),
    ],
)
def test_impossible_combinations_are_refused(chosen, message):
    with pytest.raises(ValueError, match=message):
        build(**{"variant": "none", **chosen})


@pytest.mark.parametrize(
    "chosen, resolved",
    [
        ({"attention": "sal"}, ("sovq", "brown", 0.999, True)),
        ({"attention": "srl"}, ("sovq", "brown", 1.0, False)),
        ({"attention": "plain"}, ("none", "none", None, None)),
        ({"attention": "sal", "quantizer": "vq"}, ("vq", "none", 0.999, True)),
        ({"attention": "plain", "quantizer": "sovq"}, ("sovq", "brown", 1.0, False)),
        ({"attention": "sal", "mmi": "tokens"}, ("sovq", "tokens", 0.999, True)),
        ({"attention": "sal", "code_ema_decay": 0.9}, ("sovq", "brown", 0.9, True)),
        ({"attention": "srl", "code_classes": "brown"}, ("sovq", "none", 1.0, False)),
    ],
)
def test_what_follows_from_the_attention(chosen, resolved):
    model = build("none", **chosen)
    quantizer = model.encoder.stack.quantizer
    found = [None, None]
    if quantizer is not None:
        found = [quantizer.ema_decay, quantizer.straight_through]
    assert (model.cfg.quantizer, model.cfg.mmi, *found) == resolved


SEMANTIC_PARSING = (3, 256, 512, 4)
TRANSLATION = (6, 512, 1024, 8)


@pytest.mark.parametrize(
    "arch, sizes, predictors, codes, attention",
    [
        ("sq_transformer_scan", SEMANTIC_PARSING, (3, 2), (6, 4), "sal"),
        ("sq_transformer_cogs", SEMANTIC_PARSING, (3, 2), (32, 16), "srl"),
        ("sq_transformer", TRANSLATION, (3, 6), (64, 32), "srl"),
        ("sq_transformer_cognition", TRANSLATION, (3, 6), (64, 32), "srl"),
        ("sq_transformer_iwslt_de_en", (6, 512, 1024, 4), (3, 6), (16, 16), "srl"),
        ("sq_transformer_wmt_en_de", TRANSLATION, (3, 6), (16, 16), "srl"),
        ("sq_transformer_wmt_en_fr", TRANSLATION, (3, 6), (16, 16), "srl"),
    ],
)
def test_presets_have_the_papers_sizes(arch, sizes, predictors, codes, attention):
    args = configured(arch)
    with torch.device("meta"):
        model = SQTransformerModel.build_model(args, TASK)
    layers, dim, ffn, heads = sizes
    stacks = model.encoder.stack, model.decoder.stack
    for stack, predictor_layers, num_codes in zip(stacks, predictors, codes, strict=True):
        assert len(stack.layers) == layers
        assert stack.embedding.weight.size(1) == dim
        for layer in stack.layers:
            assert layer.ffn.widths == [ffn, ffn]
            assert layer.self_attn.heads == heads
            assert layer.self_attn.relative.max_distance == 20
        assert stack.quantizer.codebook().shape == (num_codes, dim)
        assert len(stack.predictor.layers) == predictor_layers
    assert model.cfg.attention == attention
    assert model.cfg.loss_recipe == {SEMANTIC_PARSING: arch[15:]}.get(sizes, "cognition")
    assert model.decoder.output.weight is model.decoder.stack.embedding.weight


def test_every_preset_is_tested():
    (mark,) = test_presets_have_the_papers_sizes.pytestmark
    assert {case[0] for case in mark.args[1]} - {"sq_transformer"} == PRESETS.keys()


def test_sharing_embeddings():
    shared = SimpleNamespace(source_dictionary=dictionary(9), target_dictionary=dictionary(9))
    model = build(task=shared, share_all_embeddings=True)
    assert model.encoder.stack.embedding is model.decoder.stack.embedding
    with pytest.raises(ValueError, match="--joined-dictionary"):
        build(share_all_embeddings=True)


def test_options_reach_the_modules():
    assert build(posterior="cosine").encoder.stack.quantizer.similarity == "cosine"
    assert build().encoder.stack.quantizer.similarity == "distance"
    for left_pad in (True, False):
        task = SimpleNamespace(**vars(TASK), cfg=SimpleNamespace(left_pad_target=left_pad))
        assert build(task=task).decoder.left_pad == left_pad
    model = build(dropout=0.1, attention_dropout=0.2, activation_dropout=0.3)
    for stack in (model.encoder.stack, model.decoder.stack):
        for layer in stack.layers:
            assert layer.dropout == layer.self_attn.relative.dropout == layer.ffn.dropout == 0.1
            assert layer.self_attn.dropout == 0.2 and layer.ffn.activation_dropout == 0.3
        assert {layer.dropout for layer in stack.predictor.layers} == {0.1}
    assert {layer.cross_attn.dropout for layer in model.decoder.stack.layers} == {0.2}


def test_a_model_of_fairseqs_choices_is_pickled_whole():
    choices = SQTransformerConfig.__dataclass_fields__["attention"].type
    model = pickle.loads(pickle.dumps(build(attention=choices("sal"))))
    assert model.cfg.attention == "sal"


def test_a_checkpoint_from_before_the_gates_is_refused():
    model = build()
    state = {**model.state_dict(), "encoder.stack.predictor.mask_code": torch.zeros(1)}
    with pytest.raises(ValueError, match="train it again"):
        model.load_state_dict(state)


def test_the_flag_that_ties_embeddings_does_not_untie_them():
    words = "data --arch sq_transformer_scan --share-decoder-input-output-embed".split()
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    model = SQTransformerModel.build_model(args, TASK)
    assert model.decoder.output.weight is model.decoder.stack.embedding.weight


def test_the_warning_about_another_criterion_comes_once(caplog):
    inputs = batch(LENGTHS)["net_input"]
    for variant, expected in (("sal", 1), ("plain", 0)):
        caplog.clear()
        model = build(variant).train()
        for _ in range(3):
            model(**inputs)
        assert caplog.text.count("none of the structural terms") == expected
