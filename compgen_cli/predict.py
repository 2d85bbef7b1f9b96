"""``compgen-predict``: what a fine-tuned model says of each sentence, and how often it is right.

For checkpoints of fairseq's task ``sentence_prediction``. Classes are scored by accuracy, numbers
by Pearson's and Spearman's correlation, all in percent.
"""

import argparse
import json
import logging
import sys
from typing import Any, NamedTuple

import torch

from compgen.output import write_files
from compgen.scoring.signature import signature


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
    from fairseq import checkpoint_utils, utils

    import compgen_fairseq  # noqa: F401
    from compgen_fairseq.analysis.checkpoint import read

    state = read(args.checkpoint, {"data": args.data})
    if (name := getattr(state["cfg"].task, "_name", None)) != "sentence_prediction":
        raise ValueError(f"{args.checkpoint} is of the task {name}, not of sentence_prediction")
    try:
        (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task(
            [args.checkpoint], state=state
        )
    except RuntimeError as error:  # PyTorch's, when the sizes differ
        raise ValueError(f"{args.checkpoint}: {str(error).splitlines()[-1].strip()}") from None
    cuda = torch.cuda.is_available() and not args.cpu
    model = model.cuda().eval() if cuda else model.eval()
    dataset = task.load_dataset(args.subset)
    longest = max(dataset.num_tokens(index) for index in range(len(dataset)))
    if longest > task.max_positions():
        raise ValueError(
            f"{args.data}: a sentence of {args.subset} has {longest} subwords, but the model takes"
            f" {task.max_positions()}; fine-tune it with --shorten-method truncate"
        )
    batches = task.get_batch_iterator(dataset, max_tokens=args.max_tokens)
    labels: dict[int, Any] = {}
    predicted: dict[int, Any] = {}
    for sample in batches.next_epoch_itr(shuffle=False):
        if "target" not in sample:
            raise ValueError(f"{args.data}: {args.subset} has no labels")
        sample = utils.move_to_cuda(sample) if cuda else sample
        logits, _ = model(
            **sample["net_input"],
            features_only=True,
            classification_head_name=cfg.criterion.classification_head_name,
        )
        numbers = sample["id"].tolist()
        if cfg.criterion.regression_target:
            answers, targets = logits.float().view(-1).tolist(), sample["target"].view(-1).tolist()
        else:
            names = task.label_dictionary
            answers, targets = (
                [names[i + names.nspecial] for i in indices.view(-1).tolist()]
                for indices in (logits.argmax(1), sample["target"])
            )
        predicted |= dict(zip(numbers, answers, strict=True))
        labels |= dict(zip(numbers, targets, strict=True))
    order = range(len(dataset))
    return Predictions([labels[i] for i in order], [predicted[i] for i in order])


def score(found: Predictions, subset: str, label: str | None) -> dict[str, Any]:
    """How good predictions are: what the command prints as JSON.

    Args:
        found: the predictions.
        subset: their name.
        label: only the sentences of this class count; None: all.

    Raises:
        ValueError: no sentence has that class, or a correlation is not defined.
    """
    from scipy.stats import pearsonr, spearmanr

    labels, predicted = found
    stated = {"subset": subset, **({"label": label} if label is not None else {})}
    if isinstance(labels[0], float):
        if label is not None:
            raise ValueError("the labels are numbers, so --label does not go with them")
        if len(set(labels)) < 2 or len(set(predicted)) < 2:
            raise ValueError("all labels or all predictions are the same: no correlation")
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


def _lines(scored: dict[str, Any]) -> list[str]:
    if scored["metric"] == "pearson":
        numbers = f"{scored['score']:.2f}, spearman {scored['spearman']:.2f}"
        return [f"pearson {numbers} ({scored['total']} sentences)"]
    rows = {"": scored, **{f" of {name}": found for name, found in scored["classes"].items()}}
    return [
        f"accuracy{what} {row['score']:.2f} ({row['correct']} / {row['total']})"
        for what, row in rows.items()
    ]


def main(argv: list[str] | None = None) -> int:
    """Print the scores; what can't be done ends in one sentence."""
    parser = argparse.ArgumentParser(prog="compgen-predict", description=__doc__)
    add = parser.add_argument
    add("checkpoint", help="a fine-tuned one")
    add("data", help="the data folder, with input0 and label")
    add("--subset", default="test", help="default: %(default)s")
    add("--label", help="score only the sentences of this class: PAWS's non-paraphrases are 0")
    add("--out", metavar="FILE", help="write label and prediction there, a line per sentence")
    text = "subwords in a batch (default: %(default)s)"
    add("--max-tokens", type=int, default=8192, metavar="N", help=text)
    add("--cpu", action="store_true", help="use no GPU")
    add("--json", action="store_true", help="print JSON")
    add("--json-out", metavar="FILE", help="also write the JSON there")
    args = parser.parse_args(argv)
    for chatty in ("fairseq", "compgen_fairseq"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
    try:
        found = predict(args)
        scored = score(found, args.subset, args.label)
        rows = (f"{label}\t{answer}\n" for label, answer in zip(*found, strict=True))
        texts = {args.out: "".join(rows), args.json_out: f"{json.dumps(scored)}\n"}
        write_files({path: text for path, text in texts.items() if path})
    except (ValueError, OSError, AssertionError) as error:
        print(f"compgen-predict: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(json.dumps(scored) if args.json else "\n".join(_lines(scored)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
