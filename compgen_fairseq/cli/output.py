"""Files that commands write: there wholly or not at all."""

import os
from pathlib import Path


class OutputError(ValueError):
    """A file that cannot be written; the message is one sentence that names it."""


def write(path: Path | str, text: str) -> None:
    """Write a text file under another name and rename it.

    Raises:
        OutputError: if it cannot be written.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OutputError(f"{path}: {error.strerror}") from None
