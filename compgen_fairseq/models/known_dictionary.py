"""A model knows the dictionaries that it was trained with and refuses others."""

import hashlib
from typing import Any, TypeVar

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


def fingerprint(dictionary: Dictionary) -> int:
    """A 48-bit number that dictionaries with the same types in the same order share."""
    digest = hashlib.blake2b("\n".join(dictionary.symbols).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "little")


class KnownDictionary(nn.Module):
    """The fingerprint of an encoder's or a decoder's dictionary, as a part of its checkpoints.

    With another dictionary of the same size every embedding would stand for another word. A
    checkpoint without a fingerprint, such as a plain Transformer's, is loaded as it is.

    Raises:
        ValueError: on loading, if the checkpoint's dictionary has other words.
    """

    fingerprint: Tensor

    def __init__(self, dictionary: Dictionary):
        super().__init__()
        self.register_buffer("fingerprint", torch.tensor(fingerprint(dictionary)))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        kept = state_dict.get(f"{prefix}fingerprint")
        if kept is not None and int(kept) != int(self.fingerprint):
            raise ValueError(
                f"the checkpoint's {prefix.split('.')[0]} was trained with a dictionary of other "
                "words, or in another order: name the data folder that it was trained on, or "
                "prepare other text with that folder as --pretrained"
            )


def know_dictionaries(model: Model) -> Model:
    """Let the encoder and the decoder of a model, which is returned, know their dictionaries."""
    parts: tuple[Any, ...] = (model.encoder, getattr(model, "decoder", None))
    for part in parts:
        if part is not None:
            part.known_dictionary = KnownDictionary(part.dictionary)
    return model
