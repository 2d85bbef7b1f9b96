"""Each term against numbers worked out by hand."""

from math import exp, log

import pytest
import torch

from compgen_fairseq.criterions import composition_terms as terms
from compgen_fairseq.modules.cat_layer import CompositionLayer, CompositionOutputs

KEEP = torch.tensor([[True, True], [True, False]])


def layer(**changed: torch.Tensor) -> CompositionLayer:
    """Two sentences, the second one padded; width 2, three codes."""
    values = {
        "cont": torch.tensor([[[1.0, 1.0], [0.0, 0.0]], [[2.0, 0.0], [99.0, 99.0]]]),
        "comp": torch.tensor([[[1.0, 3.0], [4.0, 0.0]], [[2.0, 0.0], [0.0, 0.0]]]),
        "attention": torch.tensor(
            [[[0.0, 3.0, 0.0], [1.0, 0.5, 0.0]], [[1.0, 1.0, 1.0], [9.0, 9.0, 9.0]]]
        ),
    }
    values = {**values, **changed}
    return CompositionLayer(mix=values["cont"], scores=values["attention"], **values)


def test_reconstruction_by_hand():
    # differences (0, 2), (4, 0), (0, 0): squares 4, 16, 0, halved: the width is 2
    cont, comp = (getattr(layer(), name).requires_grad_() for name in ("cont", "comp"))
    total, number = terms.reconstruction(layer(cont=cont, comp=comp), KEEP, beta=0.25)
    assert number == 3
    assert total.item() == pytest.approx(1.25 * 10)
    total.backward()
    expected = torch.tensor([[[0.0, 2.0], [4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    torch.testing.assert_close(comp.grad, expected)
    torch.testing.assert_close(cont.grad, -0.25 * expected)


def test_sparsity_by_hand():
    # sums of the weights 3, 1.5, 3 over three codes: 1 + 0.5 + 1; a second layer of 1/2 each: 1.5
    halves = torch.full((2, 2, 5), 0.5)
    outputs = CompositionOutputs([layer(), layer(attention=halves)], KEEP)
    total, number = terms.sparsity(outputs)
    assert (total.item(), number.item()) == (pytest.approx(4.0), 3)


def test_guided_decomposition_by_hand():
    # word (0, 3, 0) with sememe 0: 3 of 2 wrong ones; (1, .5, 0) with 0 and 1: exactly nothing;
    # (1, 1, 1) is not annotated
    sememes = torch.tensor([[[0, -1], [1, 0]], [[2, -1], [-1, -1]]])
    annotated = torch.tensor([[True, True], [False, False]])
    attention = layer().attention.requires_grad_()
    total, number = terms.guided_decomposition(attention, sememes, annotated)
    assert (total.item(), number.item()) == (1.5, 2)
    total.backward()
    expected = torch.zeros(2, 2, 3)
    expected[0, 0, 1:] = 0.5
    expected[0, 1, 2] = 1.0
    torch.testing.assert_close(attention.grad, expected)


def test_guided_decomposition_is_exactly_zero_when_all_weight_is_right():
    draw = torch.Generator().manual_seed(1)
    right = torch.randint(0, 3152, (40, 6), generator=draw)
    attention = torch.zeros(40, 3152).scatter(1, right, torch.rand(40, 6, generator=draw) * 50)
    everyone = torch.ones(40, dtype=torch.bool)
    total, number = terms.guided_decomposition(attention, right, everyone)
    assert (total.item(), number.item()) == (0.0, 40)
    attention[7, (right[7] + 1).max()] = 0.5
    wrong = 3152 - 6
    total, _ = terms.guided_decomposition(attention, right, everyone)
    assert total.item() == pytest.approx(0.5 / wrong)


def test_guided_decomposition_without_an_annotated_word():
    attention = layer().attention.requires_grad_()
    sememes = torch.full((2, 2, 1), -1)
    total, number = terms.guided_decomposition(attention, sememes, torch.zeros_like(KEEP))
    assert (total.item(), number.item()) == (0.0, 0)
    total.backward()
    assert attention.grad.eq(0).all()


def test_guided_scores_by_hand():
    # scores of root mean square 2: logits (log 2, 0, 0) up to a shift; a silent (negative) right
    # sememe is woken, and two right ones are free to share
    base = torch.tensor([log(2), 0.0, 0.0]) - 1.0
    logits = base * (3**0.5 / base.norm())
    shares = logits.softmax(-1)
    scores = torch.stack([2 * logits, 5 * logits]).requires_grad_()
    sememes = torch.tensor([[1, -1], [1, 0]])
    annotated = torch.tensor([True, True])
    total, number = terms.guided_scores(scores, sememes, annotated)
    expected = -shares[1].log() - (shares[0] + shares[1]).log()
    assert (total.item(), number.item()) == (pytest.approx(expected.item(), rel=1e-5), 2)
    assert scores[0, 1] < 0
    total.backward()
    assert scores.grad[0, 1] < 0 < scores.grad[0, 0]


def test_guided_scores_vanish_only_where_a_right_sememe_is_above_all_others():
    annotated, right = torch.ones(1, dtype=torch.bool), torch.tensor([[3, -1]])
    best = torch.full((1, 1400), -0.01)
    best[0, 3] = 1.0
    assert terms.guided_scores(best, right, annotated)[0].item() == pytest.approx(0.0, abs=1e-6)
    assert terms.guided_scores(-best, right, annotated)[0].item() > 30
    total, number = terms.guided_scores(torch.zeros(1, 1400), right, annotated)
    assert total.item() == pytest.approx(log(1400))  # all silent is not all right
    total, number = terms.guided_scores(best, right, ~annotated)
    assert (total.item(), number.item()) == (0.0, 0)


def test_nuance_entropy_by_hand():
    # softmax (1/2, 1/2): entropy log 2; (3/4, 1/4)
    nuance = torch.tensor([[[7.0, 7.0], [log(3), 0.0]], [[5.0, 5.0], [0.0, 99.0]]])
    nuance.requires_grad_()
    total, number = terms.nuance_entropy(nuance, KEEP)
    assert number == 3
    entropy = 0.75 * log(4 / 3) + 0.25 * log(4)
    assert total.item() == pytest.approx(0.5 + exp(-entropy) + 0.5)
    total.backward()
    assert nuance.grad[0, 1, 0] > 0 > nuance.grad[0, 1, 1]  # towards equal elements
    assert nuance.grad[1, 1].eq(0).all()


def test_nuance_task_by_hand():
    loss = torch.tensor(log(4), requires_grad=True)
    value = terms.nuance_task(loss)
    assert value.item() == pytest.approx(0.25)
    value.backward()
    assert loss.grad.item() == pytest.approx(-0.25)  # the worse the task, the better


def test_half_precision_is_summed_in_float32():
    keep = torch.ones(1, 300, dtype=torch.bool)
    words = torch.full((1, 300, 2), 200.0, dtype=torch.float16)
    made = CompositionLayer(words, torch.zeros_like(words), words, words, words)
    assert terms.reconstruction(made, keep, 0.0)[0].item() == 300 * 200**2
    assert terms.sparsity(CompositionOutputs([made], keep))[0].item() == 300 * 200
    everyone = torch.zeros(1, 300, 1, dtype=torch.long)
    assert terms.guided_decomposition(words, everyone, keep)[0].item() == 300 * 200
