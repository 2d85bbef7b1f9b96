"""``compgen-analyze codes``: how a model uses its codes, and what they know of parts of speech.

Appendix C.1 of Jiang, Zhou and Bansal (2024): a linear classifier that tells a word's part of
speech from the embedding of its code.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from compgen import plotting
from compgen.ranges import AT_LEAST_1, SEED, flag_of
from compgen_fairseq.analysis import checkpoint, vocabulary
from compgen_fairseq.analysis.tags import read_tags, scan_tags
from compgen_fairseq.progress import progress

FOLDS = 10
FIGURE = {"side": "source", "subset": "train", "top_words": 6, "seed": 1}  # flags and defaults
MOST_TAGS = 7  # that have a hatch of their own in the picture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this kind is told."""
    checkpoint.add_arguments(parser)
    text = "without --out: only the codes of these words, a line each"
    parser.add_argument("words", nargs="*", metavar="WORD", help=text)
    parser.add_argument("--json", action="store_true", help="without --out: print JSON")
    figure = parser.add_argument_group("with --out")
    text = "whose codes (default: source)"
    figure.add_argument("--side", choices=vocabulary.SIDES, help=text)
    text = "the part of the data whose tokens are counted (default: train)"
    figure.add_argument("--subset", help=text)
    text = "parts of speech, a line of word TAB tag each; 'scan' for those of SCAN's grammar"
    figure.add_argument("--tags", metavar="FILE", help=text)
    text = "words of each code in the picture (default: 6)"
    figure.add_argument("--top-words", type=AT_LEAST_1.whole, metavar="N", help=text)
    text = "seed of the probe's folds (default: 1)"
    figure.add_argument("--seed", type=SEED.whole, help=text)


def run(args: argparse.Namespace) -> list[Path] | list[str]:
    """Write ``codes_SIDE`` as PNG, PDF, CSV and JSON; without ``--out`` say the words of each code.

    Raises:
        ValueError: if the model has no codes, the data no such words, or the flags do not fit.
    """
    if bool(args.words) + args.json + bool(args.out) > 1:
        raise ValueError("say one of WORD ..., --json and --out FOLDER")
    if not args.out:
        for name in ("tags", *FIGURE):
            if getattr(args, name) is not None:
                raise ValueError(f"{flag_of(name)} is for a figure: say --out FOLDER, too")
        return listed(args)
    for name, default in FIGURE.items():
        if getattr(args, name) is None:
            setattr(args, name, default)
    loaded = checkpoint.load(args.checkpoint, args.data, args.cpu)
    codes = vocabulary.type_codes(loaded, args.side)
    codebook = vocabulary.quantizer_of(loaded, args.side).codebook().detach().cpu().numpy()
    dictionary = loaded.dictionary(args.side)
    types = vocabulary.words(dictionary)
    words = [dictionary[i] for i in types]
    tags: dict[str, str] = {}
    if args.tags:
        known = scan_tags(words) if args.tags == "scan" else read_tags(args.tags)
        tags = {word: known[word] for word in words if word in known}
        if not tags:
            raise ValueError(f"{args.tags} has no word of the {args.side} dictionary")
    counts = count(checkpoint.subset(loaded, args.subset), args.side, len(dictionary))[types]
    codes = codes[types]
    order = np.argsort(-counts, kind="stable")
    usage = np.bincount(codes, weights=counts, minlength=len(codebook))
    if usage.sum() == 0:
        raise ValueError(f"the subset {args.subset} of {args.data} has no {args.side} words")
    members = [order[codes[order] == code] for code in range(len(codebook))]
    rows = [
        {"code": code, "words": len(group), "tokens": int(usage[code])}
        | {"share": round(usage[code] / usage.sum(), 6)}
        | _tags_of([words[i] for i in group], tags)
        for code, group in enumerate(members)
    ]
    summary = {
        **{"checkpoint": args.checkpoint, "side": args.side, "subset": args.subset},
        **statistics(usage),
        "codes_with_words": len(set(codes.tolist())),
        "words": {
            str(code): [[words[i], int(counts[i])] for i in group]
            for code, group in enumerate(members)
        },
    }
    if tags:
        tagged = np.array([i for i, word in enumerate(words) if word in tags])
        gold = np.array([tags[words[i]] for i in tagged])
        summary["tags"] = {
            **{"file": args.tags, "tagged_words": len(tagged), "tags": len(set(gold.tolist()))},
            "untagged_tokens": int(counts.sum() - counts[tagged].sum()),
            "purity": purity(codes[tagged], gold, np.ones(len(tagged))),
            "purity_by_tokens": purity(codes[tagged], gold, counts[tagged]),
            "majority_tag": purity(np.zeros_like(tagged), gold, np.ones(len(tagged))),
            "majority_tag_by_tokens": purity(np.zeros_like(tagged), gold, counts[tagged]),
            "probe": probe(codebook[codes[tagged]], gold, counts[tagged], args.seed),
        }
    title = (
        f"Use of the {len(codebook)} {args.side} codes by {int(usage.sum()):,} tokens of "
        f"{args.subset}: entropy {summary['entropy_bits']:.2f} bits"
    )
    picture = draw(rows, words, codes, counts, tags, title, args.top_words)
    return plotting.save_all(picture, args.out, f"codes_{args.side}", rows, summary)


def listed(args: argparse.Namespace) -> list[str]:
    """The words of each code on both sides, as JSON or as lines of side, code and words; or such a
    line for each of some words, behind the word."""
    loaded = checkpoint.load(args.checkpoint, args.data, cpu=True)
    clusters = {side: words_per_code(loaded, side) for side in vocabulary.SIDES}
    if args.json:
        return [json.dumps(clusters, ensure_ascii=False, indent=1)]
    rows = [
        (side, str(code), words)
        for side, groups in clusters.items()
        for code, words in enumerate(groups)
    ]
    if unknown := sorted(set(args.words).difference(*(words for *_, words in rows))):
        raise ValueError(f"{args.data} has no word {unknown[0]!r}")
    if not args.words:
        return ["\t".join([side, code, " ".join(words)]) for side, code, words in rows]
    return [
        "\t".join([word, side, code, " ".join(words)])
        for word in args.words
        for side, code, words in rows
        if word in words
    ]


def words_per_code(loaded: checkpoint.Loaded, side: str) -> list[list[str]]:
    """The end of the sentence and the words of each code of a side, the most frequent first.

    Raises:
        ValueError: if the model has no codes.
    """
    codes, dictionary = vocabulary.type_codes(loaded, side), loaded.dictionary(side)
    groups: list[list[str]] = [[] for _ in range(vocabulary.quantizer_of(loaded, side).num_codes)]
    for index in (dictionary.eos(), *vocabulary.words(dictionary)):
        groups[codes[index]].append(dictionary[index])
    return groups


def count(dataset: Any, side: str, types: int) -> np.ndarray:
    """How often each type occurs on a side of a parallel corpus, ``(types,)``."""
    counts = np.zeros(types, dtype=np.int64)
    for i in progress(range(len(dataset)), "counting words", len(dataset), " sentences"):
        np.add.at(counts, dataset[i][side].numpy(), 1)
    return counts


def statistics(usage: np.ndarray) -> dict[str, float]:
    """Of the tokens of each code, ``(codes,)``: how evenly the codes are used.

    Returns:
        ``codes``, ``used_codes``, ``tokens``; ``entropy_bits`` of the codes' shares;
        ``effective_codes``, 2 to that power: so many codes used evenly have this entropy.
    """
    shares = usage[usage > 0] / usage.sum()
    entropy = float(-(shares * np.log2(shares)).sum())
    return {
        **{"codes": len(usage), "used_codes": len(shares), "tokens": int(usage.sum())},
        **{"entropy_bits": round(abs(entropy), 4), "effective_codes": round(2**entropy, 2)},
    }


def purity(groups: np.ndarray, tags: np.ndarray, weights: np.ndarray) -> float | None:
    """The share of words that have the most frequent tag of their group.

    Args:
        groups: of each word, ``(n,)``.
        tags: of each word, ``(n,)``.
        weights: how much each word counts, ``(n,)``: 1, or its occurrences.

    Returns:
        between 0 and 1; None if nothing counts.
    """
    right: dict[Any, Counter[str]] = {}
    for group, tag, weight in zip(groups.tolist(), tags.tolist(), weights.tolist(), strict=True):
        right.setdefault(group, Counter())[tag] += weight
    total = weights.sum()
    return round(sum(max(c.values()) for c in right.values()) / total, 4) if total else None


def probe(vectors: np.ndarray, tags: np.ndarray, counts: np.ndarray, seed: int) -> dict[str, Any]:
    """Accuracy of logistic regression from vectors to tags, by cross-validation over words.

    Args:
        vectors: the embeddings of the words' codes, ``(n, dim)``.
        tags: of the words, ``(n,)``.
        counts: how often they occur, ``(n,)``; the classifier counts each word once.
        seed: of the folds.

    Returns:
        ``accuracy`` over words and ``accuracy_by_tokens``, and of the classifier that always says
        the most frequent tag of its training words; ``folds``.

    Raises:
        ValueError: if there are too few words or tags.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = KFold(max(2, min(FOLDS, len(tags))), shuffle=True, random_state=seed)
    if len(tags) < 2 or any(len(set(tags[train])) < 2 for train, _ in folds.split(tags)):
        raise ValueError("--tags: too few tagged words of different tags for a probe")
    result: dict[str, Any] = {"folds": folds.get_n_splits()}
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    for name, model in (("", linear), ("majority_", DummyClassifier())):
        right = cross_val_predict(model, vectors, tags, cv=folds) == tags
        result[f"{name}accuracy"] = round(float(right.mean()), 4)
        by_tokens = round(float(right @ counts / counts.sum()), 4) if counts.sum() else None
        result[f"{name}accuracy_by_tokens"] = by_tokens
    return result


def _tags_of(words: list[str], tags: dict[str, str]) -> dict[str, Any]:
    """The last columns of a code's row: its words, and their most frequent tag if there are."""
    if not tags:
        return {"top_words": " ".join(words)}
    found = Counter(tags[word] for word in words if word in tags)
    tag, number = found.most_common(1)[0] if found else ("", 0)
    share = round(number / found.total(), 4) if found else None
    return {"majority_tag": tag, "purity": share, "top_words": " ".join(words)}


def draw(
    rows: list[dict[str, Any]],
    words: list[str],
    codes: np.ndarray,
    counts: np.ndarray,
    tags: dict[str, str],
    title: str,
    top_words: int,
) -> Any:
    """The picture: a bar per code, the most used on top, divided by tags, beside its words."""
    order = np.argsort([-row["tokens"] for row in rows], kind="stable")
    height = np.argsort(order)  # of each code's bar, from the top
    picture = plotting.new(7.5, 1.2 + 0.22 * len(rows))
    axes = picture.add_subplot()
    by_tag: Counter[str] = Counter()
    for word, number in zip(words, counts.tolist(), strict=True):
        by_tag[tags.get(word, "")] += number
    named = [tag for tag, _ in by_tag.most_common() if tag][:MOST_TAGS]
    coloured = [tag if (tag := tags.get(word)) in named else None for word in words]
    left, shares = np.zeros(len(rows)), 100 * counts / counts.sum()
    for place, name in enumerate([*named, None]):
        inside = [tag == name for tag in coloured]
        part = np.bincount(codes[inside], weights=shares[inside], minlength=len(rows))
        if not part.any():
            continue
        look = plotting.hatch(place) if name else {"color": "0.7" if tags else plotting.COLOURS[0]}
        axes.barh(height, part, left=left, label=name, **look)
        left += part
    for row in rows:
        shown = str(row["top_words"]).split()
        text = " ".join(shown[:top_words]) + (" …" if len(shown) > top_words else "")
        axes.annotate(
            text or "(no word)",
            (left[row["code"]], height[row["code"]]),
            xytext=(4, 0),
            textcoords="offset points",
            verticalalignment="center",
            fontsize=7,
        )
    axes.set_yticks(range(len(order)), [f"code {code}" for code in order], fontsize=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("share of the tokens (%)")
    axes.set_xlim(0, left.max() * 1.6)
    axes.set_title(title, loc="left", fontsize=9)
    if named:
        axes.legend(title="part of speech", loc="lower right", fontsize=7)
    return picture
