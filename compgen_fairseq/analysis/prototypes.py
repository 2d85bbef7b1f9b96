"""``compgen-analyze prototypes``: one word's states in a plane, with its prototypes.

Figure 5 of Yin, Li, Meng, Zhou and Zhang (2022): the encoder's states of "liked", those in certain
contexts marked, and the prototypes of the word. The states are the checkpoint's; its prototypes are
centres of the states after stage 1, which stage 2 moves.
"""

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fairseq.models.transformer import TransformerModelBase

from compgen import plotting
from compgen.ranges import AT_LEAST_1, SEED
from compgen_fairseq.analysis import checkpoint, vocabulary
from compgen_fairseq.analysis.checkpoint import Loaded
from compgen_fairseq.analysis.labels import plane
from compgen_fairseq.analysis.projection import tsne
from compgen_fairseq.models.proto_transformer import PrototypeConfig
from compgen_fairseq.prototypes.extract import collect_word
from compgen_fairseq.prototypes.kmeans import prototypes_of

OTHER = "other"


class Context(NamedTuple):
    """A kind of use: where the pattern matches a part of the sentence with the word in it."""

    pattern: re.Pattern[str]
    tag: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this kind."""
    checkpoint.add_arguments(parser)
    parser.add_argument("word", metavar="WORD", help="of the source side")
    parser.add_argument(
        "--context",
        action="append",
        default=[],
        type=context,
        metavar="REGEX=TAG",
        help="uses where REGEX matches a part of the sentence with the word in it are TAG; the "
        "first that matches counts (may be repeated)",
    )
    parser.add_argument("--subset", default="train", help="default: %(default)s")
    text = "at most this many states (default: %(default)s)"
    parser.add_argument("--most", type=AT_LEAST_1.whole, default=2000, metavar="N", help=text)
    text = "k-means centres where the model has no prototypes of the word (default: %(default)s)"
    parser.add_argument("--centres", type=AT_LEAST_1.whole, default=3, metavar="K", help=text)
    text = "of t-SNE (default: 30, of few states a third of their number)"
    parser.add_argument("--perplexity", type=AT_LEAST_1.number, help=text)
    parser.add_argument("--seed", type=SEED.whole, default=1, help="default: %(default)s")
    text = "tokens in a batch (default: %(default)s)"
    parser.add_argument("--max-tokens", type=AT_LEAST_1.whole, default=8192, metavar="N", help=text)


def context(text: str) -> Context:
    """A context from ``REGEX=TAG``.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    pattern, equals, tag = text.rpartition("=")
    if not (pattern and equals and tag):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form REGEX=TAG")
    try:
        return Context(re.compile(pattern), tag)
    except (re.error, OverflowError, RecursionError) as error:
        raise argparse.ArgumentTypeError(
            f"{pattern!r} is not a regular expression: {error}"
        ) from None


def run(args: argparse.Namespace) -> list[Path]:
    """Write ``prototypes_WORD`` as PNG, PDF, CSV and JSON.

    Raises:
        ValueError: if a word is not there, there are fewer than 4 vectors, or the model has no such
            states.
    """
    from sklearn.metrics import pairwise_distances_argmin

    loaded = checkpoint.load(args.checkpoint, args.data, args.cpu)
    if not isinstance(loaded.model, TransformerModelBase):
        raise ValueError(
            f"{args.checkpoint} has no states to cluster: this takes fairseq's transformer and "
            "what is built on it, such as proto_transformer"
        )
    dictionary = loaded.dictionary("source")
    word = vocabulary.index(dictionary, args.word, "source")
    if word < dictionary.nspecial:
        raise ValueError(f"{args.word!r} is a symbol, not a word: it has no prototypes")
    dataset = checkpoint.subset(loaded, args.subset)
    options: Any = getattr(loaded.model, "prototype_config", PrototypeConfig())
    sample, found = collect_word(
        loaded.model, dataset, word, args.most, args.max_tokens, options.prototype_layer
    )
    if len(sample) == 0:
        raise ValueError(f"{args.word!r} does not occur in the subset {args.subset} of {args.data}")
    states = found.numpy()
    centres = trained(loaded, word)
    kind = "prototypes" if len(centres) else "k-means centres"
    if not len(centres):
        centres = prototypes_of(states.astype(np.float16), args.centres, args.seed)
    places = tsne(np.concatenate([states, centres]), args.seed, args.perplexity)
    points, stars = places.points[: len(states)], places.points[len(states) :]
    sentences = [dictionary.string(dataset[int(i)]["source"]).split() for i in sample.sentences]
    tags = [
        tag_of(sentence, int(place), args.context)
        for sentence, place in zip(sentences, sample.positions, strict=True)
    ]
    nearest = pairwise_distances_argmin(states, centres)
    rows: list[dict[str, Any]] = [
        {"what": "state", "tag": tags[i], "nearest": int(nearest[i])}
        | {"x": round(float(x), 3), "y": round(float(y), 3)}
        | {"position": int(sample.positions[i]), "sentence": " ".join(sentences[i])}
        for i, (x, y) in enumerate(points)
    ]
    rows += [
        {"what": kind, "tag": "", "nearest": i, "x": round(float(x), 3), "y": round(float(y), 3)}
        | {"position": None, "sentence": ""}
        for i, (x, y) in enumerate(stars)
    ]
    order = list(dict.fromkeys([*(c.tag for c in args.context), OTHER]))
    summary = {
        "checkpoint": args.checkpoint,
        "word": args.word,
        "subset": args.subset,
        "states": len(states),
        "centres": kind,
        "number_of_centres": len(centres),
        "seed": args.seed,
        "perplexity": round(places.perplexity, 4),
        "kl_divergence": round(places.divergence, 4),
        "tags": [
            {"tag": tag, "states": len(here), "nearest": dict(sorted(Counter(here).items()))}
            for tag in order
            for here in [nearest[np.array(tags) == tag].tolist()]
        ],
    }
    picture = draw(points, stars, tags, order, kind, args.word)
    safe = re.sub(r"[^\w.-]", "_", args.word)
    return plotting.save_all(picture, args.out, f"prototypes_{safe}", rows, summary)


def trained(loaded: Loaded, word: int) -> np.ndarray:
    """The prototypes of a source type in the model, float32, ``(k, dim)``; ``k`` may be 0."""
    encoder = loaded.model.encoder
    table = getattr(encoder, "prototypes", None)
    if table is None or not table.filled or (slot := int(table.slots[word])) < 0:
        return np.empty((0, encoder.embed_tokens.embedding_dim), dtype=np.float32)
    return table.vectors[slot, : int(table.counts[slot])].detach().float().cpu().numpy()


def tag_of(sentence: Sequence[str], place: int, contexts: Sequence[Context]) -> str:
    """The tag of a sentence's word at a place: that of the first context with a match that has the
    word in it."""
    begin = sum(len(word) + 1 for word in sentence[:place])
    end = begin + len(sentence[place])
    text = " ".join(sentence)
    for pattern, tag in contexts:
        matches = (pattern.match(text, start) for start in range(begin + 1))  # they may overlap
        if any(match and match.end() >= end for match in matches):
            return tag
    return OTHER


def draw(
    points: np.ndarray,
    stars: np.ndarray,
    tags: Sequence[str],
    order: Sequence[str],
    kind: str,
    word: str,
) -> Any:
    """The picture: states with the marker of their tag, the others grey, the centres as stars."""
    picture = plotting.new()
    axes = plane(picture)
    are = np.array(tags)
    for place, tag in reversed(list(enumerate(order))):
        here = points[are == tag]
        if tag == OTHER:
            look: dict[str, Any] = {"color": "0.6", "marker": "1", "s": 20, "linewidths": 0.8}
        else:
            look = {**plotting.style(place), "s": 16, "linewidths": 0}
        axes.scatter(*here.T, **look, label=f"{tag} ({len(here):,})")
    axes.scatter(
        *stars.T,
        color="black",
        marker="*",
        s=180,
        edgecolors="white",
        label=f"{kind} ({len(stars)})",
    )
    text = f"t-SNE of {len(points):,} encoder states of “{word}”"
    if kind != "prototypes":
        text += (
            "; the model has no prototypes of it,\nthe stars are k-means centres of these states"
        )
    axes.set_title(text, loc="left", fontsize=9)
    picture.legend(loc="outside right upper", fontsize=8)
    return picture
