"""Logs of fairseq-generate, as a test wants them, and what is in those of fairseq-train."""

import json
import re
from collections.abc import Sequence
from pathlib import Path


def write_log(
    path: Path, sources: Sequence[str], targets: Sequence[str] | None, hypotheses: Sequence[str]
) -> Path:
    """Write a log as fairseq-generate does; without targets as fairseq-interactive does."""
    lines = [
        f"S-{i}\t{source}\n" + (f"T-{i}\t{targets[i]}\n" if targets else "")
        + f"H-{i}\t-0.5\t{hypotheses[i]}\nD-{i}\t-0.5\t{hypotheses[i]}\nP-{i}\t-0.5\n"
        for i, source in enumerate(sources)
    ]  # fmt: skip
    end = f"2026-01-01 00:00:00 | INFO | x | Translated {len(lines)} sentences (9 tokens)\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines) + end, encoding="utf-8")
    return path


def figures(log: str, name: str) -> list[float]:
    """The values of ``name``, epoch by epoch, in a log file of fairseq-train (it repeats lines)."""
    values = dict(re.findall(rf"^epoch (\d+).* \| {name} (\S+)", log, re.MULTILINE))
    return [float(values[epoch]) for epoch in sorted(values, key=int)]


def logged(log: str, name: str) -> list[float]:
    """The same of ``--log-format json``, where ``name`` begins with ``train_`` or ``valid_``."""
    lines = map(json.loads, re.findall(r'(?:^|\| )(\{".*\})$', log, re.MULTILINE))
    values = {line["epoch"]: float(line[name]) for line in lines if name in line}
    return [values[epoch] for epoch in sorted(values)]
