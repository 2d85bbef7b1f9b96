"""Meanings without context, equal ways to decode, and no trace of padding or neighbours."""

import pytest
import torch
import torch.nn.functional as F
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from random_batches import EOS, LENGTHS, PAD, TASK, batch, configured, step_by_step, untrained

from compgen_fairseq.models.syntactic_attention import (
    SyntacticAttentionConfig,
    SyntacticAttentionModel,
)

SIZES = {"encoder_embed_dim": 6, "encoder_hidden_size": 8, "semantic_dim": 10, "dropout": 0.0}
VARIANTS = {
    "paper": {},
    "one-layer": {"encoder_layers": 1},
    "deep": {"encoder_layers": 3},
    "sequential-semantics": {"sequential_semantics": True},
    "syntax-action": {"syntax_action": True},
    "semantic-mlp": {"semantic_mlp": True},
    "semantic-relu": {"semantic_mlp": True, "semantic_relu": True},
    "own": {"marker_meanings": "own"},
    "classes": {
        "syntactic_classes": "substitution",
        "class_meanings": "own",
        "marker_meanings": "own",
    },
    "scaled": {"scaled_attention": True},
    "all": {"sequential_semantics": True, "syntax_action": True, "semantic_mlp": True},
}
#: Of source types 6 and 9, which exchange target types 5 and 8.
CLASSES = (
    torch.arange(len(TASK.source_dictionary)).index_fill(0, torch.tensor([9]), 6),
    torch.arange(len(TASK.target_dictionary)).index_fill(0, torch.tensor([8]), 5),
    torch.full((len(TASK.target_dictionary),), -1).index_fill(0, torch.tensor([5, 8]), 6),
)
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def build(variant="paper", seed=1, **changed) -> SyntacticAttentionModel:
    """A small model whose attention is far from even."""
    torch.manual_seed(seed)
    cfg = SyntacticAttentionConfig(**{**SIZES, **VARIANTS[variant], **changed})
    model = SyntacticAttentionModel.build_model(cfg, TASK)
    for parameter in model.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    if variant == "classes":
        model.assign_classes(*CLASSES)
    return model.eval()


def test_the_scale_is_an_option():
    width = 2 * SIZES["encoder_hidden_size"]
    assert build().decoder.syntax.scale == 1
    assert build("scaled").decoder.syntax.scale == pytest.approx(width**-0.5)


def meanings(model, *sentence: int) -> torch.Tensor:
    """``m_j`` of a sentence, markers included."""
    return model.encoder(torch.tensor([[*sentence, EOS]]))["meanings"][0]


def test_words_of_a_class_have_one_syntax_and_their_own_meanings():
    model = build(syntactic_classes="substitution")
    assert model.missing_classes() == ("substitution", None)
    assert model(**batch(LENGTHS)["net_input"])[0].isfinite().all()  # a validation may come first
    classes = torch.arange(len(TASK.source_dictionary))
    classes[9] = 7
    types = torch.arange(len(TASK.target_dictionary))
    model.assign_classes(classes, types, torch.full_like(types, -1))
    assert model.missing_classes() is None
    same, other = (
        torch.tensor([[5, word, 6, EOS] for word in words]) for words in ((7, 9), (7, 8))
    )
    assert torch.equal(*model.encoder(same)["roles"])
    assert not torch.allclose(*model.encoder(other)["roles"])
    assert not torch.allclose(*model.encoder(same)["meanings"])
    state = model.state_dict()
    again = build(syntactic_classes="substitution", seed=2)
    again.load_state_dict(state)
    assert again.missing_classes() is None
    assert torch.equal(again.encoder(same)["roles"], model.encoder(same)["roles"])


def said(model, *sentence: int) -> torch.Tensor:
    """What attention to one place alone would write, ``(places, types)``, markers included."""
    encoded = model.encoder(torch.tensor([[*sentence, EOS]]))
    return model.decoder.output_layer(model.decoder.say(encoded)[0])


def test_training_pulls_attention_to_each_place_of_a_word_alike():
    """With one step the gradient of a place's state is that of its score, times the query. Where
    class meanings are free, the place that is looked at most is pulled most."""
    for variant, alike in (("classes", True), ("own", False)):
        model = build(variant).train()
        encoded = model.encoder(torch.tensor([[6, 5, 9, 6, EOS]]))
        roles = encoded["roles"] = encoded["roles"].detach().requires_grad_()
        logits, _ = model.decoder(torch.tensor([[EOS]]), encoded)
        logits.log_softmax(-1)[0, 0, 5].backward()
        six, five, nine, again = roles.grad[0, 1:5]
        assert torch.allclose(six, again) == alike and six.abs().max() > 0
        assert not torch.allclose(six, nine) and not torch.allclose(six, five)


def test_markers_mean_the_end_and_words_all_else():
    """Beside the same weights with free markers."""
    free, model = build(), build("own")
    written, meant = (said(one, 5, 6, 7) for one in (free, model))
    bias = model.decoder.output.bias
    words = torch.arange(len(bias)) != EOS
    torch.testing.assert_close(meant[1:-1, words], written[1:-1, words])
    torch.testing.assert_close(meant[1:-1, EOS], bias[EOS].expand(3))
    torch.testing.assert_close(meant[[0, -1], EOS], written[[0, -1], EOS])
    torch.testing.assert_close(meant[[0, -1]][:, words], bias[words].expand(2, -1))


def test_a_class_alone_means_the_words_that_it_exchanges():
    """6 and 9 exchange 5 and 8: no other word or marker says anything of these."""
    free, model = build("own"), build("classes")
    written, meant = said(free, 7, 6, 9), said(model, 7, 6, 9)
    pair, bias = [5, 8], model.decoder.output.bias
    rest = [type_ for type_ in range(len(bias)) if type_ not in pair]
    torch.testing.assert_close(meant[:, rest], written[:, rest])
    assert meant[[0, 1, 4]][:, pair].eq(0).all()
    torch.testing.assert_close(meant[2:4, pair], written[2:4, pair] - bias[pair])


@pytest.mark.parametrize("key", ["decoder.output.0.weight", "decoder.classes"])
def test_an_earlier_checkpoint_is_refused(key):
    state = build().state_dict()
    state[key] = state["decoder.output.weight"]
    with pytest.raises(ValueError, match=r"of an earlier Syntactic Attention, .*: train it again"):
        build().load_state_dict(state)


def test_another_task_cannot_hand_in_classes():
    model = build(syntactic_classes="substitution").train()
    with pytest.raises(RuntimeError, match="--syntactic-classes substitution: the classes come"):
        model(**batch(LENGTHS)["net_input"])
    assert build().train().missing_classes() is None


@every_variant
def test_meanings_do_not_depend_on_the_sentence_unless_they_are_sequential(variant):
    model = build(variant)
    one, other = meanings(model, 5, 6, 7), meanings(model, 9, 6)
    sequential = model.encoder.sequence is not None
    assert sequential == (variant in ("sequential-semantics", "all"))
    assert torch.equal(one[2], other[2]) != sequential
    assert one.shape == (5, 10)


def test_output_of_a_toy_by_hand():
    """Equations 1 and 3: where attention is one-hot, the output is the attended word's alone."""
    model = build()
    sentence = torch.tensor([[5, 6, 7, EOS]])
    encoded = model.encoder(sentence)
    steps = torch.tensor([[2, 1, 3, 4, 0]])  # positions in <s> 5 6 7 </s>
    chosen = torch.eye(5)[steps]
    model.decoder.syntax.forward = lambda *_: chosen
    logits, extra = model.decoder(torch.tensor([[EOS, 7, 7, 7, 7]]), encoder_out=encoded)
    words = torch.tensor([6, 5, 7, EOS, TASK.source_dictionary.bos()])
    layer = model.decoder.output
    expected = model.encoder.semantics.weight[words] @ layer.weight.t() + layer.bias
    torch.testing.assert_close(logits[0], expected)
    assert extra["attn"][0][0].argmax(-1)[:4].tolist() == [1, 0, 2, 3]
    assert extra["attn"][0][0, 4].eq(0).all()  # the start marker is none of fairseq's tokens


@pytest.mark.parametrize("left_pad_target", [False, True])
@pytest.mark.parametrize("left_pad_source", [True, False])
@every_variant
def test_a_sentence_does_not_see_its_neighbours(variant, left_pad_source, left_pad_target):
    model = build(variant)
    inputs = batch(LENGTHS, left_pad_source, left_pad_target)["net_input"]
    logits, extra = model(**inputs)
    for row in range(len(LENGTHS)):
        source, previous = inputs["src_tokens"][row], inputs["prev_output_tokens"][row]
        kept, words = previous.ne(PAD), source.ne(PAD)
        alone, own = model(source[words][None], None, previous[kept][None])
        torch.testing.assert_close(logits[row, kept], alone[0])
        attention = extra["attn"][0][row, kept]
        torch.testing.assert_close(attention[:, words], own["attn"][0][0])
        assert attention[:, ~words].eq(0).all()


@every_variant
def test_incremental_decoding_equals_full_decoding(variant):
    """With beams that trade places, sentences that trade places, and some that leave."""
    orders = {2: [1, 0, 3, 3, 4, 5], 3: [4, 5, 0, 1, 2, 3], 4: [2, 3, 5, 4], 6: [3, 2]}
    for (logits, extra), (full, all_extra) in step_by_step(build(variant), orders):
        assert logits.shape == (len(full), 1, len(TASK.target_dictionary))
        torch.testing.assert_close(logits[:, 0], full[:, -1])
        torch.testing.assert_close(extra["attn"][0][:, 0], all_extra["attn"][0][:, -1])
    assert len(full) == 2


def test_a_step_does_only_its_own_work(monkeypatch):
    model = build()
    encoded = model.encoder(torch.tensor([[5, 6, EOS]]))
    calls, step = [], model.decoder.syntax.step
    monkeypatch.setattr(model.decoder.syntax, "step", lambda *args: calls.append(1) or step(*args))
    state: dict = {}
    for length in (1, 2, 3):
        prefix = torch.full((1, length), EOS)
        model.decoder(prefix, encoder_out=encoded, incremental_state=state)
        assert len(calls) == length


@every_variant
def test_greedy_search_is_the_argmax_of_one_pass(variant):
    """Which has ends for the previous words: these are not read."""
    model, sample = build(variant), batch(LENGTHS)
    source, ends = sample["net_input"]["src_tokens"], set()
    search = SequenceGenerator([model], TASK.target_dictionary, beam_size=1, max_len_b=9)
    for _ in range(4):
        model.decoder.output.bias.data[EOS] += 1.0  # sentences end sooner and sooner
        scores = model(source, None, torch.full((4, 10), EOS))[0].log_softmax(-1)
        allowed = scores.clone()
        allowed[..., PAD] = allowed[:, 0, EOS] = -torch.inf  # as fairseq has it
        best = allowed.argmax(-1)
        best[:, -1] = EOS
        for row, ((found,), steps) in enumerate(
            zip(search.generate([model], sample), best, strict=True)
        ):
            length = steps.eq(EOS).int().argmax().item() + 1
            ends.add(length)
            assert torch.equal(found["tokens"], steps[:length])
            expected = scores[row, torch.arange(length), steps[:length]]
            torch.testing.assert_close(found["positional_scores"], expected, atol=1e-5, rtol=1e-5)
    assert len(ends) > 1, "all sentences ended together"


def test_alignment_is_the_attention():
    model, sample = build(), batch(LENGTHS)
    search = SequenceGeneratorWithAlignment(
        [model], TASK.target_dictionary, beam_size=2, max_len_b=6, print_alignment="soft"
    )
    for row, beam in enumerate(search.generate([model], sample)):
        source = sample["net_input"]["src_tokens"][row]
        source = source[source.ne(PAD)][None]
        length = len(beam[0]["tokens"])
        attention = model(source, None, torch.full((1, length), EOS))[1]["attn"][0][0]
        found = torch.tensor([[float(x) for x in step] for step in beam[0]["alignment"]])
        torch.testing.assert_close(found, attention, atol=1e-4, rtol=1e-4)


@every_variant
def test_gradients_reach_every_parameter(variant):
    model, sample = build(variant, dropout=0.1).train(), batch(LENGTHS)
    logits, _ = model(**sample["net_input"])
    keep = sample["target"].ne(PAD)
    F.cross_entropy(logits[keep], sample["target"][keep]).backward()
    assert untrained(model) == set()


def test_dropout_is_on_both_streams_and_only_in_training():
    for training in (True, False):
        model = build(dropout=0.5).train(training)
        one, other = (model.encoder(torch.tensor([[5, 6, 7, EOS]])) for _ in range(2))
        assert torch.equal(one["meanings"], other["meanings"]) != training
        assert torch.equal(one["roles"], other["roles"]) != training


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@every_variant
def test_low_precision(variant, dtype):
    model, sample = build(variant), batch(LENGTHS)
    full, _ = model(**sample["net_input"])
    low, extra = model.to(dtype)(**sample["net_input"])
    assert low.dtype == dtype and extra["attn"][0].isfinite().all()
    keep = sample["target"].ne(PAD)
    assert (low.float() - full)[keep].abs().mean() < 0.1 * full[keep].std()


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"encoder_hidden_size": 7}, "--encoder-hidden-size must be even"),
        ({"sequential_semantics": True, "semantic_dim": 9}, "--semantic-dim must be even"),
        ({"semantic_relu": True}, "--semantic-relu goes with --semantic-mlp"),
        ({"marker_meanings": "own", "syntax_action": True}, "goes with the paper's output layer"),
        ({"marker_meanings": "own", "semantic_mlp": True}, "leave out --syntax-action and"),
        (
            {**VARIANTS["classes"], "marker_meanings": "free", "semantic_mlp": True},
            "or take --class-meanings free",
        ),
        ({"class_meanings": "own"}, "goes with --syntactic-classes substitution"),
    ],
)
def test_impossible_options(changed, message):
    with pytest.raises(ValueError, match=message):
        build(**changed)


def test_the_papers_best_sizes():
    model = SyntacticAttentionModel.build_model(configured("syntactic_attention_scan"), TASK)
    assert model.encoder.dropout == 0.5
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert shapes["encoder.embedding.weight"] == (20, 100)
    assert shapes["encoder.syntax.first.forwards.weight_hh_l0"] == (4 * 100, 100)
    assert shapes["encoder.syntax.layers.0.backwards.weight_ih_l0"] == (4 * 200, 200)
    assert shapes["decoder.syntax.layers.0.weight_hh"] == (4 * 400, 400)
    assert shapes["decoder.output.weight"] == (16, 120)
