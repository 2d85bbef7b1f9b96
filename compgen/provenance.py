"""RUN.json: what a training was started with and on, kept beside its checkpoints."""

import contextlib
import json
import multiprocessing
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from compgen.output import write_files

FILE = "RUN.json"
PACKAGES = ("torch", "fairseq-fixed", "numpy", "sacrebleu")


class Record:
    """The record of a training that has just started or resumed.

    Each start is a session: its command, machine, versions and settings, and the time it took
    until the last checkpoint. The sessions before an update that was reached add up; a training
    that starts at update 0 starts the record anew.

    Args:
        folder: of the checkpoints.
        settings: fairseq's configuration by section.
        updates: how many have been done already.
        gpus: the names of the GPUs.
        processes: how many of them train together.

    Raises:
        ValueError: if there is another kind of file in its place.
        OSError: it cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        settings: dict[str, dict[str, Any]],
        updates: int,
        gpus: Sequence[str] = (),
        processes: int = 1,
    ):
        self.path = folder / FILE
        self.before: list[dict[str, Any]] = []
        if updates and self.path.exists():
            try:
                self.before = list(json.loads(self.path.read_text(encoding="utf-8"))["sessions"])
            except (ValueError, LookupError, TypeError):
                raise ValueError(
                    f"{self.path}: it is not a record of a training; remove it"
                ) from None
        self.began = time.monotonic()
        self.session = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "from_update": updates,
            "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "machine": this_machine(gpus, processes),
            "revision": revision(),
            **_plugin(settings),
            "versions": versions(),
            "settings": settings,
        }

    def save(self, updates: int, parameters: int) -> None:
        """Write the file.

        Args:
            updates: how many have been done.
            parameters: how many numbers the model is made of.

        Raises:
            ValueError: if it cannot be written.
        """
        self.session["minutes"] = round((time.monotonic() - self.began) / 60, 2)
        self.session["cpu_minutes"] = round(cpu_seconds() / 60, 2)
        found = {
            "updates": updates,
            "parameters": parameters,
            "sessions": [*self.before, self.session],
        }
        write_files((self.path, json.dumps(found, indent=1, default=str) + "\n"))


def cpu_seconds() -> float:
    """The CPU time of this process and of all that it has started, those that run included."""
    seconds = sum(os.times()[:4])  # without children that have not ended
    for child in multiprocessing.active_children():
        with contextlib.suppress(OSError):  # it has just ended, or this is no Linux
            fields = Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
            seconds += sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return seconds


def this_machine(gpus: Sequence[str] = (), processes: int = 1) -> dict[str, Any]:
    """The processor, how many of its cores this process may use, its threads, and the GPUs."""
    try:
        information = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        information = ""
    named = re.search(r"^model name\s*:\s*(.+)$", information, re.MULTILINE)
    return {
        "cpu": named[1].strip() if named else platform.processor() or platform.machine(),
        "cores": cores(),
        "threads": os.environ.get("OMP_NUM_THREADS", "not set"),
        "gpus": list(gpus),
        "processes": processes,
    }


def machine(recorded: dict[str, Any]) -> str:
    """:func:`this_machine` in words."""
    found = [*recorded["gpus"], f"{recorded['cores']} cores of {recorded['cpu']}"]
    found.append(f"OMP_NUM_THREADS {recorded['threads']}")
    if recorded["processes"] > 1:
        found.append(f"{recorded['processes']} processes")
    return ", ".join(found)


def cores() -> int:
    """How many cores this process may use, where the system says it."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _plugin(settings: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Of a plugin of one's own (``--user-dir``): its name and its revision."""
    folder = (settings.get("common") or {}).get("user_dir")
    if not folder or Path(folder).resolve().name == "compgen_fairseq":
        return {}
    own = Path(folder).resolve()
    return {"plugin": {"name": own.name, "revision": revision(own / "__init__.py")}}


def revision(here: Path | None = None) -> str | None:
    """The revision of git that this package is used from, with ``-dirty`` if it was changed.

    Args:
        here: a file of another package.
    """
    here = here or Path(__file__)

    def git(*words: str) -> str:
        command = ["git", "-C", str(here.parent), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # not in a repository around the environment
        return git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """Of Python and of what training rests on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
