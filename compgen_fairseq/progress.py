"""A progress bar, shown by the first worker; in a log file it is a line every 10 seconds."""

import sys
from collections.abc import Iterable
from typing import Any

import torch.distributed as dist
from tqdm import tqdm


def rank_and_world() -> tuple[int, int]:
    """Which of how many workers this process is."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def progress(items: Iterable[Any] | None, description: str, total: int, unit: str) -> tqdm:
    """The items, with a bar and the time left; without items a bar that is moved by hand."""
    return tqdm(
        items,
        description,
        total,
        unit=unit,
        disable=rank_and_world()[0] > 0,
        mininterval=0.1 if sys.stderr.isatty() else 10.0,
    )
