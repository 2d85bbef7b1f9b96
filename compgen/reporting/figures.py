"""The pictures of compgen-analyze that lie in folders, with their captions."""

import base64
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Figure:
    """One picture.

    Args:
        path: its PNG file.
        caption: the description that it carries; empty without one.
    """

    path: Path
    caption: str

    def data_uri(self) -> str:
        """The picture itself, as a page can hold it.

        Raises:
            ValueError: if it is no PNG or cannot be read.
        """
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise ValueError(f"{self.path}: {error.strerror}") from None
        if not content.startswith(SIGNATURE):
            raise ValueError(f"{self.path}: it is not a PNG picture")
        return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def find(runs: Iterable[Path], folders: Iterable[Path]) -> list[Figure]:
    """The PNG files in and below the folders of runs and other folders, each once, by their path.

    Raises:
        ValueError: if one of the other folders is no folder or has no picture in it.
    """
    paths = [path for folder in runs for path in sorted(folder.rglob("*.png"))]
    for folder in folders:
        found = sorted(folder.rglob("*.png"))
        if not found:
            raise ValueError(f"{folder}: there is no PNG picture in it")
        paths += found
    known = {path.resolve(): path for path in reversed(paths)}  # the first name of each
    return [Figure(path, _caption(path)) for path in paths if known[path.resolve()] is path]


def _caption(path: Path) -> str:
    """The description that a PNG file carries (its ``tEXt`` or ``iTXt`` chunk), or nothing."""
    try:
        content = path.read_bytes()
    except OSError:
        return ""
    start = len(SIGNATURE)
    while start + 8 <= len(content):
        (length,) = struct.unpack(">I", content[start : start + 4])
        kind, data = content[start + 4 : start + 8], content[start + 8 : start + 8 + length]
        key, _, text = data.partition(b"\0")
        if key == b"Description" and kind == b"tEXt":
            return text.decode("latin-1")
        if key == b"Description" and kind == b"iTXt":
            # compression flag and method, language, translated key: none is used here
            return text[2:].split(b"\0", 2)[-1].decode("utf-8", "replace")
        start += 12 + length
    return ""
