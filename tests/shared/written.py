"""What commands write, as tests read it."""

import csv
from pathlib import Path

from in_process import output
from matplotlib.image import imread


def read_table(path: Path, **options: str) -> list[dict[str, str]]:
    """The rows of a table with a header; ``delimiter="\\t"`` if not a comma."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, **options))


def analyzed(kind: str, *words: object, out: Path) -> list[Path]:
    """The files that ``compgen-analyze KIND`` writes and prints; pictures show something."""
    said = output(f"compgen-analyze {kind}", *words, "--out", out)
    files = list(map(Path, said.split()))
    assert sorted(files) == sorted(out.iterdir())
    for picture in (file for file in files if file.suffix == ".png"):
        pixels = imread(picture)[..., :3]
        assert min(pixels.shape[:2]) > 200 and pixels.std() > 0.05, picture
        assert picture.stat().st_size < 200_000
        assert picture.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    return files
