"""The sememes of each word of sentences that are cut into subwords."""

from typing import NamedTuple

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from compgen.data.sememes import Annotations

CONTINUED = "@@"  # after all subwords but the last of a word


class Words(NamedTuple):
    """A sentence's words. T subwords."""

    starts: np.ndarray  # (T,) bool: the first subword of each word
    rows: np.ndarray  # (T,) long: the row of its word in the table, -1 without annotation


class WordSememes:
    """Finds the words that subwords make up, and their sememes.

    Attributes:
        table: the indices of each annotated word's sememes, then -1; ``(words, S)``, long; one row
            at least.

    Args:
        annotations: which sememes a word may have.
        dictionary: the subwords, with ``@@`` after all but the last of a word.
    """

    def __init__(self, annotations: Annotations, dictionary: Dictionary) -> None:
        self._row = {word: row for row, word in enumerate(annotations.words)}
        width = max(map(len, annotations.words.values()), default=1)
        self.table: Tensor = torch.full((max(len(self._row), 1), width), -1)
        for row, indices in enumerate(annotations.words.values()):
            self.table[row, : len(indices)] = torch.tensor(indices)
        self._pieces = [symbol.removesuffix(CONTINUED) for symbol in dictionary.symbols]
        self._continued = np.array([symbol.endswith(CONTINUED) for symbol in dictionary.symbols])
        self._alone = np.array([self._row.get(symbol.lower(), -1) for symbol in dictionary.symbols])

    def __call__(self, tokens: np.ndarray) -> Words:
        """The words of a sentence; every subword inherits its word's annotation.

        Args:
            tokens: ``(T,)``, long, without special tokens.
        """
        continued = self._continued[tokens]
        starts = np.ones(len(tokens), dtype=bool)
        starts[1:] = ~continued[:-1]
        rows = self._alone[tokens]
        for first in np.flatnonzero(starts & continued):
            last = first + 1
            while last < len(tokens) and not starts[last]:
                last += 1
            word = "".join(self._pieces[token] for token in tokens[first:last])
            rows[first:last] = self._row.get(word.lower(), -1)
        return Words(starts, rows)
