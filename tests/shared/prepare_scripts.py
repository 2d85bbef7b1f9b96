"""The prepare scripts as a user runs them, and what they leave."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from fairseq.data import Dictionary, data_utils
from instant import instant

SCRIPTS = Path(__file__).parents[2] / "prepare"


def runner(name: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``runner("cogs")(DEST, ..., status=0)`` runs prepare/cogs.sh without ``COMPGEN_DATA``, and
    checks its exit status; other keywords are variables of its environment.
    ``PYTHON=sys.executable`` has it run in a new Python."""

    def run(
        *arguments: object, status: int = 0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if key != "COMPGEN_DATA"}
        done = subprocess.run(
            [str(SCRIPTS / f"{name}.sh"), *map(str, arguments)],
            env={**env, "PYTHON": f"{instant()}/python", **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file of a folder, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def publish(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a publisher's small files by their paths, and their checksums in ``sums``."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
    (folder / "sums").write_text("".join(f"{sums[name]}  ./{name}\n" for name in files))
    return folder


def read_back(dest: Path, source: str, target: str) -> dict[str, list[str]]:
    """The lines of each ``SUBSET.LANGUAGE``, which are the text and what fairseq reads."""
    record, text = json.loads((dest / "PREPARED.json").read_text()), {}
    for side in (source, target):
        dictionary = Dictionary.load(str(dest / f"dict.{side}.txt"))
        assert len(dictionary) == record["vocabulary"][side]
        for subset, size in record["pairs"].items():
            lines = (dest / "raw" / f"{subset}.{side}").read_text("utf-8").splitlines()
            prefix = str(dest / f"{subset}.{source}-{target}.{side}")
            data = data_utils.load_indexed_dataset(prefix, dictionary)
            tokens = [[*map(dictionary.index, line.split()), dictionary.eos()] for line in lines]
            assert [line.tolist() for line in data] == tokens and len(lines) == size
            assert subset != "train" or not any(dictionary.unk() in line for line in tokens)
            text[f"{subset}.{side}"] = lines
    return text
