"""Sememe annotations of words, as they lie in a prepared folder.

``sememes.txt`` has a sememe per line; ``annotations.tsv`` has a word, a tab and the indices of its
sememes, which are the line numbers in ``sememes.txt`` from 0 on.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from compgen.text import read_lines, write_lines

SEMEMES, ANNOTATIONS = "sememes.txt", "annotations.tsv"


@dataclass(frozen=True)
class Annotations:
    """Which sememes a word may have, over all its senses.

    Args:
        names: the sememes, sorted; the place of a sememe is its index.
        words: the indices of each annotated word, ascending; words in small letters.
    """

    names: list[str]
    words: dict[str, tuple[int, ...]]

    def of(self, word: str) -> tuple[int, ...]:
        """The indices of a word's sememes; none if it is not annotated."""
        return self.words.get(word.lower(), ())

    def write(self, folder: Path) -> None:
        """Write both files."""
        write_lines(folder / SEMEMES, self.names)
        rows = (f"{word}\t{' '.join(map(str, found))}" for word, found in self.words.items())
        write_lines(folder / ANNOTATIONS, rows)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read both files.

        Raises:
            ValueError: a file is missing, or a line has not its form.
        """
        names = read_lines(folder / SEMEMES)
        words = {}
        for number, line in enumerate(read_lines(folder / ANNOTATIONS), start=1):
            word, _, indices = line.partition("\t")
            try:
                words[word] = tuple(map(int, indices.split()))
            except ValueError:
                words[word] = ()
            if not words[word] or min(words[word]) < 0 or max(words[word]) >= len(names):
                raise ValueError(
                    f"{folder / ANNOTATIONS}, line {number} is not a word, a tab and indices of"
                    f" {SEMEMES}."
                )
        return cls(names, words)

    def coverage(self, words: Iterable[str]) -> dict[str, int]:
        """How much of a text is annotated.

        Args:
            words: the text's words, one after the other.

        Returns:
            The number of ``types`` and of ``tokens``, and how many of them are annotated:
            ``annotated_types``, ``annotated_tokens``.
        """
        counts = Counter(words)
        annotated = [count for word, count in counts.items() if self.of(word)]
        return {
            "types": len(counts),
            "annotated_types": len(annotated),
            "tokens": counts.total(),
            "annotated_tokens": sum(annotated),
        }
