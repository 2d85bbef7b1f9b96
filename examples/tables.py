#!/usr/bin/env python3
"""Reproduces tables: prepares data, trains, evaluates and records the runs that a file names.

Called again it goes on: what is finished is left alone, what was interrupted resumes from its last
checkpoint. The file may be appended to meanwhile. A run is the folder OUT/DATA/SETTING/METHOD.SEED;
what its steps print is in *.out there, its figures in RESULT.json.
"""

import argparse
import dataclasses
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from folders import DONE, FAILED, RUNNING, STATES, WAITING, Folder
from rows import EXAMPLES, Run, TablesError, parse

SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_REPORTS = 5, 300


class Queue:
    """Runs side by side, by priority."""

    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.runs: list[Run] = []
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.tried: set[str] = set()
        self.complaint = ""

    def folders(self) -> list[Folder]:
        """The chosen runs and those they need; if the file is wrong now, as it was before.

        Raises:
            TablesError: it has been wrong from the start, or there is no such run.
        """
        try:
            self.runs, self.complaint = self._chosen(parse(self.args.file)), ""
        except TablesError as error:
            if not self.runs:
                raise
            if str(error) != self.complaint:
                self.complaint = str(error)
                print(f"{error}; going on with what it said before", file=sys.stderr)
        return [Folder(run, self.args.out) for run in self.runs]

    def _chosen(self, runs: list[Run]) -> list[Run]:
        patterns, needs = self.args.patterns, {run.path: run.after for run in runs}
        chosen = {path for path in needs if any(re.search(pattern, path) for pattern in patterns)}
        if not chosen:
            raise TablesError(f"{self.args.file}: no run matches {' '.join(patterns)}")
        wanted = list(chosen)
        for path in wanted:  # what is needed may need another one
            wanted += {*needs[path]} - chosen
            chosen.update(needs[path])
        return [run for run in runs if run.path in chosen]

    def work(self) -> int:
        """Keep the jobs going until nothing can be started; the exit status."""
        for folder in self.folders():
            if not folder.locked():
                (folder.path / "failed").unlink(missing_ok=True)
        said = time.monotonic()
        try:
            while True:
                self._reap()
                states = {folder: self._state(folder) for folder in self.folders()}
                # a child's line may have left the file, another process may run others of it
                of_file = {folder.run.path for folder, s in states.items() if s == RUNNING}
                running = len(self.children.keys() | of_file)
                for folder in self._ready(states)[: max(self.args.jobs - running, 0)]:
                    self._start(folder)
                    running += 1
                for folder, state in states.items():
                    if state == DONE:
                        self._collect(folder.run.path)
                if not running:
                    break
                if time.monotonic() > said + SECONDS_BETWEEN_REPORTS:
                    said = time.monotonic()
                    say(self.summary(states))
                self._wait()
        finally:
            for child in self.children.values():
                os.killpg(child.pid, signal.SIGTERM)
            for path in self.children:
                with (self.args.out / path / "lock").open("a") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)  # free when all of their processes have ended
        left = [folder.run.path for folder, state in states.items() if state != DONE]
        print("".join(f"{path} is not done\n" for path in left), end="", file=sys.stderr)
        return 1 if left else 0

    def _wait(self) -> None:
        """Until a run ends, or it is time to look at the file again."""
        end = time.monotonic() + SECONDS_BETWEEN_LOOKS
        while time.monotonic() < end and all(c.poll() is None for c in self.children.values()):
            time.sleep(0.1)

    def _state(self, folder: Folder) -> str:
        return RUNNING if folder.run.path in self.children else folder.state()

    def _ready(self, states: dict[Folder, str]) -> list[Folder]:
        """What can be started, by priority; of equal ones what was begun before comes first."""
        done = {folder.run.path for folder, state in states.items() if state == DONE}
        ready = [
            folder
            for folder, state in states.items()
            if state == WAITING and folder.run.path not in self.tried
            if done.issuperset(folder.run.after)
        ]
        return sorted(ready, key=lambda f: (f.run.priority, not (f.path / "ROW.json").exists()))

    def _start(self, folder: Folder) -> None:
        path = folder.run.path
        folder.path.mkdir(parents=True, exist_ok=True)
        self.tried.add(path)
        say(f"{path} starts")
        run = json.dumps(dataclasses.asdict(folder.run))
        options = ["--data", str(self.args.data), "--only", run]
        self.children[path] = subprocess.Popen(
            [sys.executable, __file__, str(self.args.out), *options],
            start_new_session=True,  # Ctrl-C is for this process, which ends them
        )

    def _reap(self) -> None:
        for path, child in list(self.children.items()):
            if child.poll() is not None:
                del self.children[path]
                say(f"{path} {'is done' if child.returncode == 0 else 'is not done'}")
                if child.returncode == 0:  # its line may have left the file
                    self._collect(path)

    def _collect(self, path: str) -> None:
        """Copy the result of a finished run to where it is kept."""
        result = (self.args.out / path / "RESULT.json").read_bytes()
        kept = self.args.results and self.args.results / f"{path}.json"
        if kept and not (kept.exists() and kept.read_bytes() == result):
            kept.parent.mkdir(parents=True, exist_ok=True)
            partial = kept.with_name(f".{kept.name}.{os.getpid()}")
            partial.write_bytes(result)
            partial.replace(kept)

    def show(self) -> None:
        """Print what is running, failed and left, and when it ends."""
        states = {folder: folder.state() for folder in self.folders()}
        for folder, state in states.items():
            if state == RUNNING:
                found = folder.progress()
                told = f"{found.updates:,} updates, trained {_until(found.left)}"
            elif state == FAILED:
                told = (folder.path / "failed").read_text(encoding="utf-8").strip()
            else:
                minutes = None if state == DONE else _estimate(folder, states)
                told = "" if minutes is None else f"about {minutes:.0f} min"
            if state != DONE:
                print(f"{state:8} {folder.run.path:50} {told}".rstrip())
        print(self.summary(states))

    def summary(self, states: dict[Folder, str]) -> str:
        """How many runs are in which state, and when the last one is trained."""
        found = list(states.values())
        left = [folder.progress().left for folder, state in states.items() if state == RUNNING]
        left += [0.0] * (self.args.jobs - len(left))
        waiting = [_estimate(folder, states) for folder in states if states[folder] == WAITING]
        unknown = [*left, *waiting].count(None)
        ends = sorted(minutes or 0.0 for minutes in left)
        for minutes in waiting:
            ends = sorted([ends[0] + (minutes or 0.0), *ends[1:]])
        told = ", ".join(f"{found.count(state)} {state}" for state in STATES)
        if RUNNING not in found and WAITING not in found:
            return told
        if unknown == found.count(RUNNING) + found.count(WAITING):
            return f"{told}; no estimate yet"
        without = f", but for {unknown} without an estimate yet" if unknown else ""
        return f"{told}; trained {_until(ends[-1])}, {self.args.jobs} at a time{without}"


def _estimate(folder: Folder, states: dict[Folder, str]) -> float | None:
    """The minutes of a run: what is left of a begun one, or else the mean of its like."""
    if (left := folder.progress().left) is not None:
        return left
    others = [(other.run, minutes) for other in states if (minutes := other.progress().whole)]
    run = folder.run
    for alike in (
        [m for r, m in others if (r.table, r.name) == (run.table, run.name)],
        [m for r, m in others if r.table == run.table],
    ):
        if alike:
            return sum(alike) / len(alike)
    return None


def _until(minutes: float | None) -> str:
    if minutes is None:
        return "no estimate yet"
    return f"until {datetime.now() + timedelta(minutes=minutes):%a %H:%M}"


def say(text: str) -> None:
    print(f"{datetime.now():%a %H:%M} {text}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Do or show the runs; return 0 if all are done, 1 if some are not, 2 if it cannot start."""
    parser = argparse.ArgumentParser(prog="tables.py", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="where the runs go")
    text = "regular expressions, looked for in DATA/SETTING/METHOD.SEED; '' is every run"
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help=text)
    text = "the runs (default: examples/tables.txt)"
    parser.add_argument("--file", type=Path, default=EXAMPLES / "tables.txt", help=text)
    parser.add_argument("--data", type=Path, help="where data are prepared (default: OUT/data-bin)")
    parser.add_argument("--results", type=Path, help="where copies of finished runs' results go")
    text = "runs at a time (default: 1)"
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help=text)
    text = "show what is done and what is left, and exit"
    parser.add_argument("--status", action="store_true", help=text)
    parser.add_argument("--only", metavar="JSON", help=argparse.SUPPRESS)  # one job of a queue
    args = parser.parse_intermixed_args(argv)
    args.out = args.out.resolve()
    args.data = (args.data or args.out / "data-bin").resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if args.only:
            return Folder(Run(**json.loads(args.only)), args.out).do(args.data)
        if not args.patterns:
            raise TablesError("say which runs: PATTERN, or '' for all")
        if args.jobs < 1:
            raise TablesError(f"--jobs is at least 1, not {args.jobs}")
        queue = Queue(args)
        if args.status:
            queue.show()
            return 0
        return queue.work()
    except (TablesError, re.error, OSError) as error:
        print(f"tables.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
