"""``compgen-analyze consistency``: how many source words each target word is aligned to."""

import argparse
import html
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from torch import Tensor

from compgen import plotting
from compgen.ranges import AT_LEAST_1
from compgen_fairseq.analysis import checkpoint
from compgen_fairseq.analysis.attention_maps import attention_maps, translator
from compgen_fairseq.analysis.checkpoint import Loaded
from compgen_fairseq.analysis.vocabulary import index

LISTED = 10  # source words of each target word in the CSV; the JSON has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this kind."""
    checkpoint.add_arguments(parser)
    add = parser.add_argument
    add("--versus", metavar="CHECKPOINT", help="another model of the same data, to compare with")
    add("--label", nargs="+", metavar="NAME", help="what the models are called in the picture")
    text = "the target words (pieces, if the data has them)"
    add("--words", nargs="+", metavar="WORD", help=text)
    text = (
        "without --words: the N most frequent ones with a letter that are not English stop words "
        "(default: 10)"
    )
    add("--top", type=AT_LEAST_1.whole, metavar="N", help=text)
    add("--subset", default="test", help="default: %(default)s")
    text = "of a batch (default: %(default)s)"
    add("--max-tokens", type=AT_LEAST_1.whole, default=8192, help=text)
    text = (
        "the decoder's layer whose attention, mean over its heads, is the alignment; the first is "
        "1 (default: the last)"
    )
    add("--layer", type=AT_LEAST_1.whole, metavar="L", help=text)
    text = (
        "the attention of the step that writes the word (output, the default), or of the one that "
        "reads it (input), as in Shift-Att of Chen et al. (2020)"
    )
    add("--step", choices=("output", "input"), default="output", help=text)


def run(args: argparse.Namespace) -> list[Path]:
    """Count and write.

    Raises:
        ValueError: if a word or layer is not there, or the model has no alignment.
    """
    paths = [args.checkpoint, *([args.versus] if args.versus else [])]
    labels = args.label or [str(Path(path).with_suffix("")) for path in paths]
    if len(labels) != len(paths) or len(set(labels)) != len(labels):
        raise ValueError(f"--label: name each of {len(paths)} models differently")
    found: dict[str, dict[int, Counter[int]]] = {}
    first: Loaded | None = None
    for label, path in zip(labels, paths, strict=True):
        loaded = translator(checkpoint.load(path, args.data, args.cpu))
        if first is None:
            first, data = loaded, checkpoint.subset(loaded, args.subset)
            words = _words(args, loaded.dictionary("target"), data)
        checkpoint.same_words(first, loaded)
        found[label] = count(loaded, args, words)
    return _write(args, loaded, words, found)


def count(
    loaded: Loaded, args: argparse.Namespace, words: Sequence[int]
) -> dict[int, Counter[int]]:
    """How often each target type is aligned to each source type, teacher-forced on the subset.

    A token is aligned to the one source token, the end of the sentence left out, that the mean of
    a layer's heads puts most weight on.

    Raises:
        ValueError: if there is no such layer, or no attention to the source.
    """
    source, target = loaded.dictionary("source"), loaded.dictionary("target")
    counts: dict[int, Counter[int]] = {word: Counter() for word in words}
    wanted = torch.zeros(len(target), dtype=torch.bool)
    wanted[torch.tensor(words)] = True
    for sample in checkpoint.batches(loaded, args.subset, args.max_tokens):
        weights = attention_maps(loaded.model, sample["net_input"]).get("cross")
        if weights is None:
            raise ValueError(f"{loaded.path}: its decoder has no attention to the source")
        layers = weights.size(1)
        layer = args.layer or layers
        if layer > layers:
            raise ValueError(f"--layer {layer}: {loaded.path} has layers 1 to {layers}")
        inputs = sample["net_input"]
        sources = inputs["src_tokens"].cpu()
        left_out = (source.pad(), source.eos())
        aligned = align(weights[:, layer - 1].mean(1), sources, left_out)
        tokens = sample["target"] if args.step == "output" else inputs["prev_output_tokens"]
        tokens = tokens.cpu()
        chosen = wanted[tokens] & ~torch.isin(aligned, torch.tensor(left_out))  # of empty sources
        for word, other in zip(tokens[chosen].tolist(), aligned[chosen].tolist(), strict=True):
            counts[word][other] += 1
    return counts


def align(weights: Tensor, sources: Tensor, left_out: Sequence[int]) -> Tensor:
    """The source token that each step attends to most.

    Args:
        weights: ``(batch, steps, keys)``; keys before the last ``src_len`` are no source tokens.
        sources: ``(batch, src_len)``.
        left_out: source types that nothing is aligned to.

    Returns:
        ``(batch, steps)``.
    """
    hidden = torch.isin(sources, torch.tensor(left_out))
    words = weights[..., -sources.size(1) :].masked_fill(hidden.unsqueeze(1), -1.0)
    return sources.gather(1, words.argmax(-1))


def _words(args: argparse.Namespace, dictionary: Any, data: Any) -> list[int]:
    """The target types that the flags ask for."""
    seen = Counter(int(token) for i in range(len(data)) for token in data[i]["target"])
    if args.words and args.top:
        raise ValueError("--top is for the most frequent words: leave it or --words out")
    if args.words:
        chosen = [index(dictionary, word, "target") for word in dict.fromkeys(args.words)]
        for word in chosen:
            if not seen[word]:
                raise ValueError(
                    f"{dictionary[word]!r} does not occur in the subset {args.subset}: "
                    "choose another"
                )
        return chosen

    def content(type_: int) -> bool:
        word = html.unescape(dictionary[type_]).replace("▁", "")  # Moses writes 's as &apos;s
        letters = type_ >= dictionary.nspecial and any(c.isalpha() for c in word)
        whole = word.strip("'") == word.removesuffix("@@")
        return letters and whole and word.lower() not in ENGLISH_STOP_WORDS

    frequent = [type_ for type_, _ in seen.most_common() if content(type_)]
    if not frequent:
        raise ValueError(f"the subset {args.subset} has no words with letters: say --words")
    return frequent[: args.top or 10]


def _write(
    args: argparse.Namespace,
    loaded: Loaded,
    words: Sequence[int],
    found: Mapping[str, Mapping[int, Counter[int]]],
) -> list[Path]:
    """Write the picture and the numbers."""
    source, target = loaded.dictionary("source"), loaded.dictionary("target")
    rows: list[dict[str, Any]] = []
    models: dict[str, Any] = {}
    for label, counts in found.items():
        told: dict[str, Any] = {}
        for word in words:
            types = sorted(counts[word].items(), key=lambda one: (-one[1], one[0]))
            aligned = {source[type_]: number for type_, number in types}
            numbers = {"occurrences": counts[word].total(), "types": len(aligned)}
            told[target[word]] = {**numbers, "aligned": aligned}
            first = " ".join(list(aligned)[:LISTED])
            rows.append({"model": label, "word": target[word], **numbers, "aligned": first})
        mean = sum(one["types"] for one in told.values()) / len(told)
        models[label] = {"mean": mean, "words": told}
    settings = {name: getattr(args, name) for name in ("subset", "layer", "step")}
    picture, told = _draw(models, args.subset), {**settings, "models": models}
    return plotting.save_all(picture, args.out, "consistency", rows, told)


def _draw(models: Mapping[str, Any], subset: str) -> Any:
    """Bars of the number of source types for each word and model."""
    words = list(next(iter(models.values()))["words"])
    made = plotting.new(6.4, 1.2 + 0.22 * len(words) * len(models))
    axes = made.subplots()
    thick = 0.8 / len(models)
    for i, (label, found) in enumerate(models.items()):
        types = [found["words"][word]["types"] for word in words]
        places = np.arange(len(words)) + thick * (i - (len(models) - 1) / 2)
        name = f"{label} (mean {found['mean']:.1f})"
        bars = axes.barh(places, types, thick, label=name, **plotting.hatch(i))
        axes.bar_label(bars, fontsize=7, padding=2)
    axes.set_yticks(range(len(words)), words)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel(f"distinct source types aligned in {subset}")
    made.legend(loc="outside upper center", ncols=1)
    return made
