"""Reads what the folder of one trained and evaluated run says: settings, data, time, scores."""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from compgen import provenance
from compgen.data.checksums import sha256
from compgen.reporting.flags import FILES, UNCOUNTED, decoding
from compgen.text import files_below, read_json

PREPARED = "PREPARED.json"
RESULT = "RESULT.json"  # what examples/tables.py leaves beside a run
CHECKPOINTS = ("best", "last")
DECODED = re.compile(r"data [^,]*, checkpoint (\w{16}), ")  # a recipe's log begins with it
DATA = "data"  # stands among the settings for the fingerprint of the data
DECODING = "decoding"  # and this for the flags of fairseq-generate
# The numbers of a score file that are scores; "score" is the metric's own.
NUMBERS = {"cter": ("instance", "aggregate"), "cogs": ("score", "lexical", "structural", "macro")}
LOWER_IS_BETTER = ("cter",)

# What a run's scores can depend on, by section of fairseq's configuration. Of `common` and
# `checkpoint` these options count; of the other sections every option but UNCOUNTED.
COUNTED = {
    "common": {"fp16", "bf16", "amp", "memory_efficient_fp16", "memory_efficient_bf16"},
    "checkpoint": set(
        "best_checkpoint_metric maximize_best_checkpoint_metric patience "
        "finetune_from_model restore_file continue_once".split()
    ),
}
# What two options are where a run begins or resumes by itself; then they are not named.
BY_ITSELF = {"checkpoint.restore_file": "checkpoint_last.pt", "checkpoint.continue_once": None}
SECTIONS = (
    "common checkpoint dataset optimization model task criterion optimizer lr_scheduler bpe "
    "tokenizer ema"
).split()


class ScoreName(NamedTuple):
    """A number that a run was given.

    Args:
        name: the metric, the number's own name if it has several, and the subset if that is not
            the metric's usual one: ``cter instance``, ``exact_match (test1)``.
        checkpoint: ``best`` or ``last``.
    """

    name: str
    checkpoint: str

    @property
    def metric(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def number(self) -> str:
        """The number's own name; ``score`` if it is the metric's only or main one."""
        return self.name.partition(" (")[0].partition(" ")[2] or "score"

    @property
    def lower_is_better(self) -> bool:
        return self.metric in LOWER_IS_BETTER


class Score(NamedTuple):
    """A score.

    Args:
        value: in percent.
        signature: of the file it stands in.
        file: that file.
        options: the metric's that the file names.
    """

    value: float
    signature: str
    file: Path = Path()
    options: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)  # hashed by identity
class Run:
    """One run.

    Args:
        path: its folder, as it was given.
        label: the folder's name without its seed.
        seed: the training's ``--seed``.
        settings: what may change a score, ``section.option`` to value, with ``data`` for the
            fingerprint of the data; seed, paths, logging and devices are not in it.
        updates: the number of updates it was trained for.
        minutes: what the training took; None where a part is not recorded.
        scores: by their name.
        command: what started the training, as far as that is recorded.
        machine: what it ran on, as far as that is recorded.
        data: the data's folder, as it was given to the training.
        prepared: what the data's ``PREPARED.json`` says.
        record: what ``RUN.json`` says.
    """

    path: Path
    label: str
    seed: int
    settings: dict[str, Any]
    updates: int
    minutes: float | None
    scores: dict[ScoreName, Score]
    command: str = "not recorded"
    machine: str = "not recorded"
    data: Path = Path()
    prepared: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)


def read_run(path: Path | str, may_differ: frozenset[str] = frozenset()) -> Run:
    """Read the folder of a run: ``RUN.json``, the score files and ``PREPARED.json``.

    Args:
        path: the folder that the recipes' train.sh and evaluate.sh wrote to.
        may_differ: settings that may have changed when the run was resumed.

    Raises:
        ValueError: if something is missing or unreadable, or the run was resumed with other
            settings.
    """
    path = Path(path)
    file = path / provenance.FILE
    if not file.exists():
        raise ValueError(f"{path} is not the folder of a training: it has no {file.name}")
    record = read_json(file)
    try:
        sessions = record["sessions"]
        *before, last = (settings(session["settings"]) for session in sessions)
        seed = whole(sessions[-1]["settings"]["common"]["seed"])
        data = Path(str(sessions[-1]["settings"]["task"]["data"]).partition(":")[0])
        minutes = sum(number(session["minutes"]) for session in sessions)
        whole_run = not sessions[0].get("from_update")
        updates = whole(record["updates"])
        commands, machines = (
            "; then ".join(dict.fromkeys(tell(session) for session in sessions))
            for tell in (lambda s: s["command"], lambda s: provenance.machine(s["machine"]))
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ValueError(f"{file}: it is not a record of a training") from None
    others = changed(before, last)
    if found := [name for name in others if not named(name, may_differ)]:
        told = ", ".join(f"{short(name)} ({others[name]}, then {last[name]})" for name in found)
        raise ValueError(
            f"{path} was resumed with another {told}; if that is meant, say --allow-differences "
            f"{','.join(map(short, found))}"
        )
    prepared = _prepared(path, data)
    return Run(
        path=path,
        label=_label(path, seed),
        seed=seed,
        settings={**last, DATA: fingerprint(prepared["sha256"]), DECODING: _decoding(path)},
        updates=updates,
        minutes=minutes if whole_run else None,
        scores=_scores(path),
        command=commands,
        machine=machines,
        data=data,
        prepared=prepared,
        record=record,
    )


def _decoding(path: Path) -> str:
    """The flags that a recipe decoded with, of the first line of its logs."""
    lines = map(_first_line, sorted(path.glob("*.*.log")))
    return decoding(line.partition(", flags ")[2] for line in lines if line.startswith("data "))


def _first_line(log: Path) -> str:
    with log.open(encoding="utf-8", errors="replace") as file:
        return file.readline(10_000).strip()


def read_result(file: Path) -> Run:
    """A result as the run that it is of; its ``record`` is the whole content.

    Raises:
        ValueError: if it is none, or is of another method or seed than its name says.
    """
    found = read_json(file)
    try:
        run = Run(
            path=file,
            label=found["method"],
            seed=whole(found["seed"]),
            settings={"settings": found["settings"], DATA: found["data"]["fingerprint"]},
            updates=whole(found["updates"]),
            minutes=None if found["minutes"] is None else number(found["minutes"]),
            scores={
                ScoreName(name, checkpoint): Score(
                    number(value["score"] if isinstance(value, dict) else value),
                    found["signatures"][name],
                    file,
                )
                for checkpoint in CHECKPOINTS
                for name, value in found["scores"][checkpoint].items()
            },
            command=found["command"],
            machine=found["machine"],
            prepared=found["data"],
            record=found,
        )
        _ = [found[key] for key in ("verdicts", "epochs", "parameters", "revision")]
        _ = [found["chosen"][key] for key in ("metric", "subset", "from", "value")]
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ValueError(f"{file}: it is not a result of compgen-results") from None
    if file.name not in (f"{run.label}.{run.seed}.json", RESULT):
        raise ValueError(f"{file}: by its content its name is {run.label}.{run.seed}.json")
    return run


def read_runs(path: Path | str, may_differ: frozenset[str] = frozenset()) -> list[Run]:
    """What a path of compgen-report stands for: a result, a run, or a folder of either.

    Args:
        path: a file, or a folder.
        may_differ: settings that may have changed when a run was resumed.

    Raises:
        ValueError: as :func:`read_result` and :func:`read_run`.
    """
    path = Path(path)
    if path.is_file():
        return [read_result(path)]
    if any((path / name).exists() for name in (provenance.FILE, PREPARED)):
        return [read_run(path, may_differ)]
    if runs := sorted(file.parent for file in files_below(path, provenance.FILE)):
        for file in files_below(path, RESULT):
            if file.parent not in runs:
                raise ValueError(f"{file} has no run beside it, as others have: name it alone")
        return [read_run(run, may_differ) for run in runs]
    results = [read_result(file) for file in files_below(path, "*.json")]
    return results or [read_run(path, may_differ)]


def whole(value: Any) -> int:
    """The value, if it is a whole number; a TypeError if not."""
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def number(value: Any) -> float:
    """The value, if it is a finite number; a TypeError if not."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def settings(configuration: dict[str, Any]) -> dict[str, Any]:
    """What of a fairseq configuration may change a score, as ``section.option`` to value.

    ``optimization.update_freq`` is multiplied by the number of workers: a batch of four workers
    and one of four accumulated steps are the same.
    """
    found = {}
    for section in SECTIONS:
        options = configuration.get(section) or {}
        counted = COUNTED.get(section, options.keys() - UNCOUNTED)
        found.update({f"{section}.{name}": options[name] for name in options if name in counted})
    workers = configuration["distributed_training"]["distributed_world_size"]
    frequency = "optimization.update_freq"
    found[frequency] = [whole(n) * whole(workers) for n in found[frequency]]
    for name, value in BY_ITSELF.items():
        if found.get(name) == value:
            found.pop(name, None)
    for name, file in found.items():
        if file and short(name) in FILES:
            found[name] = Path(file).name
    return found


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """The settings in which two runs differ, also where one has them and the other has not."""
    return [name for name in {**a, **b} if name not in a or name not in b or a[name] != b[name]]


def changed(before: Iterable[dict[str, Any]], last: dict[str, Any]) -> dict[str, Any]:
    """The settings that an earlier session had otherwise than the last one, with their values then.

    One that only some sessions have is an option that a new version brought or dropped.
    """
    return {
        name: session[name]
        for session in before
        for name in session
        if name in last and session[name] != last[name]
    }


def short(setting: str) -> str:
    """A setting as one knows it: ``dropout`` for ``model.dropout``, ``model`` for its name."""
    return setting.removesuffix("._name").rpartition(".")[2]


def named(setting: str, names: frozenset[str]) -> bool:
    """Whether a setting is among some names, which may be written like the flags."""
    return short(setting) in {name.lstrip("-").replace("-", "_") for name in names}


def _label(path: Path, seed: int) -> str:
    """``sal-brown`` for ``runs/sal-brown.1`` and ``runs/sal-brown/seed1`` of seed 1."""
    folder = Path(os.path.abspath(path))  # a link has its own name
    suffix = re.compile(rf"(^|[._]|(?<![0-9]e)-)(seed[._-]?)?{seed}$")  # not that of 1e-3
    return suffix.sub("", folder.name) or folder.parent.name


def _prepared(path: Path, data: Path) -> dict[str, Any]:
    """The record of the data that the run was trained on; the run's own copy comes first."""
    for folder in (path, data):
        record = folder / PREPARED
        if record.exists():
            found = read_json(record)
            if not (isinstance(found, dict) and found.get("sha256")):
                raise ValueError(f"{record}: it has no checksums of the data (sha256)")
            return found
    raise ValueError(
        f"{path}: its training data are unknown: there is neither "
        f"{path / PREPARED} nor {data / PREPARED}"
    )


def fingerprint(content: Any) -> str:
    """Twelve hexadecimal digits by which one tells whether two contents are the same."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _must_be_of(weights: Path, logs: Iterable[Path]) -> None:
    """Refuse logs of another checkpoint: the recipes' name theirs by its SHA-256."""
    digest = ""
    for log in logs if weights.exists() else ():
        if named := DECODED.match(_first_line(log)):
            digest = digest or sha256(weights)[:16]
            if named[1] != digest:
                raise ValueError(f"{log} is of another {weights.name}: evaluate the run again")
        else:
            _must_be_later(log, weights)


def _must_be_later(made: Path, weights: Path) -> None:
    """Refuse what is older than its checkpoint. Where a copy has lost the times of scores,
    evaluate.sh does not decode again."""
    if weights.exists() and weights.stat().st_mtime > made.stat().st_mtime:
        raise ValueError(f"{made} is older than {weights}: evaluate the run again")


def _scores(path: Path) -> dict[ScoreName, Score]:
    """The numbers in ``test.best.json``, ``cter.last.json`` and the like."""
    scores: dict[ScoreName, Score] = {}
    for checkpoint in CHECKPOINTS:
        weights = path / f"checkpoint_{checkpoint}.pt"
        _must_be_of(weights, sorted(path.glob(f"*.{checkpoint}.log")))
        for file in sorted(path.glob(f"*.{checkpoint}.json")):
            found = read_json(file)
            if not isinstance(found, dict) or "metric" not in found:
                continue  # codes.best.json
            _must_be_later(file, weights)
            metric, subset = str(found["metric"]), file.name.partition(".")[0]
            about = "" if subset in ("test", metric) else f" ({subset})"
            for key in NUMBERS.get(metric, ("score",)):
                if found.get(key) is None:
                    continue  # a case of COGS without sentences
                name = metric if key == "score" else f"{metric} {key}"
                try:
                    value = number(found[key])
                except TypeError:
                    raise ValueError(f"{file}: its {key} is not a number") from None
                options = found.get("options")
                options = options if isinstance(options, dict) else {}
                score = ScoreName(name + about, checkpoint)
                if score in scores:
                    both = f"{scores[score].file} and {file}"
                    raise ValueError(f"{both} both have {score.name}: remove one of them")
                scores[score] = Score(value, str(found.get("signature")), file, options)
    if not scores:
        raise ValueError(f"{path}: it has no scores; evaluate.sh writes them")
    return scores
