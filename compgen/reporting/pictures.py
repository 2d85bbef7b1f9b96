"""The pictures of compgen-analyze that lie in folders, with their captions."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from compgen.text import files_below, naming

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
        with naming(self.path):
            content = self.path.read_bytes()
        if not content.startswith(SIGNATURE):
            raise ValueError(f"{self.path}: it is not a PNG picture")
        return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def find(runs: Iterable[Path], folders: Iterable[Path]) -> list[Figure]:
    """The PNG files in and below the folders of runs and other folders, each once, by their path.

    Raises:
        ValueError: if one of the other folders is not a folder or has no picture in it.
    """
    paths = [path for folder in runs for path in files_below(folder, "*.png")]
    for folder in folders:
        found = files_below(folder, "*.png")
        if not found:
            raise ValueError(f"{folder}: there is no PNG picture in it")
        paths += found
    known = {path.resolve(): path for path in reversed(paths)}  # the first name of each
    return [Figure(path, _caption(path)) for path in paths if known[path.resolve()] is path]


def _caption(path: Path) -> str:
    """The description that a PNG file carries; empty where there is none to read."""
    from PIL import Image  # takes its time, and few reports have pictures

    try:
        with Image.open(path, formats=["PNG"]) as picture:
            return str(picture.info.get("Description", ""))
    except OSError:
        return ""
