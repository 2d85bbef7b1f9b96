"""The prepare scripts as a user runs them, and what they leave."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from instant import instant

SCRIPTS = Path(__file__).parents[2] / "prepare"


def runner(name: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``runner("cogs")(DEST, ...)`` runs prepare/cogs.sh without ``COMPGEN_DATA``; keywords are
    variables of its environment. ``PYTHON=sys.executable`` has it run in a new Python."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if key != "COMPGEN_DATA"}
        return subprocess.run(
            [str(SCRIPTS / f"{name}.sh"), *map(str, arguments)],
            env={**env, "PYTHON": f"{instant()}/python", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def refused(result: subprocess.CompletedProcess[str], message: str, code: int = 1) -> bool:
    """Whether a script ended in one sentence with a message in it, and nothing else."""
    said = result.stderr
    return (
        result.returncode == code
        and message in said
        and said.count("\n") == 1
        and result.stdout == ""
    )


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file of a folder, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
