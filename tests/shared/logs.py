"""Logs of fairseq-generate, as a test wants them."""

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
