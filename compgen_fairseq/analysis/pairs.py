"""Pairs of structurally equivalent sentences: different words, the same sequence of classes."""

import itertools
from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from compgen.output import write_bytes
from compgen.text import read_lines
from compgen_fairseq.analysis.tags import read_tags

NONE = -1  # the class of a word without one
COLUMNS = ("a", "b", "targets", "source_a", "source_b")


class Pair(NamedTuple):
    """Two sentences of a subset.

    Args:
        a: the first one's number.
        b: the second one's.
        targets: whether their targets have the same structure, too.
    """

    a: int
    b: int
    targets: bool


def read_classes(path: str, dictionary: Any) -> Tensor:
    """The class of every type by lines of a word, a tab and its class; the end of a sentence is a
    class of its own, and words that are not listed have none.

    Raises:
        ValueError: if the file cannot be read, a line is not of this form, a word has two classes,
            or no word of the dictionary is listed.
    """
    listed = {word: name for word, name in read_tags(path).items() if word in dictionary}
    if not listed:
        raise ValueError(f"{path}: it lists no word of the source dictionary")
    number = {name: i for i, name in enumerate(dict.fromkeys(listed.values()))}
    classes = torch.full((len(dictionary),), NONE)
    for word, name in listed.items():
        classes[dictionary.index(word)] = number[name]
    classes[dictionary.eos()] = len(number)
    return classes


def find_pairs(
    sources: Sequence[Tensor],
    targets: Sequence[Tensor],
    source_classes: Tensor,
    target_classes: Tensor,
    unknown: tuple[int, int],
    limit: int,
    seed: int,
) -> list[Pair]:
    """Draw pairs of different sentences whose words have the same sequence of classes.

    No sentence is in two pairs, and no structure gets a second pair before every one has its
    first. Among sentences of one structure those whose targets share theirs are paired first.
    Sentences with words that are unknown or have no class take no part.

    Args:
        sources: the tokens of each sentence, ``(len,)``.
        targets: those of its translation.
        source_classes: of every source type, ``(types,)``.
        target_classes: of every target type; all the same where only the length is to be.
        unknown: the unknown word's index on either side.
        limit: how many pairs at most.
        seed: of the choice.
    """

    def structure(tokens: Tensor, classes: Tensor, unknown: int) -> tuple[int, ...] | None:
        found = classes[tokens.long()]
        usable = bool(found.ne(NONE).all()) and bool(tokens.ne(unknown).all())
        return tuple(found.tolist()) if usable else None

    members: dict[tuple[int, ...], dict[tuple[int, ...], int]] = defaultdict(dict)
    for i, tokens in enumerate(sources):
        found = structure(tokens, source_classes, unknown[0])
        if found is not None:
            members[found].setdefault(tuple(tokens.tolist()), i)
    target_structures = [structure(tokens, target_classes, unknown[1]) for tokens in targets]
    draw = np.random.default_rng(seed)
    rounds: dict[int, list[Pair]] = defaultdict(list)
    for sentences in members.values():
        order = draw.permutation(list(sentences.values())).tolist()
        for turn, pair in enumerate(_pair_up(order, target_structures)):
            rounds[turn].append(pair)
    shuffled = (rounds[turn][i] for turn in rounds for i in draw.permutation(len(rounds[turn])))
    return list(itertools.islice(shuffled, limit))


def _pair_up(sentences: Sequence[int], targets: Sequence[Hashable | None]) -> list[Pair]:
    """Pairs of those whose targets have the same structure, then of those left over."""
    waiting: dict[Hashable, int] = {}
    pairs, rest = [], []
    for i in sentences:
        target = targets[i]
        if target is None:
            rest.append(i)
        elif target in waiting:
            pairs.append(Pair(waiting.pop(target), i, True))
        else:
            waiting[target] = i
    rest += waiting.values()
    return pairs + [Pair(a, b, False) for a, b in zip(rest[::2], rest[1::2], strict=False)]


def write_pairs(path: Path, pairs: Sequence[Pair], text: Sequence[str]) -> Path:
    """Write pairs with their sources, which are in ``text``, that of the whole subset, so that
    another model is measured on the same."""
    rows = [COLUMNS, *((p.a, p.b, int(p.targets), text[p.a], text[p.b]) for p in pairs)]
    return write_bytes(path, "".join("\t".join(map(str, row)) + "\n" for row in rows).encode())


def read_pairs(path: str, text: Sequence[str]) -> list[Pair]:
    """Read what :func:`write_pairs` wrote.

    Raises:
        ValueError: if it cannot be read or is about other sentences.
    """
    rows = [line.split("\t") for line in read_lines(path)]
    if not rows or tuple(rows[0]) != COLUMNS:
        raise ValueError(f"{path}: it has not the columns {', '.join(COLUMNS)} of a pair file")
    pairs = []
    for number, row in enumerate(rows[1:], 2):
        try:
            a, b, targets, source_a, source_b = row
            pair = Pair(int(a), int(b), bool(int(targets)))
        except ValueError:
            raise ValueError(f"{path}, line {number}: not a pair of sentences") from None
        for i, source in ((pair.a, source_a), (pair.b, source_b)):
            if not 0 <= i < len(text) or text[i] != source:
                raise ValueError(
                    f"{path}, line {number}: sentence {i} of this subset is not {source!r}"
                )
        pairs.append(pair)
    return pairs
