"""The words of a model's dictionary with their embeddings and codes."""

import difflib
import re
from typing import Any

import numpy as np
import torch.nn as nn
from fairseq.data import Dictionary
from torch import Tensor

from compgen_fairseq.analysis.checkpoint import Loaded

SIDES = ("source", "target")


def words(dictionary: Dictionary) -> np.ndarray:
    """The types that are words, ``(n,)``: no special symbol and no filler of fairseq's.

    fairseq-preprocess fills its dictionaries up with ``madeupword0000`` and so on, which occur
    nowhere.
    """
    types = range(dictionary.nspecial, len(dictionary))
    found = [i for i in types if not re.fullmatch(r"madeupword\d+", dictionary[i])]
    return np.array(found, dtype=np.int64)


def index(dictionary: Dictionary, word: str, side: str) -> int:
    """The type of a word.

    Raises:
        ValueError: if the dictionary has no such word; it names the words that look like it.
    """
    if word in dictionary:
        return dictionary.index(word)
    near = difflib.get_close_matches(word, dictionary.symbols[dictionary.nspecial :], 3)
    hint = f"; near it are {', '.join(map(repr, near))}" if near else ""
    raise ValueError(f"{word!r} is not in the {side} dictionary{hint}")


def embeddings(loaded: Loaded, side: str, name: str | None = None) -> tuple[str, Tensor]:
    """A side's trained embeddings.

    Args:
        loaded: the checkpoint.
        side: ``"source"`` or ``"target"``.
        name: which, where an encoder or decoder has several; the first by default.

    Returns:
        their name in the encoder or decoder, and the matrix, float32, ``(types, dim)``.

    Raises:
        ValueError: if there are none of that name.
    """
    stack = stack_of(loaded, side)
    types = len(loaded.dictionary(side))
    # not isinstance: learned positions are a subclass
    found = {
        key: part.weight
        for key, part in stack.named_modules()
        if type(part) is nn.Embedding and part.num_embeddings == types
    }
    if not found:
        raise ValueError(
            f"the model of {loaded.path} has no embeddings of its {side} words: "
            f"choose the other --side"
        )
    if name is not None and name not in found:
        raise ValueError(f"--embedding is one of {', '.join(found)}, not {name!r}")
    name = name or next(iter(found))
    return name, found[name].detach().float().cpu()


def stack_of(loaded: Loaded, side: str) -> Any:
    """The model's encoder for ``"source"``, its decoder for ``"target"``."""
    stack = getattr(loaded.model, "encoder" if side == "source" else "decoder", None)
    if stack is None:
        raise ValueError(f"the model of {loaded.path} has no {side} side: choose the other --side")
    return stack


def quantizer_of(loaded: Loaded, side: str) -> Any:
    """A side's codes, a ``VectorQuantizer``; None for a model that has none."""
    inner = getattr(stack_of(loaded, side), "stack", None)
    return None if inner is None else inner.quantizer


def type_codes(loaded: Loaded, side: str) -> np.ndarray:
    """The code of every type of the dictionary, ``(types,)``.

    Raises:
        ValueError: if the model has no codes.
    """
    if quantizer_of(loaded, side) is None:
        raise ValueError(
            f"the model of {loaded.path} has no codes: train an sq_transformer architecture with "
            "--quantizer sovq or vq"
        )
    return stack_of(loaded, side).stack.type_codes().cpu().numpy()
