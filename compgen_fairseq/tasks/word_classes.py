"""Classes of the words of a parallel corpus."""

import logging
from collections.abc import Sequence

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from torch import Tensor

from compgen_fairseq.clustering.brown import bigram_counts, brown_classes
from compgen_fairseq.clustering.substitution import substitution_classes
from compgen_fairseq.tasks.spread import pair_ids

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
    first = sorted(np.unique(pair_ids(dataset), return_index=True)[1].tolist())
    logger.info("Brown clustering of %d distinct training pairs", len(first))
    classes = []
    for side, dictionary, number in zip(SIDES, dictionaries, codes, strict=True):
        sentences = (dataset[i][side].numpy() for i in first)
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

    Args:
        dataset: the parallel corpus.
        dictionaries: of the source and the target.
        codes: how many classes there may be on each side.

    Returns:
        the class of every source and of every target type, ``(types,)``, long: one of the class's
        members, or with ``codes`` a number below them; types that do not occur are then in 0.
        Without ``codes`` also the class of source words that exchange each target type, or -1.

    Raises:
        ValueError: if there are more classes than codes.
    """
    pairs, found = _substitution(dataset, dictionaries)
    classes = []
    for i, (side, dictionary) in enumerate(zip(SIDES, dictionaries, strict=True)):
        members: dict[int, list[int]] = {}
        for word in sorted({word for pair in pairs for word in pair[i]}):
            members.setdefault(found[i][word], []).append(word)
        larger = sorted((m for m in members.values() if len(m) > 1), key=len, reverse=True)
        shown = ("{" + ", ".join(dictionary[w] for w in words[:20]) + "}" for words in larger[:10])
        logger.info("substitution test, %s: %d classes, %s", side, len(members), " ".join(shown))
        if codes is None:
            classes.append(torch.tensor(found[i]))
            continue
        if len(members) > codes[i]:
            raise ValueError(
                f"--code-classes substitution: the training set has {len(members)} {side} classes, "
                f"so --{side}-codes must be at least that, not {codes[i]}"
            )
        numbers = torch.zeros(len(dictionary), dtype=torch.long)
        for number, words in enumerate(members.values()):
            numbers[words] = number
        classes.append(numbers)
    return classes if codes is not None else [*classes, torch.tensor(found[2])]


def substitution_counts(dataset: FairseqDataset, dictionaries: Sequence[Dictionary]) -> list[int]:
    """How many substitution classes the words of each side of a corpus make."""
    pairs, found = _substitution(dataset, dictionaries)
    return [len({of[word] for pair in pairs for word in pair[i]}) for i, of in enumerate(found[:2])]


def _substitution(
    dataset: FairseqDataset, dictionaries: Sequence[Dictionary]
) -> tuple[list[tuple[list[int], ...]], tuple[list[int], list[int], list[int]]]:
    examples = (dataset[i] for i in range(len(dataset)))
    pairs = [tuple(pair[side].tolist() for side in SIDES) for pair in examples]
    return pairs, substitution_classes(pairs, *map(len, dictionaries))


#: How the classes that a model's ``missing_classes`` names are found.
FINDERS = {"brown": brown_word_classes, "substitution": substitution_word_classes}
