"""``compgen-predict``: what a checkpoint of fairseq's ``sentence_prediction`` says of sentences."""

import argparse
import math
from typing import Any, NamedTuple

import torch
from scipy.stats import pearsonr, spearmanr

from compgen.scoring.signature import signature
from compgen_fairseq.analysis import checkpoint


class Predictions(NamedTuple):
    """One entry per sentence, in the order of the data: names of classes, or numbers."""

    labels: list[Any]
    predicted: list[Any]


@torch.inference_mode()
def predict(args: argparse.Namespace) -> Predictions:
    """Run the checkpoint over a subset.

    Raises:
        ValueError: the checkpoint is of another task, or the subset cannot be predicted.
    """
    loaded = checkpoint.load(args.checkpoint, args.data, args.cpu, "sentence_prediction")
    model, task, cfg = loaded.model, loaded.task, loaded.cfg
    dataset = task.load_dataset(args.subset)
    longest = max(dataset.num_tokens(index) for index in range(len(dataset)))
    if longest > task.max_positions():
        raise ValueError(
            f"{args.data}: a sentence of {args.subset} has {longest} subwords, but the model takes"
            f" {task.max_positions()}; fine-tune it with --shorten-method truncate"
        )
    batches = task.get_batch_iterator(dataset, max_tokens=args.max_tokens)
    said: dict[int, tuple[Any, Any]] = {}
    for sample in batches.next_epoch_itr(shuffle=False):
        if "target" not in sample:
            raise ValueError(f"{args.data}: {args.subset} has no labels")
        sample = loaded.moved(sample)
        logits, _ = model(
            **sample["net_input"],
            features_only=True,
            classification_head_name=cfg.criterion.classification_head_name,
        )
        if cfg.criterion.regression_target:
            answers, targets = logits.float().view(-1).tolist(), sample["target"].view(-1).tolist()
        else:
            names = task.label_dictionary
            answers, targets = (
                [names[i + names.nspecial] for i in indices.view(-1).tolist()]
                for indices in (logits.argmax(1), sample["target"])
            )
        said |= zip(sample["id"].tolist(), zip(targets, answers, strict=True), strict=True)
    labels, predicted = zip(*(said[i] for i in range(len(dataset))), strict=True)
    return Predictions(list(labels), list(predicted))


def score(found: Predictions, subset: str, label: str | None) -> dict[str, Any]:
    """How good predictions are: what the command prints as JSON.

    Args:
        found: the predictions.
        subset: their name.
        label: only the sentences of this class count; None: all.

    Raises:
        ValueError: no sentence has that class, or a correlation is not defined.
    """
    labels, predicted = found
    stated = {"subset": subset, **({"label": label} if label is not None else {})}
    if isinstance(labels[0], float):
        if label is not None:
            raise ValueError("the labels are numbers, so --label does not go with them")
        if min(len(set(labels)), len(set(predicted))) < 2 or not all(map(math.isfinite, predicted)):
            raise ValueError("all labels or predictions are the same, or some are not finite")
        return {
            "metric": "pearson",
            "score": 100 * float(pearsonr(labels, predicted).statistic),
            "spearman": 100 * float(spearmanr(labels, predicted).statistic),
            "total": len(labels),
            "signature": signature("pearson", len(labels), **stated),
        }
    if label is not None and label not in labels:
        raise ValueError(f"no sentence of {subset} has the label {label}")
    classes = {
        name: _accuracy([answer == name for one, answer in zip(*found, strict=True) if one == name])
        for name in sorted(set(labels))
    }
    whole = _accuracy([one == answer for one, answer in zip(*found, strict=True)])
    chosen = whole if label is None else classes[label]
    return {
        "metric": "accuracy",
        **chosen,
        "classes": classes,
        "signature": signature("accuracy", chosen["total"], **stated),
    }


def _accuracy(right: list[bool]) -> dict[str, Any]:
    return {"score": 100 * sum(right) / len(right), "correct": sum(right), "total": len(right)}
