"""Word classes by the substitution test: words that can stand for each other.

Linguists put two words into one class if one can take the other's place (Harris, 1946, "From
Morpheme to Utterance"). In a parallel corpus the targets tell what that changes: between "walk
twice" and "run twice" one word's translation, between "walk twice" and "walk thrice" the sentence.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, product

Sentence = Sequence[int]
Change = tuple[tuple[int, int], ...]


def change(one: Sentence, other: Sentence) -> Change | None:
    """What must be exchanged for what to make another sentence of one.

    ``1 7 2 7`` becomes ``1 8 2 8``, and ``1 8 2 7``, by ``((7, 8),)``; equal sentences by ``()``.
    None if more than one word must be exchanged, or the lengths differ.
    """
    pairs = {(a, b) for a, b in zip(one, other, strict=False) if a != b}
    return tuple(pairs) if len(one) == len(other) and len(pairs) <= 1 else None


def substitution_classes(
    pairs: Iterable[tuple[Sentence, Sentence]], source_types: int, target_types: int
) -> tuple[list[int], list[int]]:
    """Put source words into classes, and with them target words.

    A frame is a source sentence with a gap. Two words with a common frame pass the test if putting
    one for the other makes the same :func:`change` in the targets of all their common frames; of a
    source with several targets, one must do. Classes begin as single words and are joined, those
    with the most common frames first, if a word of each passes with one of the other and none
    fails. So words without a common frame can be joined by a third.

    Two target words are joined if source words of one class are exchanged for each other by
    exchanging them.

    Args:
        pairs: source and target sentences; repeated ones change nothing.
        source_types, target_types: the sizes of the dictionaries.

    Returns:
        the class of every source and of every target type, as the smallest of its members.
    """
    frames: dict[tuple[int, ...], dict[int, list[Sentence]]] = defaultdict(dict)
    for source, target in sorted({(tuple(source), tuple(target)) for source, target in pairs}):
        for gap, word in enumerate(source):
            frame = (*source[:gap], -1, *source[gap + 1 :])
            frames[frame].setdefault(word, []).append(target)
    common: Counter[tuple[int, int]] = Counter()
    changes: dict[tuple[int, int], set[Change]] = {}
    for words in frames.values():
        for pair in combinations(sorted(words), 2):
            common[pair] += 1
            if common[pair] == 1 or changes[pair]:
                tried = (change(*both) for both in product(words[pair[0]], words[pair[1]]))
                here = {made for made in tried if made is not None}
                changes[pair] = here & changes.get(pair, here)

    classes, targets = _Classes(source_types), _Classes(target_types)
    for (one, other), _ in sorted(common.items(), key=lambda item: (-item[1], item[0])):
        if classes.of[one] == classes.of[other]:
            continue
        first, second = (classes.members[classes.of[word]] for word in (one, other))
        across = ((min(pair), max(pair)) for pair in product(first, second))
        if changes[one, other] and all(changes.get(pair, True) for pair in across):
            classes.join(one, other)
    for (one, other), made in sorted(changes.items()):
        if classes.of[one] == classes.of[other] and len(made) == 1:
            for exchanged in next(iter(made)):
                targets.join(*exchanged)
    return classes.of, targets.of


class _Classes:
    """Classes of words, each named by its smallest member."""

    def __init__(self, types: int):
        self.of = list(range(types))
        self.members = [[word] for word in range(types)]

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.of[one], self.of[other]))
        if first != second:
            self.members[first] += self.members[second]
            for word in self.members[second]:
                self.of[word] = first
