"""Classes of the words of a parallel corpus."""

import logging

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from torch import Tensor

from compgen_fairseq.clustering.brown import bigram_counts, brown_classes
from compgen_fairseq.clustering.substitution import substitution_classes

logger = logging.getLogger(__name__)


def brown_word_classes(
    dataset: FairseqDataset, dictionary: Dictionary, side: str, num_classes: int, first: list[int]
) -> Tensor:
    """Cluster one side's vocabulary by the bigrams of its sentences.

    Args:
        dataset: the parallel corpus.
        dictionary: the side's dictionary.
        side: ``"source"`` or ``"target"``.
        num_classes: how many classes to make.
        first: the examples to count; each distinct pair should be among them once.

    Returns:
        the class of every type, ``(types,)``, long; special symbols that do not occur are in 0.

    Raises:
        ValueError: if fewer types than classes occur.
    """
    sentences = (dataset[int(i)][side].numpy() for i in first)
    try:
        counts = bigram_counts(sentences, len(dictionary), dictionary.eos())
        return torch.from_numpy(brown_classes(counts, num_classes))
    except ValueError as error:
        raise ValueError(f"--code-classes brown, {side} side: {error}") from None


def substitution_word_classes(dataset: FairseqDataset, dictionary: Dictionary) -> Tensor:
    """Find out which source words can stand for each other.

    Args:
        dataset: the parallel corpus.
        dictionary: the source dictionary.

    Returns:
        the class of every type, as one of its members, ``(types,)``, long.
    """
    examples = (dataset[i] for i in range(len(dataset)))
    pairs = ((pair["source"].tolist(), pair["target"].tolist()) for pair in examples)
    classes = substitution_classes(pairs, len(dictionary))
    members: dict[int, list[str]] = {}
    for word, kind in enumerate(classes):
        members.setdefault(kind, []).append(dictionary[word])
    larger = sorted((m for m in members.values() if len(m) > 1), key=len, reverse=True)
    shown = " ".join("{" + ", ".join(words[:20]) + "}" for words in larger[:10])
    logger.info("substitution test: %d types, %d classes: %s", len(classes), len(members), shown)
    return torch.tensor(classes)


def first_occurrences(pair_ids: np.ndarray) -> list[int]:
    """The index of the first example of each pair, in order.

    Args:
        pair_ids: equal numbers for equal pairs, ``(n,)``.
    """
    return sorted(np.unique(pair_ids, return_index=True)[1].tolist())
