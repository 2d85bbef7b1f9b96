"""The criterion: fairseq's own loss, plus the weighted terms, with every parameter trained."""

from math import log
from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
from random_batches import TASK, build_model, untrained
from random_batches import batch as random_batch
from sq_models import build as build_sq

from compgen_fairseq.criterions import structural_terms as terms
from compgen_fairseq.criterions.structural_cross_entropy import (
    WEIGHTS,
    StructuralCrossEntropyConfig,
    StructuralCrossEntropyCriterion,
    code_usage,
)
from compgen_fairseq.criterions.terms_cross_entropy import WeightedTerm, reduced
from compgen_fairseq.models.sq_transformer import SQTransformerModel
from compgen_fairseq.modules.structural_outputs import StructuralOutputs

SIDES = ("source", "target")
USAGE = {f"{name}_{side}" for name in ("codes_used", "code_entropy") for side in SIDES}


def build(**chosen) -> SQTransformerModel:
    return build_sq("none", **chosen).train()


def batch(*lengths: tuple[int, int]) -> dict:
    return random_batch(lengths or ((6, 3), (4, 5), (2, 2)))


def criterion(sentence_avg=False, **options) -> StructuralCrossEntropyCriterion:
    cfg = StructuralCrossEntropyConfig(sentence_avg=sentence_avg, label_smoothing=0.1, **options)
    return StructuralCrossEntropyCriterion(cfg, TASK).train()


@pytest.mark.parametrize("sentence_avg", [False, True])
def test_other_models_are_trained_with_fairseqs_own_loss(sentence_avg):
    model = build_model("transformer", encoder_embed_dim=16, decoder_embed_dim=16, dropout=0.2)
    sample, results = batch(), []
    theirs = LabelSmoothedCrossEntropyCriterion(TASK, sentence_avg, 0.1, report_accuracy=True)
    for made in (theirs, criterion(sentence_avg=sentence_avg, report_accuracy=True)):
        model.zero_grad()
        torch.manual_seed(3)
        loss, size, logged = made(model, sample)
        loss.backward()
        gradients = [parameter.grad.clone() for parameter in model.parameters()]
        results.append((loss, size, logged, gradients))
    (loss, size, logged, gradients), (own_loss, own_size, own_logged, own_gradients) = results
    assert torch.equal(loss, own_loss) and size == own_size and logged == own_logged
    assert all(map(torch.equal, gradients, own_gradients))


@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize(
    "attention, recipe", [("sal", "scan"), ("srl", "scan"), ("sal", "cogs"), ("srl", "cogs")]
)
def test_the_loss_is_the_weighted_sum_of_the_means(attention, recipe, sentence_avg):
    model, sample = build(attention=attention, loss_recipe=recipe).eval(), batch()
    torch.manual_seed(4)  # of the masked positions
    loss, size, logged = criterion(sentence_avg=sentence_avg).eval()(model, sample)
    word_loss, _, _ = LabelSmoothedCrossEntropyCriterion(TASK, sentence_avg, 0.1)(model, sample)
    assert size == (3 if sentence_avg else 3 + 5 + 2 + 3)

    def mean(term):
        return term[0] / term[1]

    w = terms.RECIPES[recipe]
    torch.manual_seed(4)
    outputs = model(**sample["net_input"], structural=True)[1]["structural"]
    total, code_stream = torch.zeros(()), attention == "srl"
    for side, prefix in ((outputs.source, "encoder"), (outputs.target, "decoder")):
        total += w.mmi_cross_entropy * mean(terms.mmi_cross_entropy(side.predicted, side.prior))
        total -= w.mmi_entropy * terms.entropy(mean(terms.mean_posterior(side)))
        own = {name[8:]: value for name, value in vars(w).items() if name.startswith(prefix)}
        total += own["commitment"] * mean(terms.commitment(side))
        total += own["code_prediction"] * mean(terms.code_prediction(side, code_stream))
        total += own["code_attraction"] * mean(terms.code_attraction(side, code_stream))
        if attention == "srl":
            total += w.srl_mse * mean(terms.srl_mse(side))
    torch.testing.assert_close(loss, word_loss + size * total)
    torch.testing.assert_close(logged["loss"], loss.detach())


def test_flags_override_the_recipe():
    model, sample = build(attention="srl", loss_recipe="cogs"), batch()
    nothing = dict.fromkeys(WEIGHTS, 0.0)
    word_loss, _, logged = criterion(**nothing)(model, sample)
    assert {name[4:] for name in logged if name.startswith("sum_")} == USAGE
    theirs, _, _ = LabelSmoothedCrossEntropyCriterion(TASK, False, 0.1)(model, sample)
    assert torch.equal(word_loss, theirs)
    kinds = {
        name: {f"{name.partition('_')[2]}_{'source' if name[:2] == 'en' else 'target'}"}
        for name in WEIGHTS
        if name.startswith(("encoder", "decoder"))
    }
    for name in WEIGHTS:
        losses = []
        for weight in (1.0, 3.0):
            loss, size, logged = criterion(**{**nothing, name: weight})(model, sample)
            expected = kinds.get(name, {f"{name}_source", f"{name}_target"})
            assert {key[4:] for key in logged if key.startswith("sum_")} == expected | USAGE
            losses.append((loss - word_loss) / size)
        torch.testing.assert_close(losses[1], 3 * losses[0], rtol=1e-4, atol=1e-6)
        assert losses[0].abs() > 1e-4


def test_reported_means_are_over_all_batches():
    model = build(attention="srl", loss_recipe="cognition").eval()
    made = criterion().eval()
    samples = [batch((6, 3), (4, 5)), batch((3, 2))]
    logs = [made(model, sample)[2] for sample in samples]
    with metrics.aggregate() as found:
        made.reduce_metrics(logs)
    values = found.get_smoothed_values()
    sides = [model(**s["net_input"], structural=True)[1]["structural"].source for s in samples]
    for name, term in (("commitment", terms.commitment), ("srl_mse", terms.srl_mse)):
        parts = [term(side) for side in sides]
        expected = sum(total for total, _ in parts) / sum(number for _, number in parts)
        assert values[f"{name}_source"] == pytest.approx(expected.item(), abs=1e-4)
    assert values.keys() >= USAGE
    names = {"mmi_cross_entropy", "mmi_entropy", "commitment", "code_prediction"}
    assert {f"{name}_source" for name in names | {"code_attraction", "srl_mse"}} <= values.keys()


def test_the_usage_of_codes_by_hand():
    # source: codes 0, 0, 2 and padding; target: code 1 alone
    keep = torch.tensor([[True, True], [True, False]])
    codebook = torch.zeros(4, 2)
    source = SimpleNamespace(codes=torch.tensor([[0, 0], [2, 3]]), keep=keep, codebook=codebook)
    target = SimpleNamespace(codes=torch.ones(2, 2).long(), keep=keep, codebook=codebook)
    values = list(code_usage(StructuralOutputs(source, target)))
    loss, share, logged = reduced(values, torch.tensor(3), dummy=False, distributed=False)
    assert loss == share == 0
    found = {name: logged[f"sum_{name}"] / logged[f"num_{name}"] for name in USAGE}
    assert found == {
        "codes_used_source": 2,
        "code_entropy_source": pytest.approx(log(3) - 2 / 3 * log(2)),
        "codes_used_target": 1,
        "code_entropy_target": pytest.approx(0, abs=1e-30),
    }


@pytest.mark.parametrize(
    "chosen",
    [
        {"attention": "sal", "loss_recipe": "scan"},
        {"attention": "sal", "loss_recipe": "scan", "sal_cross_attention": "paper"},
        {"attention": "srl", "loss_recipe": "cogs"},
        {"attention": "srl", "loss_recipe": "cognition", "mmi": "tokens"},
        {"attention": "srl", "loss_recipe": "cogs", "quantizer": "vq"},
        {"attention": "plain", "quantizer": "sovq", "loss_recipe": "cogs"},
    ],
)
def test_every_parameter_gets_a_gradient(chosen):
    model = build(**chosen)
    criterion()(model, batch())[0].backward()
    assert untrained(model) == set()


def test_training_moves_the_codebooks_by_ema_and_validation_does_not():
    model, sample, made = build(attention="sal"), batch(), criterion()
    quantizers = model.encoder.stack.quantizer, model.decoder.stack.quantizer
    before = [quantizer.codebook().clone() for quantizer in quantizers]

    def moved():
        return [
            not torch.equal(old, new.codebook())
            for old, new in zip(before, quantizers, strict=True)
        ]

    model.eval()
    made.eval()(model, sample)
    assert moved() == [False, False]
    model.train()
    made.train()(model, {**sample, "ignore_grad": True})  # a dummy batch
    assert moved() == [False, False]
    made(model, sample)
    assert moved() == [True, True]


def test_a_dummy_batch_counts_for_nothing():
    model, sample = build(attention="sal"), {**batch(), "ignore_grad": True}
    loss, _, logged = criterion()(model, sample)
    assert loss.isfinite()
    for name, value in logged.items():
        assert not name.startswith(("sum_", "num_")) or value == 0


def test_means_functions_of_means_and_what_is_only_logged():
    a, b = torch.tensor([3.0, 4.0], requires_grad=True), torch.tensor(6.0, requires_grad=True)
    values = [
        WeightedTerm("entropy", 2.0, a, torch.tensor(2), torch.sum),
        WeightedTerm("logged", 0.0, torch.tensor(float("nan")), torch.tensor(1)),
        WeightedTerm("mean", 0.5, b, torch.tensor(4)),
    ]
    loss, share, logged = reduced(values, torch.tensor(10), dummy=False, distributed=False)
    assert loss == share == pytest.approx(10 * (2.0 * 7 / 2 + 0.5 * 6 / 4))
    loss.backward()
    assert a.grad.tolist() == [10.0, 10.0]
    assert b.grad == pytest.approx(1.25)
    assert logged["sum_entropy"] == 7
    assert logged["num_entropy"] == 2
    assert (logged["sum_mean"], logged["num_mean"]) == (6, 4)
    assert logged["sum_logged"].isnan()


def test_terms_stay_in_single_precision_with_amp():
    found = []
    for half in (False, True):
        total = torch.tensor(1e5, requires_grad=True)
        values = [WeightedTerm("x", 1e-3, total, torch.tensor(100_000))]
        with torch.autocast("cpu", torch.float16, enabled=half):
            loss, share, _ = reduced(values, torch.tensor(4096), dummy=False, distributed=False)
        loss.backward()
        found.append([float(x) for x in (loss, share, total.grad)])
    assert found[0] == found[1]
