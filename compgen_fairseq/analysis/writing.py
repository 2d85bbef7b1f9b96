"""The numbers of an analysis as files: there wholly or not at all."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compgen.output import replacing


def write_json(path: Path, data: Any) -> Path:
    """Write JSON in UTF-8; numbers that are not finite are refused.

    Returns:
        the path.

    Raises:
        ValueError: if it cannot be written.
    """
    text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
    return write_bytes(path, f"{text}\n".encode())


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows that have the same columns, with a line of their names; None is left empty.

    Returns:
        the path.

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

    Returns:
        the path.

    Raises:
        ValueError: if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(data)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    return path
