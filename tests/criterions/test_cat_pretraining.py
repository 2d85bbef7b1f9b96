"""CAT's pre-training loss: its terms, its ablations, what counts."""

import math

import pytest
import torch
import torch.nn.functional as F
from fairseq.logging import metrics
from pretraining_batches import make_batch, make_model, make_task
from random_batches import untrained

from compgen_fairseq.criterions.cat_pretraining import CATPretrainingConfig, CATPretrainingCriterion

TASK = make_task()
BATCH = make_batch(TASK)
TASK_TERMS = {f"{t}_{r}" for t in ("mlm", "nsp", "nsp_accuracy") for r in ("cont", "comp", "mix")}
NUANCE = {"nuance_entropy", "nuance_mlm", "nuance_nsp"}
ALL = TASK_TERMS | NUANCE | {"guided_decomposition", "sparsity", "reconstruction"}
ALL |= {"zeros_1", "zeros_2", "unused_1", "unused_2"}


def make_criterion(**options):
    return CATPretrainingCriterion(CATPretrainingConfig(**options), TASK)


def run(model, sample=BATCH, **options):
    """The mean loss, and the mean of each term by name."""
    loss, size, logged = make_criterion(**options)(model, sample)
    assert float(logged["loss"]) == pytest.approx(float(loss), rel=1e-4)
    names = [key.removeprefix("num_") for key in logged if key.startswith("num_")]
    return loss / size, {n: float(logged[f"sum_{n}"] / logged[f"num_{n}"]) for n in names}


def states(model, sample=BATCH):
    """Of the last layer, and the weights of every layer's codes."""
    _, composition = model.encoder.representations(sample["net_input"]["src_tokens"])
    return composition.layers[-1], [layer.attention for layer in composition.layers]


@pytest.fixture
def model():
    return make_model(TASK).eval()


def test_every_term_is_what_the_equations_say(model):
    with torch.no_grad():
        model.encoder.layers[0].composition.codebook[:2] = 0  # two of eight codes that no word uses
    loss, terms = run(model, guidance="weights")
    assert set(terms) == ALL
    assert terms["unused_1"] == 0.25
    last, attention = states(model)
    source, target = BATCH["net_input"]["src_tokens"], BATCH["target"]
    keep, masked = source.ne(1), target.ne(1)

    expected = {}
    nuance = last.cont - last.comp
    states_of = {"cont": last.cont, "comp": last.comp, "mix": last.mix, "nu": nuance}
    for name, state in states_of.items():
        words = model.lm_head(state)[masked]
        expected[f"mlm_{name}"] = F.cross_entropy(words, target[masked]).item()
        follows = model.next_sentence_head(state)
        expected[f"nsp_{name}"] = F.cross_entropy(follows, BATCH["next_sentence"]).item()
        right = follows.argmax(-1).eq(BATCH["next_sentence"]).float().mean().item()
        expected[f"nsp_accuracy_{name}"] = 100 * right
    expected["nuance_mlm"] = math.exp(-expected.pop("mlm_nu"))
    expected["nuance_nsp"] = math.exp(-expected.pop("nsp_nu"))
    del expected["nsp_accuracy_nu"]
    log_p = nuance[keep].log_softmax(-1)
    expected["nuance_entropy"] = (log_p.exp() * log_p).sum(-1).exp().mean().item()
    wrong = []
    for row, weights in zip(BATCH["rows"][keep].tolist(), attention[-1][keep], strict=True):
        if row >= 0:
            right_ones = [i for i in TASK.word_sememes.table[row].tolist() if i >= 0]
            others = [i for i in range(6) if i not in right_ones]
            wrong.append(weights[others].sum().item() / len(others))
    assert 0 < len(wrong) < keep.sum()
    expected["guided_decomposition"] = sum(wrong) / len(wrong)
    expected["sparsity"] = sum(a[keep].mean().item() for a in attention)
    for number, weights in enumerate(attention, start=1):
        expected[f"zeros_{number}"] = weights[keep].eq(0).float().mean().item()
        expected[f"unused_{number}"] = weights[keep].eq(0).all(0).float().mean().item()
    _, composition = model.encoder.representations(source)
    squares = [(one.comp - one.cont)[keep].square().mean().item() for one in composition.layers]
    expected["reconstruction"] = sum(squares)

    assert terms == pytest.approx(expected, rel=1e-4)
    _, again = run(model, reconstruction_beta=0.5)
    assert again["reconstruction"] == pytest.approx(1.5 * expected["reconstruction"], rel=1e-4)
    weights = {"mlm_cont": 2, "nsp_cont": 2, "sparsity": 0.1}
    weights |= {name: 0 for name in expected if name.startswith(("zeros", "unused"))}
    unlogged = {name for name in ALL if name.startswith("nsp_accuracy")}
    total = sum(weights.get(n, 1) * value for n, value in expected.items() if n not in unlogged)
    assert loss.item() == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize(
    ("ablation", "missing"),
    [
        ("guided-decomposition", {"guided_decomposition", "sparsity"}),
        ("reconstruction", {"reconstruction"}),
        ("nuance", NUANCE),
        ("sufficiency", {name for name in TASK_TERMS if not name.endswith("cont")}),
        (
            "semantics-composition",
            {"reconstruction", *NUANCE, *(n for n in TASK_TERMS if not n.endswith("cont"))},
        ),
    ],
)
def test_an_ablation_removes_its_terms_from_log_and_loss(model, ablation, missing):
    loss, terms = run(model, ablation=ablation, sparsity=1.0)
    whole_loss, whole = run(model, sparsity=1.0)
    assert set(whole) - set(terms) == missing
    gone = sum(whole[name] for name in missing if not name.startswith("nsp_accuracy"))
    if ablation in ("sufficiency", "semantics-composition"):
        gone += whole["mlm_cont"] + whole["nsp_cont"]  # counted once instead of twice
    assert loss.item() == pytest.approx(whole_loss.item() - gone, rel=1e-4)


@pytest.mark.parametrize("word_ids", [False, True])
def test_words_that_are_to_be_predicted_may_be_left_unguided(model, word_ids):
    """The term is the mean over the others: those whose annotation is taken away by hand."""
    sample = make_batch(TASK, word_ids=word_ids)
    masked = sample["target"].ne(1)
    if word_ids:
        places = torch.arange(sample["rows"].size(1))
        rows = zip(sample["net_input"]["words"], masked, strict=True)
        masked = torch.stack([torch.isin(places, words[chosen]) for words, chosen in rows])
    rows = sample["rows"].masked_fill(masked, -1)
    assert 0 < rows.ge(0).sum() < sample["rows"].ge(0).sum()
    _, expected = run(model, {**sample, "rows": rows})
    _, terms = run(model, sample, unguided_masked=True)
    assert terms == pytest.approx(expected)
    assert terms != pytest.approx(run(model, sample)[1])


@pytest.mark.parametrize("name", ["task_loss", "reconstruction", "nuance"])
def test_a_weight_weighs_its_term(model, name):
    losses = [run(model, **{name: weight})[0].item() for weight in (1.0, 2.0, 4.0)]
    assert losses[2] - losses[1] == pytest.approx(2 * (losses[1] - losses[0]), rel=1e-3)
    assert losses[1] > losses[0]


def test_the_plain_encoder_is_trained_as_bert():
    model = make_model(TASK, composition="none").eval()
    loss, terms = run(model)
    assert set(terms) == {"mlm_cont", "nsp_cont", "nsp_accuracy_cont"}
    assert loss.item() == pytest.approx(terms["mlm_cont"] + terms["nsp_cont"], rel=1e-5)


def test_words_without_annotation_add_no_loss(model):
    none = {**BATCH, "rows": torch.full_like(BATCH["rows"], -1)}
    loss, _ = run(model, none, guided_decomposition=1.0)
    without, _ = run(model, none, guided_decomposition=0.0)
    assert loss.item() == without.item()

    only = {**BATCH, "rows": torch.where(torch.arange(6).unsqueeze(1).eq(2), BATCH["rows"], -1)}
    weights = {name: 0.0 for name in ("task_loss", "sparsity", "reconstruction", "sufficiency")}
    source = BATCH["net_input"]["src_tokens"]
    embedded = []
    hook = model.encoder.embed_tokens.register_forward_hook(
        lambda *call: (call[2].retain_grad(), embedded.append(call[2]))[1]
    )
    run(model, only, **weights, nuance=0.0)[0].backward()
    hook.remove()
    touched = embedded[0].grad.abs().sum((1, 2)).ne(0)
    assert source.size(0) == 6 and touched.tolist() == [i == 2 for i in range(6)]


def test_the_average_of_a_words_subwords_is_decomposed(model):
    sample = make_batch(TASK, word_ids=True)
    _, terms = run(model, sample, guidance="weights")
    last, _ = states(model, sample)
    words, rows, wrong, pieces = sample["net_input"]["words"], sample["rows"], [], 0
    for sentence in range(6):
        for word in range(int(words[sentence].max()) + 1):
            row = int(rows[sentence, word])
            if row < 0:
                continue
            member = words[sentence].eq(word)
            pieces += int(member.sum() > 1)
            weights = model.encoder.layers[-1].composition(last.cont[sentence, member].mean(0))[1]
            others = [i for i in range(6) if i not in TASK.word_sememes.table[row].tolist()]
            wrong.append(weights[others].sum().item() / len(others))
    assert pieces > 0
    assert terms["guided_decomposition"] == pytest.approx(sum(wrong) / len(wrong), rel=1e-4)


@pytest.mark.parametrize("word_ids", [False, True])
def test_guidance_by_scores_is_that_of_every_annotated_word(model, word_ids):
    sample = make_batch(TASK, word_ids=word_ids)
    loss, terms = run(model, sample, guided_decomposition=2.0)
    rest, _ = run(model, sample, guided_decomposition=0.0)
    last, _ = states(model, sample)
    rows, misses = sample["rows"], []
    for sentence, place in rows.ge(0).nonzero().tolist():
        state = last.cont[sentence, place]
        if word_ids:
            state = last.cont[sentence, sample["net_input"]["words"][sentence].eq(place)].mean(0)
        scores = model.encoder.layers[-1].composition.scores(state)
        shares = (scores / scores.square().mean().sqrt()).softmax(-1)
        own = [i for i in TASK.word_sememes.table[int(rows[sentence, place])].tolist() if i >= 0]
        misses.append(-math.log(shares[own].sum().item()))
    assert len(misses) > 6
    assert terms["guided_decomposition"] == pytest.approx(sum(misses) / len(misses), rel=1e-4)
    weighed = (rest + 2 * terms["guided_decomposition"]).item()
    assert loss.item() == pytest.approx(weighed, rel=1e-4)


def test_a_dummy_batch_counts_for_nothing(model):
    loss, _, logged = make_criterion()(model, {**BATCH, "ignore_grad": True})
    assert loss.isfinite()
    assert all(value == 0 for key, value in logged.items() if key.startswith(("sum_", "num_")))


def test_what_is_reported_is_the_mean_over_all_batches(model):
    criterion = make_criterion()
    parts = [criterion(model, make_batch(TASK, part)) for part in ([0, 1], [2, 3, 4, 5])]
    logs = [log for *_, log in parts]
    loss = sum(float(loss) for loss, *_ in parts) / sum(int(size) for _, size, _ in parts)
    assert criterion.logging_outputs_can_be_summed()
    summed = {key: sum(log[key] for log in logs) for key in logs[0]}
    for reported in (logs, [summed]):
        with metrics.aggregate() as found:
            criterion.reduce_metrics(reported)
        values = found.get_smoothed_values()
        _, whole = run(model)
        assert values["loss"] == pytest.approx(loss, abs=1e-3)
        for name in ("mlm_comp", "nsp_mix", "guided_decomposition", "zeros_1", "sparsity"):
            assert values[name] == pytest.approx(whole[name], abs=2e-4)
        assert values["ppl_cont"] == pytest.approx(math.exp(whole["mlm_cont"]), rel=1e-3)


def test_every_parameter_gets_a_gradient():
    model = make_model(TASK)
    loss, _ = run(model)
    loss.backward()
    assert untrained(model) == set()


def test_a_plain_model_without_a_loss_is_refused():
    with pytest.raises(ValueError, match="--task-loss 0 leaves --composition none without a loss"):
        run(make_model(TASK, composition="none"), task_loss=0.0)


def test_another_task_is_refused():
    task = make_task()
    del task.word_sememes
    with pytest.raises(ValueError, match="goes with --task cat_pretraining"):
        CATPretrainingCriterion(CATPretrainingConfig(), task)
