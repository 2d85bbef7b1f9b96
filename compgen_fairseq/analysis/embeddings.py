"""``compgen-analyze embeddings``: the words of a side in a plane, and which are neighbours.

Figures 3, 4, 6 and 7 and table 5 of Jiang, Zhou and Bansal (2024): t-SNE of the source embeddings,
coloured by their codes.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compgen import plotting
from compgen.ranges import AT_LEAST_1, SEED
from compgen_fairseq.analysis import checkpoint, vocabulary
from compgen_fairseq.analysis.checkpoint import Loaded
from compgen_fairseq.analysis.labels import place_labels, plane
from compgen_fairseq.analysis.projection import Projection, tsne
from compgen_fairseq.prototypes.kmeans import kmeans

LABELS = 150  # at most, of the most frequent words
CROWD = 2000  # of points, from which on they are smaller, and pixels in the PDF


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this kind."""
    checkpoint.add_arguments(parser)
    text = "default: %(default)s"
    parser.add_argument("--side", choices=vocabulary.SIDES, default="source", help=text)
    text = "which, of an encoder or decoder with several embeddings (default: its first)"
    parser.add_argument("--embedding", metavar="NAME", help=text)
    parser.add_argument("--words", nargs="+", metavar="WORD", help="only these words")
    text = "only the N most frequent words"
    parser.add_argument("--top", type=AT_LEAST_1.whole, metavar="N", help=text)
    text = "colour by N k-means clusters (default: by code; without codes 8 clusters)"
    parser.add_argument("--clusters", type=AT_LEAST_1.whole, metavar="N", help=text)
    text = "neighbours of each word in the table (default: %(default)s)"
    parser.add_argument("--neighbours", type=AT_LEAST_1.whole, default=10, metavar="N", help=text)
    text = "of t-SNE (default: 30, of few words a third of their number)"
    parser.add_argument("--perplexity", type=AT_LEAST_1.number, help=text)
    parser.add_argument("--seed", type=SEED.whole, default=1, help="default: %(default)s")


def run(args: argparse.Namespace) -> list[Path]:
    """Write ``embeddings_SIDE`` as PNG, PDF, CSV and JSON.

    Raises:
        ValueError: if a word is not there, there are fewer than 4 vectors, or the model has no such
            embeddings.
    """
    loaded = checkpoint.load(args.checkpoint, args.data, args.cpu)
    dictionary = loaded.dictionary(args.side)
    types = choose(dictionary, args.side, args.words, args.top)
    name, matrix = vocabulary.embeddings(loaded, args.side, args.embedding)
    vectors = matrix.numpy()[types]
    by, groups = group(loaded, args.side, types, vectors, args.clusters, args.seed)
    projection = tsne(vectors, args.seed, args.perplexity)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    symbols = [dictionary[i] for i in types]
    near, near_2d = (
        [" ".join(symbols[j] for j in row) for row in neighbours(points, args.neighbours)]
        for points in (vectors / np.maximum(lengths, 1e-12), projection.points)
    )
    rows = [
        {"word": symbols[i], "count": int(dictionary.count[types[i]]), by: int(groups[i])}
        | {"x": round(float(x), 3), "y": round(float(y), 3)}
        | {"neighbours": near[i], "neighbours_2d": near_2d[i]}
        for i, (x, y) in enumerate(projection.points)
    ]
    title = f"{len(types):,} {args.side} embeddings ({name}), by {by}"
    picture = draw(projection, groups, symbols[:LABELS], title, by)
    summary = {
        "checkpoint": args.checkpoint,
        "side": args.side,
        "embedding": name,
        "words": len(types),
        "width": vectors.shape[1],
        "seed": args.seed,
        "perplexity": projection.perplexity,
        "kl_divergence": round(projection.divergence, 4),
        "groups": [
            {by: int(g), "words": [symbols[i] for i in np.flatnonzero(groups == g)]}
            for g in np.unique(groups)
        ],
        "neighbours": {row["word"]: str(row["neighbours"]).split() for row in rows},
    }
    return plotting.save_all(picture, args.out, f"embeddings_{args.side}", rows, summary)


def choose(
    dictionary: Any, side: str, words: Sequence[str] | None = None, top: int | None = None
) -> np.ndarray:
    """The types to show, of all or of ``words``, the most frequent first, ``(n,)``.

    Raises:
        ValueError: if the dictionary lacks a word.
    """
    if words:
        types = np.array(sorted({vocabulary.index(dictionary, word, side) for word in words}))
    else:
        types = vocabulary.words(dictionary)
    types = types[np.argsort(-np.array(dictionary.count)[types], kind="stable")]
    return types[:top]


def group(
    loaded: Loaded,
    side: str,
    types: np.ndarray,
    vectors: np.ndarray,
    clusters: int | None,
    seed: int,
) -> tuple[str, np.ndarray]:
    """What the words are coloured by: ``"code"`` or ``"cluster"``, and that of each, ``(n,)``.

    Raises:
        ValueError: if there are fewer words than clusters.
    """
    from sklearn.metrics import pairwise_distances_argmin

    if clusters is None and vocabulary.quantizer_of(loaded, side) is not None:
        return "code", vocabulary.type_codes(loaded, side)[types]
    number = min(8, len(types)) if clusters is None else clusters
    if not 1 <= number <= len(types):
        raise ValueError(f"--clusters lies between 1 and {len(types)}, the number of words")
    centres, _ = kmeans(np.ascontiguousarray(vectors), number, seed)
    return "cluster", pairwise_distances_argmin(vectors, centres)


def neighbours(points: np.ndarray, number: int) -> np.ndarray:
    """The nearest others of each point, the nearest first: ``(n, dim)`` -> ``(n, number)``,
    at most ``(n, n - 1)``. Of vectors of length 1 these are those with the highest cosine.
    """
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=min(number, len(points) - 1)).fit(points)
    return found.kneighbors(return_distance=False)


def draw(
    projection: Projection, groups: np.ndarray, labels: Sequence[str], title: str, by: str
) -> Any:
    """The picture of ``n`` words, the most frequent first, the first of them labelled; ``groups``,
    ``(n,)``, have a colour and a marker each, and ``by`` is what a group is called."""
    points, crowded = projection.points, len(projection.points) > CROWD
    there = np.unique(groups)
    columns = 1 + (len(there) - 1) // 24
    large = len(points) > 60
    picture = plotting.new((9 if large else 6.4) + 0.6 * (columns - 1), 7 if large else 4.8)
    axes = plane(picture)
    for place, g in enumerate(there):
        axes.scatter(
            *points[groups == g].T,
            **plotting.style(place),
            s=4 if crowded else 16,
            linewidths=0,
            label=f"{g} ({np.count_nonzero(groups == g):,})",
            rasterized=crowded,
        )
    axes.set_title(f"t-SNE of {title}", loc="left", fontsize=9)
    picture.legend(
        title=f"{by} (words)",
        loc="outside right upper",
        ncols=columns,
        fontsize=7,
        markerscale=2.5 if crowded else 1.2,
    )
    place_labels(axes, points, labels, size=6 if large else 8)
    return picture
