"""Word classes by the substitution test: words that can stand for each other.

Linguists put two words into one class if one can take the other's place (Harris, 1946, "From
Morpheme to Utterance"). In a parallel corpus the targets tell what that changes: between "walk
twice" and "run twice" one word's translation, between "walk twice" and "walk thrice" the sentence.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, product

MOST_PAIRS = 2_000_000  # of words in common frames: half a minute and 1.5 GB; COGS has 114,106
MOST_FRAMES = 5_000_000  # a few GB

Sentence = Sequence[int]
Change = tuple[tuple[int, int], ...]


def change(one: Sentence, other: Sentence) -> Change | None:
    """The pair of words whose exchange turns one sentence into the other.

    ``1 7 2 7`` becomes ``1 8 2 8``, and ``1 8 2 7``, by ``((7, 8),)``; equal sentences by ``()``.
    None if more than one word must be exchanged, or the lengths differ.
    """
    pairs = {(a, b) for a, b in zip(one, other, strict=False) if a != b}
    return tuple(pairs) if len(one) == len(other) and len(pairs) <= 1 else None


def substitution_classes(
    pairs: Iterable[tuple[Sentence, Sentence]], source_types: int, target_types: int
) -> tuple[list[int], list[int], list[int]]:
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
        source_types: the size of the source dictionary.
        target_types: that of the target dictionary.

    Returns:
        the class of every source and of every target type, as the smallest of its members; and
        for every target type the class of the source words whose exchange exchanges it, -1 where
        there is none or more than one.

    Raises:
        ValueError: so many words have common frames, or there are so many frames, that comparing
            them would take too long, or too much memory.
    """
    frames: dict[tuple[int, ...], dict[int, list[Sentence]]] = defaultdict(dict)
    compared = 0
    for source, target in sorted({(tuple(source), tuple(target)) for source, target in pairs}):
        for gap, word in enumerate(source):
            words = frames[(*source[:gap], -1, *source[gap + 1 :])]
            compared += 0 if word in words else len(words)
            words.setdefault(word, []).append(target)
        if compared > MOST_PAIRS or len(frames) > MOST_FRAMES:
            raise ValueError(
                f"the substitution test would compare more than {MOST_PAIRS:,} pairs of words, or "
                f"keep more than {MOST_FRAMES:,} frames: it is for small data, as SCAN and COGS"
            )
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
    for (one, other), made in changes.items():
        if not made:
            classes.keep_apart(one, other)
    for (one, other), _ in sorted(common.items(), key=lambda item: (-item[1], item[0])):
        classes.join(one, other)
    exchanges = [
        (classes.of[one], exchanged)
        for (one, other), made in sorted(changes.items())
        if classes.of[one] == classes.of[other] and len(made) == 1
        for exchanged in next(iter(made))
    ]
    for _, exchanged in exchanges:
        targets.join(*exchanged)
    owners: dict[int, set[int]] = defaultdict(set)
    for owner, (word, _) in exchanges:
        owners[targets.of[word]].add(owner)
    owner_of = [next(iter(owners[of])) if len(owners[of]) == 1 else -1 for of in targets.of]
    return classes.of, targets.of, owner_of


class _Classes:
    """Classes of words, each named by its smallest member."""

    def __init__(self, types: int):
        self.of = list(range(types))
        self._members = [[word] for word in range(types)]
        self._apart: dict[int, set[int]] = defaultdict(set)

    def keep_apart(self, one: int, other: int) -> None:
        """Say of two words, before any are joined, that their classes must not be."""
        self._apart[one].add(other)
        self._apart[other].add(one)

    def join(self, one: int, other: int) -> None:
        """Make the classes of two words one, unless they are or words of theirs are kept apart."""
        first, second = sorted((self.of[one], self.of[other]))
        if first == second or second in self._apart[first]:
            return
        self._members[first] += self._members[second]
        for word in self._members[second]:
            self.of[word] = first
        for third in self._apart.pop(second, ()):
            self._apart[third].remove(second)
            self._apart[third].add(first)
            self._apart[first].add(third)
