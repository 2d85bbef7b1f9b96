"""``compgen-sememes``: the codes that a CAT checkpoint decomposes the words of a text into."""

import argparse
from collections.abc import Iterator, Sequence, Set
from typing import Any

import torch
from fairseq.data import data_utils
from torch import Tensor

from compgen_fairseq.analysis import checkpoint

BATCH = 32  # segments at a time


def occurrences(dataset: Any, dictionary: Any, words: Set[str]) -> Iterator[tuple[Tensor, Any]]:
    """Each segment with one of the words in it.

    Returns:
        Its tokens ``[CLS] ... [SEP]``, and for each occurrence the word and its positions.
    """
    for index in range(len(dataset)):
        tokens, starts = dataset.segment(index)
        places = starts.nonzero().squeeze(-1).tolist()
        text = dictionary.string(tokens[1:-1], bpe_symbol="@@ ").split()
        places = places[1:]  # of the words and of [SEP]
        found = [
            (word, range(first, last))
            for word, first, last in zip(text, places, places[1:], strict=False)
            if word in words
        ]
        if found:
            yield tokens, found


@torch.no_grad()
def decompose(
    model: Any, task: Any, subset: str, words: Sequence[str], layer: int
) -> dict[str, list[Tensor]]:
    """The weights of a layer's codes for each occurrence of each word, ``(K,)``; those of a word
    are the mean of its subwords', or with ``--word-average`` the last layer's of their mean state,
    as in training."""
    block, last = model.encoder.layers[layer].composition, layer + 1 == len(model.encoder.layers)
    averaged = task.cfg.word_average and last
    pairs = list(occurrences(task.dataset(subset), task.dictionary, set(words)))
    weights: dict[str, list[Tensor]] = {word: [] for word in words}
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        tokens = data_utils.collate_tokens([segment for segment, _ in batch], task.dictionary.pad())
        _, composition = model.encoder.representations(tokens)
        outputs = composition.layers[layer]
        for row, (_, found) in enumerate(batch):
            for word, places in found:
                if averaged:
                    mean = outputs.cont[row, list(places)].mean(0)
                    weights[word].append(block.weights(block.scores(mean)))
                else:
                    weights[word].append(outputs.attention[row, list(places)].mean(0))
    return weights


def summarize(
    word: str, weights: list[Tensor], names: Sequence[str], right: Sequence[int], top: int
) -> dict[str, Any]:
    """What is said of a word.

    Args:
        word: the word.
        weights: of the codes, ``(K,)``, for each occurrence.
        names: of the codes.
        right: the codes that annotate the word.
        top: how many codes are named.

    Returns:
        ``word``; ``occurrences``; ``zeros``, the mean share of codes without weight; ``right``,
        the mean share of the weight that is on annotated sememes (None without annotation);
        ``codes``: those of most weight, each with ``code``, mean ``weight``, ``used``, the share of
        occurrences that have it, and ``annotated``.
    """
    found = torch.stack(weights)
    mean, used = found.mean(0), found.gt(0).float().mean(0)
    share = None
    if right:
        share = round((mean[list(right)].sum() / mean.sum().clamp(min=1e-9)).item(), 4)
    best = mean.topk(min(top, len(mean)))
    return {
        "word": word,
        "occurrences": len(weights),
        "zeros": round(found.eq(0).float().mean().item(), 4),
        "right": share,
        "codes": [
            {
                "code": names[code],
                "weight": round(value, 4),
                "used": round(used[code].item(), 4),
                "annotated": code in right,
            }
            for value, code in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            if value > 0
        ],
    }


def describe(args: argparse.Namespace) -> list[dict[str, Any]]:
    """What is said of each word that the command names.

    Raises:
        ValueError: a word does not occur, or the model has no such layer.
    """
    loaded = checkpoint.load(args.checkpoint, args.data, cpu=True, task="cat_pretraining")
    if loaded.cfg.model.composition == "none":
        raise ValueError(f"{args.checkpoint} holds no CAT model: it is of --composition none")
    model, task = loaded.model, loaded.task
    layers = len(model.encoder.layers)
    number = layers if args.layer is None else args.layer
    if number > layers:
        raise ValueError(f"--layer is between 1 and {layers}, the number of layers")
    task.load_dataset(args.subset)
    weights = decompose(model, task, args.subset, args.words, number - 1)
    for word, found in weights.items():
        if not found:
            raise ValueError(f"{word!r} does not occur in the subset {args.subset} of {args.data}")
    last = number == layers  # its codes are sememes
    codes = len(model.encoder.layers[number - 1].composition.codebook)
    names = [f"code {code}" for code in range(codes)]
    if last:
        names[: len(task.sememes)] = task.sememes
    return [
        summarize(word, found, names, task.annotations.of(word) if last else (), args.top)
        for word, found in weights.items()
    ]
