"""``compgen-examples``: copy the recipes and the prepare scripts to a folder of one's own."""

import contextlib
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

from compgen.errors import command
from compgen_cli.parser import Parser

FOLDERS = ("examples", "prepare")
RECIPES = "examples/recipe.sh"


def shipped() -> Path:
    """The folder that has ``FOLDERS``: the clone, or the wheel's among the shared files.

    Raises:
        ValueError: there are none.
    """
    clone = Path(__file__).resolve().parents[1]
    if (clone / RECIPES).exists():
        return clone
    with contextlib.suppress(metadata.PackageNotFoundError):  # a folder on PYTHONPATH
        for file in metadata.files("compgen-fairseq") or ():
            if file.as_posix().endswith(f"share/compgen_fairseq/{RECIPES}"):
                return Path(str(file.locate())).resolve().parents[1]
    raise ValueError("this installation has no recipes: install the wheel or clone the repository")


@command("compgen-examples")
def main(argv: list[str] | None = None) -> int:
    """Copy the folders whole, or none of them; what is there already is left alone."""
    parser = Parser(prog="compgen-examples", description=__doc__)
    parser.add_argument("folder", type=Path, help="where examples/ and prepare/ go")
    folder = parser.parse_args(argv).folder
    for name in FOLDERS:
        if (folder / name).exists():
            raise ValueError(f"{folder / name} is there already: name another folder")
    source, ignored = shipped(), shutil.ignore_patterns("__pycache__")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        for name in FOLDERS:
            shutil.copytree(source / name, Path(work, name), ignore=ignored)
        for name in FOLDERS:
            Path(work, name).rename(folder / name)
    print(f"{folder}: {' and '.join(FOLDERS)}")
    return 0
