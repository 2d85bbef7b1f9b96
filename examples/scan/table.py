"""Prints a Markdown table of evaluated runs: ``python examples/scan/table.py RUN...``."""

import json
import re
import sys
from pathlib import Path


def score(run: Path, name: str) -> str:
    """Exact match of one of a run's checkpoints."""
    found = json.loads((run / f"test.{name}.json").read_text(encoding="utf-8"))
    return f"{found['score']:.2f} ({found['correct']:,} / {found['total']:,})"


def row(run: Path) -> str:
    """One run's line: what it is, how long it trained, how much of the test set it got right."""
    log = (run / "train.log").read_text(encoding="utf-8")
    seconds = sum(float(s) for s in re.findall(r"done training in ([\d.]+) seconds", log))
    updates = max(int(n) for n in re.findall(r"num_updates[ =](\d+)", log))
    seed = re.findall(r"'seed': (\d+)", log)[-1]
    return (
        f"| {run.name} | {seed} | {updates:,} | {seconds / 60:.1f} "
        f"| {score(run, 'best')} | {score(run, 'last')} |"
    )


def main() -> int:
    print("Exact match on the whole test set. The chosen checkpoint is the best on the validation")
    print("set, which is a random 20% of the test set, as in the paper.\n")
    print("| method | seed | updates | minutes | chosen checkpoint | last checkpoint |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in sys.argv[1:]:
        print(row(Path(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
