"""The codes of SQ-Transformer: what predicts them, what trains them, where they come from."""

import pytest
import torch
import torch.nn.functional as F
from random_batches import EOS, LENGTHS, PAD, batch, build_model
from sq_models import build

from compgen_fairseq.modules.vector_quantizer import VectorQuantizer


@pytest.mark.parametrize("left_pad_target", [False, True])
def test_the_prior_predicts_the_code_of_the_target_token(left_pad_target):
    model = build().train()
    model.decoder.left_pad = left_pad_target
    sample = batch(LENGTHS, left_pad_target=left_pad_target)
    target, stack = sample["target"], model.decoder.stack
    side = model(**sample["net_input"], structural=True)[1]["structural"].target
    expected = stack.quantizer.quantize(stack.embed(target), target)
    kept = target.ne(PAD)
    assert torch.equal(side.keep, kept) and torch.equal(side.next_keep, kept)
    assert torch.equal(side.predicted, expected.logits[kept])
    assert torch.equal(side.next_codes[kept], expected.codes[kept])
    assert len(side.prior) == kept.sum()


@pytest.mark.parametrize("left_pad_source", [True, False])
def test_sal_predicts_a_masked_source_code_per_sentence(left_pad_source):
    model = build().train()
    tokens = batch(LENGTHS, left_pad_source)["net_input"]["src_tokens"]
    side = model.encoder(tokens, structural=True)["side"]
    for row in range(len(LENGTHS)):
        codes = side.codes[row, tokens[row].ne(PAD)]
        assert torch.equal(side.next_codes[row, side.next_keep[row]], codes[1:])
    assert side.prior.shape == (len(LENGTHS), 6)  # five codes and [MASK]
    longer = torch.tensor([source > 1 for source, _ in LENGTHS])  # than a word
    assert torch.equal(side.marginal.sum(1), longer.long())
    assert torch.equal(side.posterior[side.marginal], side.predicted[longer])
    assert not (side.marginal & (tokens.eq(PAD) | tokens.eq(EOS))).any()


def test_one_word_sentences_say_nothing_about_the_entropy_of_codes():
    """Whatever else is in their batch; p(z|context) predicts their codes like others."""
    model = build().train()
    for lengths, counted in (([(1, 2), (1, 1)], [0, 0]), ([(2, 2), (1, 1)], [1, 0])):
        tokens = batch(lengths)["net_input"]["src_tokens"]
        side = model.encoder(F.pad(tokens, (3, 0), value=PAD), structural=True)["side"]
        assert side.marginal.sum(1).tolist() == counted and len(side.prior) == 2


@pytest.mark.parametrize("left_pad_source", [True, False])
def test_srl_predicts_the_next_source_code(left_pad_source):
    """From the codes before it, so not the first one, whatever the padding."""
    model = build("srl").train()
    tokens = batch(LENGTHS, left_pad_source)["net_input"]["src_tokens"]
    side = model.encoder(tokens, structural=True)["side"]
    start = 0
    for row in range(len(LENGTHS)):
        words = tokens[row][tokens[row].ne(PAD)]
        single = model.encoder(words[None], structural=True)["side"]
        assert len(single.prior) == len(words) - 1
        end = start + len(single.prior)
        torch.testing.assert_close(side.prior[start:end], single.prior, atol=1e-5, rtol=1e-5)
        expected = single.posterior[0, 1:]
        torch.testing.assert_close(side.predicted[start:end], expected, atol=1e-5, rtol=1e-5)
        start = end
    assert start == len(side.prior)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_predictors_are_trained_on_a_share_of_the_sentences(side):
    """What they say of a sentence does not depend on the others; in evaluation all are there."""
    model = build("srl", predictor_share=0.4, dropout=0.0)
    net_input, drawn = batch(LENGTHS)["net_input"], []
    predictor = getattr(model, side).stack.predictor
    predictor.register_forward_pre_hook(lambda _, args: drawn.append(len(args[0])))

    def rows() -> torch.Tensor:
        structural = model(**net_input, structural=True)[1]["structural"]
        outputs = structural.source if side == "encoder" else structural.target
        return torch.cat([outputs.prior, outputs.predicted], dim=1)

    every, seen = rows(), set()
    model.train()
    for _ in range(20):
        some = rows()
        same = torch.cdist(some, every).argmin(1)
        torch.testing.assert_close(some, every[same], atol=1e-4, rtol=1e-4)
        assert len(set(same.tolist())) == len(some)
        seen.update(same.tolist())
    assert seen == set(range(len(every)))
    assert drawn == [4] + [2] * 20  # 0.4 of 4, rounded up


@pytest.mark.parametrize("mmi", ["brown", "tokens"])
def test_the_prior_reads_codes_or_words(mmi):
    model = build("srl", mmi=mmi).train()
    for stack, seen in ((model.encoder.stack, []), (model.decoder.stack, [])):
        stack.predictor.register_forward_pre_hook(lambda _, args, seen=seen: seen.append(args))
        stack.predictor.seen = seen
    outputs = model(**batch(LENGTHS)["net_input"], structural=True)[1]["structural"]
    for stack, side in (
        (model.encoder.stack, outputs.source),
        (model.decoder.stack, outputs.target),
    ):
        codes = F.embedding(side.codes, side.codebook)
        read = stack.predictor.seen[0][0]
        assert torch.equal(read, codes if mmi == "brown" else side.embeddings)
    assert torch.equal(model.decoder.stack.predictor.seen[0][4], outputs.source.layers[-1][1])


def test_the_source_embeddings_are_dropped():
    model = build(dropout=0.5).train()
    words = model.encoder(batch(LENGTHS)["net_input"]["src_tokens"])["words"]
    assert words.eq(0).float().mean() > 0.3


def test_the_decoders_codes_have_draws_of_dropout_of_their_own():
    """Words, codes of the code stream and codes to be predicted, as in the published runs."""
    model = build(dropout=0.5).train()
    drawn, drop = [], model.decoder.stack.drop
    model.decoder.stack.drop = lambda x: drawn.append(drop(x)) or drawn[-1]
    side = model(**batch(LENGTHS)["net_input"], structural=True)[1]["structural"].target
    assert len(drawn) == 3 and torch.equal(side.embeddings, drawn[2])
    assert not torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[1], drawn[2])


@pytest.mark.parametrize("variant", ["sal-paper", "srl"])
def test_the_code_stream_trains_the_embeddings_or_the_codes(variant):
    model = build(variant)
    model.encoder(batch(LENGTHS)["net_input"]["src_tokens"], structural=True)["memory"][
        0
    ].square().mean().backward()
    stack = model.encoder.stack
    trained = stack.quantizer if variant == "srl" else stack.embedding
    other = stack.embedding if variant == "srl" else stack.quantizer
    assert trained.weight.grad.abs().sum() > 0
    assert other.weight.grad is None or other.weight.grad.eq(0).all()


@pytest.mark.parametrize("kind", ["brown", "substitution"])
def test_classes_are_handed_in(kind):
    model = build(code_classes=kind).train()
    inputs = batch(LENGTHS)["net_input"]
    with pytest.raises(RuntimeError, match=f"--code-classes {kind}"):
        model(**inputs)
    assert model.missing_classes() == (kind, (5, 4))
    source, target = (torch.arange(n) % k for n, k in ((20, 5), (16, 4)))
    model.assign_classes(source, target)
    assert model.missing_classes() is None
    outputs = model(**inputs, structural=True)[1]["structural"]
    assert torch.equal(outputs.source.codes, source[inputs["src_tokens"]])
    assert torch.equal(outputs.target.codes, target[inputs["prev_output_tokens"]])
    assert outputs.source.prior is None and outputs.target.prior is None
    copy = build(code_classes=kind).train()
    copy.load_state_dict(model.state_dict())
    assert copy.missing_classes() is None


def test_what_tells_exchanged_words_apart_sees_codes_alone():
    """Both sentences have the same codes; their words' own embeddings are handed on apart. (In the
    published cross-attention the target's code stream reads the source's words.)"""
    model, seen = build("meanings", sal_cross_attention="paper"), []
    model.decoder.meanings.register_forward_pre_hook(lambda _, args: seen.extend(args))
    source, previous = torch.tensor([[6, 7, EOS], [11, 12, EOS]]), torch.tensor(2 * [[EOS, 5]])
    model(source, torch.tensor([3, 3]), previous)
    _, _, states, memory, _, words, tokens = seen
    assert torch.equal(states[0], states[1]) and torch.equal(memory[0], memory[1])
    assert torch.equal(words, model.encoder.stack.embed(source)) and torch.equal(tokens, source)
    assert not torch.equal(words[0], words[1])


def test_it_starts_as_the_published_runs():
    model = build_model("sq_transformer_scan", encoder_layers=1, decoder_layers=1)
    quantizer = model.encoder.stack.quantizer
    torch.testing.assert_close(quantizer.weight.norm(dim=-1), torch.ones(len(quantizer.weight)))
    attention = model.encoder.stack.layers[0].self_attn
    for part in (attention.relative.keys, attention.relative.values):
        assert part.std().item() == pytest.approx(1, rel=0.1)
    for part in (*attention.qk_proj.weight.chunk(2), attention.v_proj.weight):
        # Xavier's, with a gain of the root of 1/2
        assert part.std().item() == pytest.approx((2 * 256) ** -0.5, rel=0.05)
    assert attention.out_proj.bias.eq(0).all()


def test_padding_moves_no_codebook(monkeypatch):
    model, seen = build().train(), []
    outputs = model(**batch(LENGTHS)["net_input"], structural=True)[1]["structural"]
    monkeypatch.setattr(VectorQuantizer, "update_ema", lambda self, *args: seen.append(args[-1]))
    model.update_codebooks(outputs)
    for kept, side in zip(seen, (outputs.source, outputs.target), strict=True):
        assert torch.equal(kept, side.keep) and not kept.all()


def test_validation_masks_the_same_words_each_time():
    tokens, model = batch(LENGTHS)["net_input"]["src_tokens"], build()
    masked = [model.encoder(tokens, structural=True)["side"].marginal for _ in range(9)]
    assert all(torch.equal(one, masked[0]) for one in masked)
