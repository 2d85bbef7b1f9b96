"""A result: all that is kept of one finished and evaluated run, as a small JSON file."""

import re
import shlex
from pathlib import Path
from typing import Any

from compgen.reporting import outcomes
from compgen.reporting.choice import choice
from compgen.reporting.curves import read_log
from compgen.reporting.flags import flags
from compgen.reporting.report import cases_of
from compgen.reporting.runs import (
    CHECKPOINTS,
    DATA,
    DECODING,
    Run,
    ScoreName,
    changed,
    fingerprint,
    read_run,
)
from compgen.reporting.runs import settings as settings_of
from compgen.reporting.verdicts import pack, parts
from compgen.text import read_json

STEP = re.compile(r"\| epoch (\d+): +(\d+) / (\d+) ")  # in each line of --log-format simple


def result(folder: Path | str, may_differ: frozenset[str] = frozenset()) -> dict[str, Any]:
    """What is kept of a run.

    ``scores`` has the chosen checkpoint's and the last one's, each as its metric counts it;
    ``verdicts`` says, for the chosen checkpoint, which test sentences were right, ``cases`` how
    many of each case; ``chosen`` says by what metric of which validation subset, and what part of
    the data that is; ``settings`` is a fingerprint of the command's flags that may change a score,
    but the seed, ``decoding`` the flags of its decoding; minutes are those of all sessions, none if
    the training was begun without being recorded; ``machine`` names every session's, ``changed``
    the settings that an earlier session had otherwise; command, revision and versions are the last
    session's.

    Args:
        folder: of the run.
        may_differ: settings that may have changed when the run was resumed.

    Raises:
        ValueError: if the run is not finished, not evaluated since, or not readable.
    """
    run = read_run(folder, may_differ)
    sessions = run.record["sessions"]
    last = sessions[-1]
    *before, settings = (settings_of(session["settings"]) for session in sessions)
    most = last["settings"]["optimization"]["max_update"]
    log = read_log(run.path)
    if most and run.updates < most and not _ended(log):
        raise ValueError(f"{run.path} has done {run.updates} of {most} updates: it is not finished")
    best, of_last = ({n.name for n in run.scores if n.checkpoint == c} for c in CHECKPOINTS)
    if alone := ", ".join(sorted(best ^ of_last)):
        raise ValueError(f"{run.path} has {alone} of one checkpoint only: evaluate it to the end")
    return {
        "method": run.label,
        "seed": run.seed,
        "scores": {
            checkpoint: {
                name.name: _numbers(score.file, name)
                for name, score in run.scores.items()
                if name.checkpoint == checkpoint
            }
            for checkpoint in CHECKPOINTS
        },
        "signatures": {
            name.name: score.signature
            for name, score in run.scores.items()
            if name.checkpoint == "best"
        },
        "verdicts": _verdicts(run),
        **({"cases": cases} if (cases := cases_of(run)) else {}),
        "chosen": choice(run),
        "settings": setting(last),
        "decoding": run.settings[DECODING],
        "updates": run.updates,
        "epochs": _epochs(log),
        **_minutes(sessions),
        "sessions": len(sessions),
        "changed": list(changed(before, settings)),
        "parameters": run.record["parameters"],
        "machine": run.machine,
        "revision": last["revision"],
        **({"plugin": last["plugin"]} if "plugin" in last else {}),
        "versions": last["versions"],
        "command": without_folders(last["command"]),
        "data": {
            "fingerprint": run.settings[DATA],
            "command": run.prepared.get("command"),
            "pairs": run.prepared.get("pairs"),
        },
    }


def setting(session: dict[str, Any]) -> str:
    """A fingerprint of what results of one setting have in common: the flags of fairseq-train, or
    the configuration of fairseq-hydra-train, whose command does not tell what its file says."""
    if not session["command"].startswith("fairseq-train "):
        return fingerprint(settings_of(session["settings"]))
    found = flags(session["command"])
    processes = session["settings"]["distributed_training"]["distributed_world_size"]
    if processes > 1:  # of the GPUs of one machine no flag tells
        found["distributed-world-size"] = [str(processes)]
    return fingerprint(found)


def without_folders(command: str) -> str:
    """A command with the names of the folders and files of the machine that it ran on."""
    path = re.compile(r"^(-[^=]*=)?(/.*)$", re.DOTALL)
    words = (path.sub(lambda m: (m[1] or "") + Path(m[2]).name, w) for w in shlex.split(command))
    return shlex.join(words)


def _minutes(sessions: list[dict[str, Any]]) -> dict[str, float | None]:
    """The time of all sessions; None if the first ones were not recorded."""
    names = ("minutes", "cpu_minutes")
    if sessions[0]["from_update"]:
        return dict.fromkeys(names)
    return {name: round(sum(session[name] for session in sessions), 1) for name in names}


def _numbers(file: Path, name: ScoreName) -> float | dict[str, float]:
    """The number of a score or, of exact match, how many of how many, too."""
    found = read_json(file)
    value = round(found[name.number], 4)
    if name.number == "score" and "correct" in found:
        return {"score": value, "correct": found["correct"], "total": found["total"]}
    return value


def _ended(log: str) -> bool:
    """Whether a training ended by itself, as one that ``--patience`` ends early."""
    return log.rfind("| done training in ") > log.rfind("| begin training epoch ")


def _epochs(log: str) -> float | None:
    """How many epochs the last line about training is after."""
    if not (found := STEP.findall(log)):
        return None
    epoch, step, steps = map(int, found[-1])
    return round(epoch - 1 + step / steps, 2)


def _verdicts(run: Run) -> dict[str, dict[str, Any]]:
    """For each score of the chosen checkpoint that has a value for each sentence: which were right,
    or wrong for CTER.

    Raises:
        NoOutcomes: a log, also of the last checkpoint, is broken or gives another score.
    """
    found = {}
    for name in run.scores:
        if name.number == "aggregate" and name.name.replace("aggregate", "instance") in found:
            continue  # it follows from the groups of the instance rate
        if name.name.startswith(outcomes.COGS):
            continue  # its sentences are those of exact match
        try:
            values = outcomes.outcomes(run, name).values
        except outcomes.BrokenLog:
            raise
        except outcomes.NoOutcomes:
            if name.number == "aggregate":  # the data are not where they were
                raise
            continue
        if name.checkpoint == "best" and values and (per := parts(values)) is not None:
            found[name.name] = {"n": len(values), "of": per, "bits": pack(values, per)}
    return found
