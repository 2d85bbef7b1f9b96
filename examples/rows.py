"""The runs that a file such as tables.txt names."""

import dataclasses
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
ROOT = EXAMPLES.parent


class TablesError(ValueError):
    """Something that the user wrote; the message is one sentence."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One training.

    Args:
        table: ``DATA/SETTING``, as in ``cogs/128-wide``.
        name: of the method in the table.
        seed: SEED of the recipe.
        priority: the lowest goes first.
        recipe: a folder of ``examples/``.
        prepare: a script of ``prepare/`` and its arguments but the last, the folder to make;
            nothing if that is there already.
        method: METHOD of the recipe.
        variables: more of the recipe's variables. A value ``@NAME`` or ``@NAME/FILE`` is the folder
            of the run ``NAME`` of the same table and seed, or a file there: that run comes first.
        flags: for fairseq-train.
    """

    table: str
    name: str
    seed: str
    priority: int
    recipe: str
    prepare: tuple[str, ...]
    method: str
    variables: tuple[tuple[str, str], ...]
    flags: tuple[str, ...]

    @property
    def path(self) -> str:
        return f"{self.table}/{self.name}.{self.seed}"

    @property
    def after(self) -> list[str]:
        """The runs that must be finished before this one, as :attr:`path`."""
        names = [value[1:].partition("/")[0] for _, value in self.variables if value[:1] == "@"]
        return [f"{self.table}/{name}.{self.seed}" for name in names]

    def row(self) -> dict[str, object]:
        """What decides the outcome; kept in the run's folder as ROW.json."""
        found = dataclasses.asdict(self)
        del found["priority"]
        return found


def parse(path: Path) -> list[Run]:
    """Read a file of runs, in the order in which they are to be done.

    Raises:
        TablesError: if it cannot be read or a line is wrong; the message names the line.
    """
    data: dict[str, tuple[str, tuple[str, ...]]] = {}
    runs: dict[str, Run] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TablesError(f"{path}: {error}") from None
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
            if words[:1] == ["data"] and len(words) > 2:
                if words[1] in data:
                    raise TablesError(f"the data {words[1]} are named twice")
                data[words[1]] = words[2], tuple(words[3:])
                scripts = [ROOT / "prepare" / word for word in words[3:4]]
                for file in (EXAMPLES / words[2] / "evaluate.sh", *scripts):
                    if not file.is_file():
                        raise TablesError(f"there is no {file}")
            elif words[:1] == ["run"] and len(words) > 4:
                for run in _runs(words, data):
                    if run.path in runs:
                        raise TablesError(f"{run.path} is named twice")
                    runs[run.path] = run
            elif words:
                raise TablesError(
                    "a line is 'data NAME RECIPE [SCRIPT ARGUMENT...]' or "
                    "'run PRIORITY DATA/SETTING METHOD,... SEED,... [VARIABLE=VALUE...] [FLAG...]'"
                )
        except ValueError as error:
            raise TablesError(f"{path}:{number}: {error}") from None
    for run in runs.values():
        for name in run.after:
            if name not in runs:
                raise TablesError(f"{path}: {run.path} needs {name}, which is not there")
    return sorted(runs.values(), key=lambda run: run.priority)


def _runs(words: Sequence[str], data: dict[str, tuple[str, tuple[str, ...]]]) -> Iterable[Run]:
    """The runs of one line, seed by seed."""
    _, priority, table, methods, seeds, *more = words
    if not re.fullmatch(r"-?\d+", priority):
        raise TablesError(f"the priority {priority} is not a whole number")
    name, _, setting = table.partition("/")
    if name not in data:
        raise TablesError(f"no line above says what the data {name} are")
    if not re.fullmatch(r"[\w.-]+", setting):
        raise TablesError(f"{table} is not DATA/SETTING")
    recipe, prepare = data[name]
    n = next((i for i, word in enumerate(more) if not re.match(r"[A-Z]\w*=", word)), len(more))
    variables = tuple((k, v) for k, _, v in (word.partition("=") for word in more[:n]))
    for seed in _seeds(seeds):
        for label, _, method in (one.partition(":") for one in methods.split(",")):
            if not re.fullmatch(r"[\w.-]+", label):
                raise TablesError(f"{label!r} is not the name of a method")
            method, flags = method or label, tuple(more[n:])
            yield Run(table, label, seed, int(priority), recipe, prepare, method, variables, flags)


def _seeds(text: str) -> list[str]:
    """``1,7,77`` or ``1-5`` or both."""
    seeds: list[str] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not found:
            raise TablesError(f"{part!r} is not a seed")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise TablesError(f"the seeds {part!r} end before they begin")
        seeds += map(str, range(first, last + 1))
    return seeds
