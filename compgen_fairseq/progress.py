"""A progress bar, shown by the first worker; in a log file it is a line every 10 seconds."""

import sys
from collections.abc import Iterable
from typing import Any

from fairseq.distributed.utils import get_global_rank
from tqdm import tqdm


def progress(items: Iterable[Any] | None, description: str, total: int, unit: str) -> tqdm:
    """The items, with a bar and the time left; without items a bar that is moved by hand."""
    return tqdm(
        items,
        description,
        total,
        unit=unit,
        disable=get_global_rank() > 0,
        mininterval=0.1 if sys.stderr.isatty() else 10.0,
    )
