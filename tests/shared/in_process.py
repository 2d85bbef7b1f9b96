"""Commands without a process of their own: importing PyTorch takes longer than most of them run."""

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PLUGIN = Path(__file__).parents[2] / "compgen_fairseq"


@dataclass(frozen=True)
class Outcome:
    """What became of a command: its exit status and what it printed."""

    status: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """What the user reads last."""
        return (self.err.strip().splitlines() or [""])[-1]


def call(command: str, words: Sequence[str]) -> Outcome:
    """Run ``fairseq-train``, ``compgen-score`` and the like in this process.

    What ends a command is told as in a process of its own: by the hook that the plugin sets for
    fairseq's commands. Exceptions that the process would show a traceback of end in one here.
    """
    module = command.replace("fairseq-", "fairseq_cli.").replace("compgen-", "compgen_cli.")
    with _streams(command, words) as (out, err):
        try:
            program = importlib.import_module(module)
            ours = command.startswith("compgen-")
            status = program.main(list(words)) if ours else program.cli_main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int | None) else 1
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except Exception as error:
            from compgen_fairseq import compat

            compat.say_errors_in_sentences()
            sys.excepthook(type(error), error, error.__traceback__)
            status = 1
        return Outcome(status or 0, out.getvalue(), err.getvalue())


def output(command: str, *words: object, status: int = 0) -> str:
    """What ``compgen-score`` or ``compgen-analyze errors`` prints, after checking its status."""
    name, *kind = command.split()
    said = call(name, [*kind, *map(str, words)])
    assert said.status == status, said.err
    return said.out


def refusal(command: str, *words: object, bars: bool = False) -> str:
    """The sentence with which ``compgen-score`` or ``compgen-analyze errors`` refuses its words;
    it says nothing else, but for the progress bars of what it began."""
    name, *kind = command.split()
    said = call(name, [*kind, *map(str, words)])
    lines = said.err.splitlines()
    if bars:
        lines = [line for line in lines if line and "%|" not in line]
    assert (said.status, said.out, lines) == (1, "", [said.last_line]), words
    assert said.last_line.startswith(f"{command}: "), said.last_line
    return said.last_line


@contextlib.contextmanager
def _streams(command: str, words: Sequence[str]) -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """A process's arguments and streams, and everything as it was behind them."""
    before = sys.argv, sys.stdin, sys.excepthook, os.environ.copy()
    out, err = io.StringIO(), io.StringIO()
    sys.argv = [f"/usr/bin/{command}", *words]
    sys.stdin = io.StringIO()
    sys.excepthook = sys.__excepthook__
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield out, err
    finally:
        sys.argv, sys.stdin, sys.excepthook, environment = before
        os.environ.clear()
        os.environ.update(environment)
