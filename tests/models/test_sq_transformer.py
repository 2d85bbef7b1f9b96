"""Systematic attention, equal ways to decode, and no trace of padding or neighbours.

The codes: test_sq_codes.py.
"""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from fairseq.data.data_utils import collate_tokens
from fairseq.sequence_generator import SequenceGenerator
from random_batches import EOS, LENGTHS, PAD, TASK, batch, step_by_step
from sq_models import build, every_variant

from compgen_fairseq.modules import packing
from compgen_fairseq.modules.structural_outputs import SideOutputs
from compgen_fairseq.modules.vector_quantizer import VectorQuantizer


def alone(sample: dict, row: int) -> dict[str, torch.Tensor]:
    """The input of one sentence of a batch, without its padding."""
    inputs = sample["net_input"]
    source, previous = inputs["src_tokens"][row], inputs["prev_output_tokens"][row]
    return {
        "src_tokens": source[source.ne(PAD)][None],
        "src_lengths": None,
        "prev_output_tokens": previous[previous.ne(PAD)][None],
    }


# --- systematic attention ---


def attention_of(model, *sentences) -> list[tuple]:
    """The encoder's attention weights, layer by layer, and its output, for each sentence."""
    found = []
    for layer in model.encoder.stack.layers:
        layer.self_attn.observer = lambda weights: found[-1][0].append(weights)
    for sentence in sentences:
        found.append(([],))
        found[-1] += (model.encoder(torch.tensor([[*sentence, EOS]]))["memory"],)
    return found


@pytest.mark.parametrize("variant", ["sal-paper", "plain"])
def test_sentences_of_the_same_codes_are_encoded_with_the_same_attention(variant):
    model = build(variant, quantizer="vq")
    stack = model.encoder.stack
    codes = torch.arange(len(TASK.source_dictionary)) % 5
    near = stack.quantizer.codebook()[codes] + 0.02 * torch.randn(len(codes), 16)
    stack.embedding.weight.data.copy_(near / stack.scale)
    assert torch.equal(stack.type_codes(), codes)
    (one, memory), (two, other), (different, _) = attention_of(
        model, [5, 6, 7, 9, 10], [10, 11, 12, 14, 15], [6, 6, 7, 9, 10]
    )
    same = [torch.equal(a, b) for a, b in zip(one, two, strict=True)]
    assert same == [variant == "sal-paper"] * 2
    assert not any(torch.equal(a, b) for a, b in zip(one, different, strict=True))
    assert not torch.equal(memory[-1], other[-1])  # the words still differ
    if variant == "sal-paper":  # whose decoder reads the encoder's codes
        assert torch.equal(memory[0], other[0])


@pytest.mark.parametrize("variant", ["sal", "sal-paper"])
def test_what_sal_leaves_out_of_its_last_layers_is_read_by_nothing(variant):
    model, inputs = build(variant), batch(LENGTHS)["net_input"]
    logits, extra = model(**inputs, structural=True)
    stacks = (model.encoder.stack, model.decoder.stack)
    assert [stack.words_only for stack in stacks] == [variant == "sal", True]
    found = vars(extra["structural"]).values()
    assert [len(side.layers[-1]) for side in found] == [1 if variant == "sal" else 2, 1]
    for stack in stacks:
        stack.words_only = False
    whole, more = model(**inputs, structural=True)
    torch.testing.assert_close(logits, whole)
    for ours, theirs in zip(
        vars(extra["structural"]).values(), vars(more["structural"]).values(), strict=True
    ):
        torch.testing.assert_close(ours.layers[-1][-1], theirs.layers[-1][-1])
        torch.testing.assert_close(ours.prior, theirs.prior)


def test_srl_at_inference_is_the_plain_model(monkeypatch):
    srl, plain = build("srl"), build("plain", dropout=0.5)
    report = plain.load_state_dict(srl.state_dict(), strict=False)
    assert report.missing_keys == []
    assert all(".quantizer." in name or ".predictor." in name for name in report.unexpected_keys)
    inputs = batch(LENGTHS)["net_input"]
    regularized = srl(**inputs, structural=True)[0]
    for method in ("quantize", "codebook"):  # no code is looked up
        monkeypatch.setattr(VectorQuantizer, method, None)
    assert torch.equal(srl(**inputs)[0], plain(**inputs)[0])
    assert srl.encoder(inputs["src_tokens"])["memory"].size(0) == 1
    torch.testing.assert_close(regularized, plain(**inputs)[0])  # the code stream only watches


# --- decoding ---


@every_variant
def test_incremental_decoding_equals_full_decoding(variant):
    """With beams that trade places and sentences that leave the batch."""
    orders = {2: [1, 0, 3, 3, 4, 5], 3: [2, 3, 5, 4], 4: [1, 1, 2, 3], 6: [3, 2]}
    for (logits, _), (full, _) in step_by_step(build(variant), orders):
        assert logits.shape == (len(full), 1, len(TASK.target_dictionary))
        torch.testing.assert_close(logits[:, 0], full[:, -1], atol=1e-5, rtol=1e-5)
    assert len(full) == 2


@every_variant
def test_the_output_layer_makes_logits_of_features(variant):
    model = build(variant, encoder_embed_dim=20)  # features are not as wide as the vocabulary
    inputs = batch(LENGTHS)["net_input"]
    features, _ = model.extract_features(**inputs)
    assert torch.equal(model.output_layer(features), model(**inputs)[0])


@every_variant
def test_beam_search_scores_equal_teacher_forcing(variant):
    model = build(variant)
    early, reorder = set(), model.decoder.reorder_incremental_state
    ends_sooner = torch.zeros(len(TASK.target_dictionary))

    def spy(state, order):
        early.add(order.numel() < 5 * len(sample["id"]))
        reorder(state, order)

    model.decoder.reorder_incremental_state = spy
    model.decoder.output.register_forward_hook(lambda module, args, logits: logits + ends_sooner)
    sample = batch([*LENGTHS[:2], (4, 1), (3, 1), *LENGTHS[2:]])
    search = SequenceGenerator([model], TASK.target_dictionary, beam_size=5, max_len_b=7)
    for ends_sooner[EOS] in (1.0, 3.0, 5.0, 7.0):
        for row, beam in enumerate(search.generate([model], sample)):
            assert len(beam) == 5
            tokens = collate_tokens([found["tokens"] for found in beam], PAD)
            inputs = alone(sample, row)
            inputs["src_tokens"] = inputs["src_tokens"].expand(5, -1)
            inputs["prev_output_tokens"] = torch.cat([torch.full((5, 1), EOS), tokens[:, :-1]], 1)
            scores = model(**inputs)[0].log_softmax(-1).gather(2, tokens[..., None]).squeeze(2)
            for found, forced in zip(beam, scores, strict=True):
                forced = forced[: len(found["tokens"])]
                torch.testing.assert_close(found["positional_scores"], forced, atol=2e-5, rtol=1e-5)
                assert found["score"].item() == pytest.approx(forced.mean().item(), abs=2e-5)
    assert True in early, "no sentence left the batch before the others"


def test_attention_for_alignment():
    model = build().eval()
    sample = batch(LENGTHS)
    (attention,) = model(**sample["net_input"])[1]["attn"]
    assert attention.shape == (4, 7, 8)
    torch.testing.assert_close(attention.sum(-1), torch.ones(4, 7))
    padding = sample["net_input"]["src_tokens"].eq(PAD)[:, None].expand_as(attention)
    assert attention[padding].eq(0).all()


# --- padding and neighbours ---

both_sides = pytest.mark.parametrize("left_pad_target", [False, True])


@both_sides
@pytest.mark.parametrize("left_pad_source", [True, False])
@every_variant
def test_a_sentence_does_not_see_its_neighbours(variant, left_pad_source, left_pad_target):
    model = build(variant)
    model.decoder.left_pad = left_pad_target
    sample = batch(LENGTHS, left_pad_source, left_pad_target)
    logits, _ = model(**sample["net_input"])
    for row in range(len(LENGTHS)):
        inputs = alone(sample, row)
        kept = sample["net_input"]["prev_output_tokens"][row].ne(PAD)
        torch.testing.assert_close(logits[row, kept], model(**inputs)[0][0], atol=1e-5, rtol=1e-5)


@both_sides
@every_variant
def test_training_that_leaves_padding_out_is_the_same(variant, left_pad_target, monkeypatch):
    """Also after an end in the middle of a target, which may be a word."""
    sample, results = batch(LENGTHS, left_pad_target=left_pad_target), []
    sample["net_input"]["prev_output_tokens"][1, 3] = sample["target"][1, 2] = EOS
    for worth in (0.0, 1.0):  # never and always
        monkeypatch.setattr(packing, "WORTH", worth)
        model = build(variant, predictor_share=0.5).train()
        model.decoder.left_pad = left_pad_target
        torch.manual_seed(3)
        logits, extra = model(**sample["net_input"], structural=True)
        loss = logits[sample["target"].ne(PAD)].square().sum()
        for side in filter(None, vars(extra["structural"] or SimpleNamespace()).values()):
            layer = side.layers[-1]
            assert (layer == 0).all(-1).any() == bool(worth)
            loss = loss + layer[:, side.keep].square().sum()
            loss = loss + (0 if side.prior is None else side.prior.square().sum())
        loss.backward()
        results.append([loss, *(p.grad for p in model.parameters() if p.grad is not None)])
    torch.testing.assert_close(*results, atol=1e-4, rtol=1e-4)


def pieces(side: SideOutputs, row: int) -> list[torch.Tensor]:
    """What the terms read of one sentence."""
    keep, rows = side.keep[row], side.keep.nonzero()[:, 0]
    found = [side.embeddings[row, keep], side.codes[row, keep], side.posterior[row, keep]]
    found += [side.next_codes[row, side.next_keep[row]], side.next_keep[row].sum()]
    found += [torch.stack([streams[:, row, keep] for streams in side.layers])]
    if side.prior is not None and len(side.prior) == len(rows):
        found += [side.prior[rows == row], side.predicted[rows == row]]
    return found


@both_sides
@pytest.mark.parametrize("variant", ["sal", "sal-paper", "srl"])
def test_the_structural_terms_do_not_see_padding(variant, left_pad_target):
    model = build(variant).train()
    model.decoder.left_pad = left_pad_target
    sample = batch(LENGTHS, left_pad_target=left_pad_target)
    outputs = model(**sample["net_input"], structural=True)[1]["structural"]
    for row in range(len(LENGTHS)):
        single = model(**alone(sample, row), structural=True)[1]["structural"]
        for name in ("source", "target"):
            ours, theirs = pieces(getattr(outputs, name), row), pieces(getattr(single, name), 0)
            assert len(ours) == (6 if name == "source" else 8)  # the source's prior: below
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_the_end_that_buckets_of_lengths_leave_in_is_no_position():
    """fairseq moves a target's end to the beginning and cuts off the last token, here padding."""
    model, sample = build().train(), batch(LENGTHS)
    inputs = sample["net_input"]
    cut = model(**inputs, structural=True)[1]["structural"].target
    previous = F.pad(inputs["prev_output_tokens"], (0, 1), value=PAD)
    previous[range(len(LENGTHS)), previous.ne(PAD).sum(1)] = EOS
    inputs["prev_output_tokens"] = previous
    left = model(**inputs, structural=True)[1]["structural"].target
    for row in range(len(LENGTHS)):
        torch.testing.assert_close(pieces(left, row), pieces(cut, row), atol=1e-5, rtol=1e-5)


# --- precision ---


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("variant", ["sal", "srl"])
def test_half_precision_keeps_codes_and_logits_of_codes_in_float32(variant, dtype):
    model = build(variant).train()
    weights = [
        stack.quantizer.weight.clone() for stack in (model.encoder.stack, model.decoder.stack)
    ]
    sample = batch(LENGTHS, left_pad_target=True)
    full, _ = model(**sample["net_input"], structural=True)
    logits, extra = model.to(dtype)(**sample["net_input"], structural=True)
    assert logits.dtype == dtype and logits.isfinite().all()
    keep = sample["target"].ne(PAD)
    assert (logits.float() - full)[keep].abs().mean() < 0.1 * full[keep].std()
    sides = extra["structural"].source, extra["structural"].target
    for stack, side, weight in zip(
        (model.encoder.stack, model.decoder.stack), sides, weights, strict=True
    ):
        assert torch.equal(stack.quantizer.weight, weight)
        for part in (side.posterior, side.prior, side.predicted, side.codebook):
            assert part.dtype == torch.float32 and part.isfinite().all()
        assert side.layers[-1].dtype == dtype and side.layers[-1].isfinite().all()
