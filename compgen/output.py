"""Files that commands write: there wholly or not at all."""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another name beside ``path`` to write to, which becomes ``path`` if nothing goes wrong and is
    removed if something does."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write(path: Path | str, text: str | Iterable[str]) -> None:
    """Write a text file, whole or piece by piece, under another name and rename it.

    Raises:
        ValueError: if it cannot be written.
    """
    write_files({path: text})


def write_files(texts: Mapping[Path | str, str | Iterable[str]]) -> None:
    """Write text files under other names, then rename them: if one cannot be written, none is.

    Raises:
        ValueError: if one cannot be written.
    """
    path: Path | str = ""
    try:
        with contextlib.ExitStack() as stack:
            for path, text in texts.items():
                if Path(path).is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                partial = stack.enter_context(replacing(Path(path)))
                with partial.open("w", encoding="utf-8") as file:
                    file.writelines([text] if isinstance(text, str) else text)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
