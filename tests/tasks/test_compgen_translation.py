"""The task's counts, comparison and hooks; the real commands are in tests/cli/test_task.py."""

import numpy as np
import pytest
import torch
from fairseq.data import LanguagePairDataset
from fairseq.logging import metrics
from random_batches import Criterion, dictionary_of

from compgen_fairseq.tasks.compgen_translation import (
    CompgenTranslationConfig,
    CompgenTranslationTask,
)
from compgen_fairseq.tasks.word_classes import FINDERS


def make_task(**options):
    dictionary = dictionary_of("run", "Run", "ru@@", "n")
    return CompgenTranslationTask(
        CompgenTranslationConfig(eval_exact_match=True, **options), dictionary, dictionary
    )


def validate(task, pairs, extra_hypotheses=()):
    """The logging output of a batch of (hypothesis, reference) strings."""
    encode = task.tgt_dict.encode_line
    beams = [
        [
            {"tokens": encode(text, add_if_not_exist=False)}
            for text in (hypothesis, *extra_hypotheses)
        ]
        for hypothesis, _ in pairs
    ]
    target = [encode(reference, add_if_not_exist=False) for _, reference in pairs]
    width = max(map(len, target))
    pad = task.tgt_dict.pad()
    target = [torch.nn.functional.pad(t, (0, width - len(t)), value=pad) for t in target]
    task.exact_match_generator = None
    task.inference_step = lambda *_, **__: beams
    return task.valid_step({"target": torch.stack(target)}, torch.nn.Module(), Criterion())[2]


def test_classes_that_nothing_finds_are_one_sentence():
    model = torch.nn.Module()
    model.missing_classes = lambda: ("mine", None)
    model.assign_classes = print
    task = make_task(data="nowhere")
    task.datasets["train"] = []
    with pytest.raises(ValueError, match="kind 'mine' are found by none of brown, substitution"):
        task.begin_epoch(1, model)


def counts(logged):
    return logged["_exact_match_correct"], logged["_exact_match_total"]


@pytest.mark.parametrize(
    ("hypothesis", "reference", "correct"),
    [
        ("run n", "run n", 1),
        ("run n", "run n n", 0),
        ("run n n", "run n", 0),
        ("Run", "run", 0),
        ("", "run", 0),
        ("unheard", "unheard", 0),  # both are <unk>
        ("run unheard", "run of", 0),
    ],
)
def test_whole_sentences_are_compared(hypothesis, reference, correct):
    pairs = [(hypothesis, reference), ("n n n n n", "n n n n n")]
    assert counts(validate(make_task(), pairs)) == (correct + 1, 2)


def test_only_the_best_hypothesis_counts():
    assert counts(validate(make_task(), [("n", "run")], extra_hypotheses=["run"])) == (0, 1)


def test_subwords_are_joined_on_request():
    pairs = [("ru@@ n", "run")]
    assert counts(validate(make_task(), pairs)) == (0, 1)
    assert counts(validate(make_task(eval_exact_match_remove_bpe="@@ "), pairs)) == (1, 1)


def test_counts_are_summed_over_workers_and_batches():
    task = make_task()
    batches = [[(1, 8), (0, 8)], [(3, 5), (0, 0)]]  # two steps of two workers, the last a dummy
    with metrics.aggregate() as total:
        for step in batches:
            logs = [{"_exact_match_correct": c, "_exact_match_total": n} for c, n in step]
            task.reduce_metrics(logs, Criterion())
    assert total.get_smoothed_value("exact_match") == pytest.approx(100 * 4 / 21)
    assert "_exact_match_total" not in total.get_smoothed_values()


def test_a_pair_that_is_too_long_to_translate_is_named():
    task, tokens = make_task(), [torch.ones(size, dtype=torch.long) for size in (4, 9)]
    side = (tokens, [4, 9], task.tgt_dict)
    dataset = LanguagePairDataset(*side, *side)
    with pytest.raises(ValueError, match=r"pair 2 of a .* set has 9 and 9 tokens, .* prepare"):
        task.filter_indices_by_size(np.arange(2), dataset, (8, 8))
    assert task.filter_indices_by_size(np.arange(2), dataset, (8, 8), True).tolist() == [0]


def test_generation_options_reach_the_generators(monkeypatch):
    given = {"eval_exact_match_args": '{"beam": 3}', "eval_cter_args": '{"beam": 2}'}
    cfg = CompgenTranslationConfig(eval_exact_match=True, eval_cter=True, **given)
    task, built = CompgenTranslationTask(cfg, *2 * [dictionary_of("run")]), []
    base = "fairseq.tasks.fairseq_task.FairseqTask.build_model"
    monkeypatch.setattr(base, lambda *_, **__: Criterion())
    monkeypatch.setattr(task, "build_generator", lambda _, options: built.append(vars(options)))
    task.build_model(None)
    assert built == [{"beam": 3}, {"beam": 2}]


def test_classes_are_those_of_the_training_words(monkeypatch):
    monkeypatch.setitem(FINDERS, "mine", lambda dataset, *_: [dataset])
    model, given = torch.nn.Module(), []
    model.missing_classes, model.assign_classes = lambda: ("mine", None), given.append
    cfg = CompgenTranslationConfig(data="nowhere", train_subset="train")
    task = CompgenTranslationTask(cfg, *2 * [dictionary_of("run")])
    task.datasets = {"valid": "held out", "train": "train"}
    monkeypatch.setattr(task, "dataset", task.datasets.__getitem__)
    task.begin_epoch(1, model)
    assert given == ["train"]
