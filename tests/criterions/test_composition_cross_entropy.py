"""Which terms the composition criterion adds up, and how."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from random_batches import LENGTHS, TASK, batch, both_sides, build_model, untrained

from compgen_fairseq.criterions import composition_terms as terms
from compgen_fairseq.criterions.composition_cross_entropy import (
    CompositionCrossEntropyConfig,
    CompositionCrossEntropyCriterion,
)


def build(arch: str = "cat_transformer", **own):
    sizes = both_sides(layers=2, attention_heads=2) | {"encoder_embed_dim": 16, "codes": 9}
    return build_model(arch, **sizes, dropout=0.0, **own)


def criterion(**options) -> CompositionCrossEntropyCriterion:
    cfg = CompositionCrossEntropyConfig(sentence_avg=False, label_smoothing=0.1, **options)
    return CompositionCrossEntropyCriterion(cfg, TASK).train()


def test_the_loss_is_the_weighted_sum_of_the_means():
    model, sample = build(), batch(LENGTHS)
    weights = {"reconstruction": 0.7, "reconstruction_beta": 0.3, "sparsity": 0.2}
    loss, size, logged = criterion(**weights)(model, sample)
    theirs = LabelSmoothedCrossEntropyCriterion(TASK, False, 0.1)
    word_loss, expected_size, _ = theirs(model, sample)
    assert size == expected_size
    outputs = model(**sample["net_input"])[1]["composition"]
    pairs = [terms.reconstruction(layer, outputs.keep, 0.3) for layer in outputs.layers]
    reconstruction = sum(total / number for total, number in pairs)
    total, number = terms.sparsity(outputs)
    assert len(pairs) == 2 and number == sum(source + 1 for source, _ in LENGTHS)
    expected = word_loss + size * (0.7 * reconstruction + 0.2 * total / number)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(logged["loss"], loss.detach())
    assert logged["sum_reconstruction"] / logged["num_reconstruction"] == pytest.approx(
        reconstruction.item()
    )


@pytest.mark.parametrize("representation", ["mix", "cont", "comp"])
def test_every_parameter_gets_a_gradient(representation):
    """Or asks for none: data parallelism on several GPUs waits for each that does."""
    model = build(representation=representation)
    criterion()(model, batch(LENGTHS))[0].backward()
    assert untrained(model) == set()


def test_a_term_without_weight_is_left_out():
    model, sample = build(), batch(LENGTHS)
    loss, _, logged = criterion(reconstruction=0.0, sparsity=0.0)(model, sample)
    theirs = LabelSmoothedCrossEntropyCriterion(TASK, False, 0.1)(model, sample)
    assert torch.equal(loss, theirs[0])
    assert not any(name.startswith("sum_") for name in logged)
    _, _, logged = criterion(reconstruction=0.0)(model, sample)
    assert [name for name in logged if name.startswith("sum_")] == ["sum_sparsity"]
