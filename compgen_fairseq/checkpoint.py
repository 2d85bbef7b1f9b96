"""Checkpoints of fairseq-train, read safely."""

import pickle
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils


def read(checkpoint: str, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a checkpoint file holds, with options overridden.

    Raises:
        ValueError: if it is not there, or no checkpoint, or only a part of one.
    """
    if not Path(checkpoint).is_file():
        raise ValueError(f"{checkpoint} is no file: name a checkpoint of fairseq-train")
    try:
        return checkpoint_utils.load_checkpoint_to_cpu(checkpoint, overrides)
    except (pickle.UnpicklingError, RuntimeError, LookupError, TypeError, EOFError, OSError):
        raise ValueError(
            f"{checkpoint} is no checkpoint of fairseq-train, or only a part of one"
        ) from None
