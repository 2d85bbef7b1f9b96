"""CAT's encoder with its heads: inputs, outputs, checkpoints."""

import pytest
import torch
from pretraining_batches import SIZES, make_batch, make_model, make_task

TASK = make_task()
SOURCE = make_batch(TASK)["net_input"]["src_tokens"]


@pytest.fixture
def model():
    return make_model(TASK).eval()


def test_the_second_segment_begins_after_the_first_separator(model):
    pair = torch.tensor([[0, 4, 5, 2, 6, 2, 1], [0, 4, 2, 1, 1, 1, 1], [0, 4, 2, 2, 5, 2, 1]])
    first = [[0, 0, 0, 0, 1, 1], [0, 0, 0], [0, 0, 0, 1, 1, 1]]
    for found, expected in zip(model.encoder.segments(pair).tolist(), first, strict=True):
        assert found[: len(expected)] == expected
    before = model(pair, features_only=True)[0]
    with torch.no_grad():
        model.encoder.embed_segments.weight[1] += 1
    after = model(pair, features_only=True)[0]
    assert not torch.allclose(before[0], after[0])
    assert torch.allclose(before[1, :3], after[1, :3])


def test_but_for_what_composes_the_encoder_is_berts():
    model = make_model(TASK, encoder_embed_dim=64, pooler_dropout=0.4)
    encoder, layer = model.encoder, model.encoder.layers[0]
    heads = [model.lm_head.dense, model.next_sentence_head.dense]
    embeddings = [encoder.embed_tokens, encoder.embed_positions, encoder.embed_segments]
    for part in (*heads, *embeddings, layer.self_attn.q_proj, layer.fc1, layer.fc2):
        assert part.weight.std().item() == pytest.approx(0.02, rel=0.3)
    assert all(head.bias.eq(0).all() for head in heads)
    x = torch.linspace(-2, 2, 5)
    torch.testing.assert_close(layer.activation_fn(x), torch.nn.functional.gelu(x))
    assert encoder.embed_scale == 1 and encoder.layernorm_embedding.weight.eq(1).all()
    assert model.next_sentence_head.dropout.p == 0.4


def test_the_detached_query_reaches_the_layers():
    for detached in (True, False):
        layers = make_model(TASK, detach_query=detached).encoder.layers
        assert all(layer.composition.detach_query == detached for layer in layers)


@pytest.mark.parametrize("composition", ["codebook", "none"])
def test_outputs_do_not_depend_on_the_batch(composition):
    model = make_model(TASK, composition=composition).eval()
    together, _ = model(SOURCE)
    assert together.shape == (*SOURCE.shape, len(TASK.source_dictionary))
    for row, tokens in enumerate(SOURCE):
        alone = tokens[tokens.ne(1)].unsqueeze(0)
        torch.testing.assert_close(model(alone)[0][0], together[row, : alone.size(1)])


def test_codebooks_have_the_codes_that_are_asked_for_and_one_per_sememe(model):
    sizes = [len(layer.composition.codebook) for layer in model.encoder.layers]
    assert sizes == [SIZES["codes"], 6]
    last = make_model(TASK, sememe_codes=9).encoder.layers[-1]
    assert len(last.composition.codebook) == 9


def test_the_representation_feeds_features_and_heads():
    features = {}
    for name in ("cont", "comp", "mix"):
        model = make_model(TASK, representation=name)
        model.register_classification_head("entail", num_classes=3)
        model.eval()
        features[name], extra = model(SOURCE, features_only=True)
        assert torch.equal(features[name], getattr(extra["composition"].layers[-1], name))
        logits, _ = model(SOURCE, classification_head_name="entail", features_only=True)
        assert torch.equal(logits, model.classification_heads["entail"](features[name]))
        assert logits.shape == (len(SOURCE), 3)
    assert not torch.allclose(features["cont"], features["comp"])
    assert not torch.allclose(features["mix"], features["comp"])


def test_only_masked_words_are_projected(model):
    masked = SOURCE.eq(6)
    torch.testing.assert_close(model(SOURCE, masked_tokens=masked)[0], model(SOURCE)[0][masked])


def test_a_frozen_backbone_trains_the_heads_alone():
    model = make_model(TASK, freeze_backbone=True)
    model.register_classification_head("entail", num_classes=3)
    model.train()
    model(SOURCE, classification_head_name="entail")[0].sum().backward()
    trained = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert trained == {n for n, _ in model.named_parameters() if n.startswith("classification_")}
    assert torch.equal(*(model(SOURCE, features_only=True)[0] for _ in range(2)))
    assert len(trained) == 4


def test_checkpoints_with_and_without_heads(model):
    fine_tuned = make_model(TASK)
    fine_tuned.register_classification_head("entail", num_classes=3)
    own = fine_tuned.classification_heads["entail"].out_proj.weight.clone()
    with torch.no_grad():
        model.encoder.embed_tokens.weight.fill_(0.25)
    fine_tuned.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(fine_tuned.classification_heads["entail"].out_proj.weight, own)
    assert fine_tuned.encoder.embed_tokens.weight.eq(0.25).all()

    other = make_model(TASK)
    other.register_classification_head("entail", num_classes=2)
    own = other.classification_heads["entail"].out_proj.weight.clone()
    other.load_state_dict(fine_tuned.state_dict(), strict=True)
    assert torch.equal(other.classification_heads["entail"].out_proj.weight, own)

    make_model(TASK).load_state_dict(fine_tuned.state_dict(), strict=True)
    again = make_model(TASK)
    again.register_classification_head("entail", num_classes=3)
    again.load_state_dict(fine_tuned.state_dict(), strict=True)
    state = again.classification_heads.state_dict()
    expected = fine_tuned.classification_heads.state_dict()
    assert all(torch.equal(state[name], expected[name]) for name in expected)


def test_a_checkpoint_of_other_sizes_names_the_flag(model):
    with pytest.raises(ValueError, match="with --sememe-codes 6"):
        make_model(TASK, sememe_codes=7).load_state_dict(model.state_dict(), strict=True)
    with pytest.raises(ValueError, match="with --max-positions 32"):
        make_model(TASK, max_positions=64).load_state_dict(model.state_dict(), strict=True)


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="16 is not a multiple of --encoder-attention-heads 3"):
        make_model(TASK, encoder_attention_heads=3)
    task = make_task()
    with pytest.raises(ValueError, match="--sememe-codes 5 is less than the data's 6 sememes"):
        make_model(task, sememe_codes=5)
    del task.sememes
    with pytest.raises(ValueError, match="give --sememe-codes"):
        make_model(task)
    make_model(task, composition="none")
    make_model(task, sememe_codes=6)
