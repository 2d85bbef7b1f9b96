"""The folder of a run of tables.py: what state it is in, and how to do it."""

import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rows import EXAMPLES, ROOT, Run, TablesError

PROGRESS = re.compile(r"num_updates=([\d.e+]+).*?\bwall=(\d+), time left (\d+) min")
# What decides a run's outcome is in its line, whatever else the environment has.
RECIPE_VARIABLES = set("METHOD SEED SIZE UPDATES STAGE1_EPOCHS SELECT BEAM PLAIN LAUNCH".split())
STATES = DONE, RUNNING, FAILED, WAITING = "done", "running", "failed", "waiting"


def _flock(file: int) -> bool:
    """Lock a file, but for a second's patience, as :meth:`Folder.locked` looks at it."""
    for _ in range(10):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.1)
    return False


@contextlib.contextmanager
def _alone(data: str | None) -> Iterator[list[int]]:
    """Hold the lock beside a data folder, which two runs may want to prepare at once; none where
    there is no folder, or where no file can be made or locked."""
    with contextlib.ExitStack() as held:
        locks = []
        with contextlib.suppress(OSError):
            if data is not None:
                beside = held.enter_context(open(f"{data}.lock", "a"))
                fcntl.flock(beside, fcntl.LOCK_EX)
                locks.append(beside.fileno())
        yield locks


class Progress(NamedTuple):
    """Updates done, the minutes that are left and those of the whole; none without an estimate."""

    updates: int = 0
    left: float | None = None
    whole: float | None = None


class Folder:
    """The folder of a run: what state it is in, and how to do it."""

    def __init__(self, run: Run, out: Path):
        self.run, self.out = run, out
        self.path = out / run.path
        self.row = json.dumps(run.row(), indent=1) + "\n"

    def state(self) -> str:
        if (self.path / "RESULT.json").exists() and self._is_same():
            return DONE
        if self.locked():
            return RUNNING
        return FAILED if (self.path / "failed").exists() else WAITING

    def locked(self) -> bool:
        """Whether a process works on it: one of another call, too, as the lock dies with it."""
        try:
            with (self.path / "lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def do(self, data: Path) -> int:
        """Do what is left of a run; the exit status. Every step skips what is there already."""
        self.path.mkdir(parents=True, exist_ok=True)
        data.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a") as lock:
            if not _flock(lock.fileno()):
                raise TablesError(f"{self.path} is being worked on already")
            failed = self.path / "failed"
            failed.unlink(missing_ok=True)
            try:
                self._keep_row()
                for name, command in self.steps(data).items():
                    with _alone(command[-1] if name == "prepare" else None) as more:
                        self._step(name, command, [lock.fileno(), *more])
            except (TablesError, OSError) as error:
                failed.write_text(f"{error}\n", encoding="utf-8")
                print(f"{self.run.path} failed: {error}", file=sys.stderr)
                return 1
        return 0

    def steps(self, data: Path) -> dict[str, list[str]]:
        """The commands of a run by their names."""
        run, folder = self.run, str(data / self.run.table.partition("/")[0])
        prepare = {}
        for script in run.prepare[:1]:
            words = ["bash", str(ROOT / "prepare" / script), *run.prepare[1:], folder]
            prepare = {"prepare": words}
        recipe = EXAMPLES / run.recipe
        pairs = zip(("", *run.flags), run.flags, strict=False)
        own = [word for last, word in pairs if "--user-dir" in (last, word.partition("=")[0])]
        record = [sys.executable, "-m", "compgen_cli.results", "write"]
        return {
            **prepare,
            "train": ["bash", str(recipe / "train.sh"), folder, str(self.path), *run.flags],
            "evaluate": ["bash", str(recipe / "evaluate.sh"), folder, str(self.path), *own],
            "result": [*record, str(self.path), str(self.path / "RESULT.json")],
        }

    def _is_same(self) -> bool:
        """Whether the run was begun, if it was, as its line says now."""
        file = self.path / "ROW.json"
        return not file.exists() or file.read_text(encoding="utf-8") == self.row

    def _keep_row(self) -> None:
        file = self.path / "ROW.json"
        if not self._is_same():
            raise TablesError(
                f"{file} says that it was begun in another way; name another setting, or remove "
                "the folder"
            )
        partial = file.with_name("ROW.json.partial")
        partial.write_text(self.row, encoding="utf-8")
        partial.replace(file)

    def _step(self, name: str, command: list[str], locks: Sequence[int]) -> None:
        output = self.path / f"{name}.out"
        with output.open("w", encoding="utf-8") as file:
            done = subprocess.run(
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                pass_fds=locks,  # should this process be killed alone, they stay
            )
        if done.returncode:
            raise TablesError(f"{name} exited with {done.returncode}; {output} says why")

    def _environment(self) -> dict[str, str]:
        """This one, with this copy of the repository before any installed one."""
        run = self.run
        old = {name: text for name, text in os.environ.items() if name not in RECIPE_VARIABLES}

        def value(text: str) -> str:
            name, _, file = text[1:].partition("/")
            folder = self.path.with_name(f"{name}.{run.seed}")
            return str(folder / file) if text[:1] == "@" else text

        return {
            "OMP_NUM_THREADS": "1",
            **old,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), old.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), old.get("PYTHONPATH")])),
            **{name: value(text) for name, text in run.variables},
            "METHOD": run.method,
            "SEED": run.seed,
        }

    def progress(self) -> Progress:
        """How far the training is, as train.out says."""
        try:
            with (self.path / "train.out").open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 20_000))
                found = PROGRESS.findall(file.read().decode(errors="replace"))
        except FileNotFoundError:
            found = []
        if not found:
            return Progress()
        updates, wall, left = (int(float(text)) for text in found[-1])
        return Progress(updates, left, wall / 60 + left)
