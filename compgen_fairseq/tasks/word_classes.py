"""Classes of the words of a parallel corpus."""

import logging
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from torch import Tensor

from compgen_fairseq.clustering.brown import bigram_counts, brown_classes
from compgen_fairseq.clustering.substitution import substitution_classes

logger = logging.getLogger(__name__)

SIDES = ("source", "target")


def brown_word_classes(
    dataset: FairseqDataset, dictionaries: Sequence[Dictionary], codes: Sequence[int]
) -> list[Tensor]:
    """Cluster each side's vocabulary by the bigrams of its sentences, in the distinct pairs.

    Args:
        dataset: the parallel corpus.
        dictionaries: of the source and the target.
        codes: how many classes to make of each.

    Returns:
        the class of every source and of every target type, ``(types,)``, long; special symbols
        that do not occur are in 0.

    Raises:
        ValueError: if fewer types than classes occur.
    """
    distinct = _distinct_pairs(dataset)
    logger.info("Brown clustering of %d distinct training pairs", len(distinct))
    classes = []
    for side, dictionary, number in zip(SIDES, dictionaries, codes, strict=True):
        sentences = (dataset[i][side].numpy() for i in distinct)
        try:
            counts = bigram_counts(sentences, len(dictionary), dictionary.eos())
            classes.append(torch.from_numpy(brown_classes(counts, number)))
        except ValueError as error:
            raise ValueError(f"--code-classes brown, {side} side: {error}") from None
    return classes


def substitution_word_classes(
    dataset: FairseqDataset, dictionaries: Sequence[Dictionary], codes: Sequence[int] | None = None
) -> list[Tensor]:
    """Find out which words can stand for each other.

    Classes of such words that are more than the codes are merged by Brown clustering of the
    distinct pairs, in which a class is one word. So words of one class, as "left" and "right", are
    one neighbour to "around" and "opposite", which then have the same neighbours.

    Args:
        dataset: the parallel corpus.
        dictionaries: of the source and the target.
        codes: how many classes there may be on each side.

    Returns:
        with ``codes`` the code of every source and of every target type, ``(types,)``, long, by
        falling frequency; types that do not occur are in 0. Always the class of every source and of
        every target type, as one of its members, and for every target type the class of the source
        words that exchange it, or -1.
    """
    distinct = (dataset[i] for i in _distinct_pairs(dataset))
    pairs = [(tuple(x["source"].tolist()), tuple(x["target"].tolist())) for x in distinct]
    found = substitution_classes(pairs, *map(len, dictionaries))
    merged = []
    for i, (side, dictionary) in enumerate(zip(SIDES, dictionaries, strict=True)):
        of = np.array(found[i])
        occurring = sorted({word for pair in pairs for word in pair[i]})
        number = len(set(of[occurring]))
        said = f"{number} classes"
        if codes is not None:
            sentences = (of[list(pair[i])] for pair in pairs)
            counts = bigram_counts(sentences, len(dictionary), of[dictionary.eos()])
            of = brown_classes(counts, min(number, codes[i]))[of]
            merged.append(torch.from_numpy(of))
            said += f", merged into {codes[i]}" if codes[i] < number else ""
        members: dict[int, list[str]] = {}
        for word in occurring:
            members.setdefault(of[word], []).append(dictionary[word])
        larger = sorted((m for m in members.values() if len(m) > 1), key=len, reverse=True)
        shown = ("{" + ", ".join(words[:20]) + "}" for words in larger[:10])
        logger.info("substitution test, %s: %s, %s", side, said, " ".join(shown))
    return [*merged, *map(torch.tensor, found)]


def _distinct_pairs(dataset: FairseqDataset) -> list[int]:
    """The index of the first of all equal pairs; digests, as a corpus may have millions."""
    first: dict[tuple[bytes, ...], int] = {}
    for i in range(len(dataset)):
        pair = dataset[i]
        sides = (pair[side].numpy().tobytes() for side in SIDES)
        first.setdefault(tuple(blake2b(side, digest_size=16).digest() for side in sides), i)
    return list(first.values())


#: How the classes that a model's ``missing_classes`` names are found.
FINDERS = {"brown": brown_word_classes, "substitution": substitution_word_classes}
