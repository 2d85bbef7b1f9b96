"""The command and the machine of a training: written into its log, and read from there."""

import functools
import logging
import os
import platform
import re
import shlex
import sys
from pathlib import Path

UNKNOWN = "not recorded"
COMMAND = re.compile(r"\| command \| (.+)$", re.MULTILINE)
MACHINE = re.compile(r"\| machine \| (.+)$", re.MULTILINE)
GPU = re.compile(r"\| rank +(\d+): capabilities .*; name = (.*?) *$", re.MULTILINE)  # fairseq's


@functools.cache
def log_start() -> None:
    """Log, once per process, the command that runs and the machine that it runs on."""
    logger = logging.getLogger(__name__)
    logger.info("command | %s", shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]))
    logger.info("machine | %s", this_machine())


def this_machine() -> str:
    """The processor and how many of its cores this process may use."""
    try:
        information = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        information = ""
    named = re.search(r"^model name\s*:\s*(.+)$", information, re.MULTILINE)
    name = named[1].strip() if named else platform.processor() or platform.machine()
    return f"{_cores()} cores of {name}"


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def commands(log: str) -> str:
    """The command that a log of fairseq-train names; each of them if it was resumed by another."""
    return _told(COMMAND.findall(log))


def machines(log: str) -> str:
    """The machine that a log of fairseq-train names, with the GPUs that fairseq lists."""
    gpus: dict[str, set[str]] = {}
    for rank, name in GPU.findall(log):
        gpus.setdefault(name, set()).add(rank)
    found = [f"{len(ranks)} x {name}" for name, ranks in gpus.items()]
    return _told(found + MACHINE.findall(log), between=", ")


def _told(found: list[str], between: str = "; then ") -> str:
    return between.join(dict.fromkeys(found)) or UNKNOWN
