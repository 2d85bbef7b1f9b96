"""Which types of a dictionary can have prototypes."""

import html
import unicodedata

import numpy as np
from fairseq.data import Dictionary

SUBWORD_MARKS = ("@@", "▁")


def is_punctuation(token: str) -> bool:
    """Whether a token has nothing but punctuation and symbols in it.

    Marks of subwords don't count, and Moses's escapes stand for what they escape.
    """
    for mark in SUBWORD_MARKS:
        token = token.replace(mark, "")
    return all(unicodedata.category(c)[0] in "PSZ" for c in html.unescape(token))


def word_types(dictionary: Dictionary) -> np.ndarray:
    """The types that can have prototypes: neither special symbols nor punctuation.

    "We conduct categorization for all tokens except punctuation and low-frequent words"
    (Yin et al., 2022, section 4.1).

    Returns:
        for each type whether it can, bool, ``(len(dictionary),)``.
    """
    special = dictionary.nspecial
    words = [not is_punctuation(token) for token in dictionary.symbols[special:]]
    return np.array([False] * special + words)
