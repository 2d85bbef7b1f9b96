"""Files that commands write: there wholly or not at all."""

import contextlib
import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compgen.text import naming


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another name beside ``path`` to write to, which becomes ``path`` if nothing goes wrong and is
    removed if something does. A pipe or a device is written to itself; a link stays a link."""
    if path.exists() and not path.is_file():
        yield path
        return
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_files(*files: tuple[Path | str | None, str | Iterable[str]]) -> None:
    """Write text files under other names, then rename them: if one cannot be written, none is.

    Args:
        files: pairs of a path and its text; with None or "", of a flag that was not given, none
            is written.

    Raises:
        ValueError: if one cannot be written, or two of them are one.
    """
    wanted = [(path, text) for path, text in files if path]
    if len({os.path.realpath(path) for path, _ in wanted}) < len(wanted):
        raise ValueError(f"{wanted[-1][0]} would hold two outputs: name another file for one")
    with contextlib.ExitStack() as stack:
        for path, text in wanted:
            stack.enter_context(naming(path))
            partial = stack.enter_context(replacing(Path(path)))
            with partial.open("w", encoding="utf-8") as file:
                file.writelines([text] if isinstance(text, str) else text)


def write_json(path: Path, data: Any) -> Path:
    """Write JSON in UTF-8; numbers that are not finite are refused.

    Raises:
        ValueError: if it cannot be written.
    """
    text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
    return write_bytes(path, f"{text}\n".encode())


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows that have the same columns, with a line of their names; None is left empty.

    Raises:
        ValueError: if it cannot be written.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return write_bytes(path, text.getvalue().encode())


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file under another name and rename it; its folder is made where there is none.

    Raises:
        ValueError: if it cannot be written.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(data)
    return path
