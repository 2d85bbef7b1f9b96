"""Prints a Markdown table of evaluated runs: ``python examples/scan/table.py RUN...``."""

import json
import re
import sys
from pathlib import Path


def row(run: Path) -> str:
    """One run's line: what it is, how long it trained, how much of the test set it got right."""
    log = (run / "train.log").read_text(encoding="utf-8")
    score = json.loads((run / "test.json").read_text(encoding="utf-8"))
    seconds = sum(float(s) for s in re.findall(r"done training in ([\d.]+) seconds", log))
    updates = re.findall(r"num_updates[ =](\d+)", log)[-1]
    seed = re.findall(r"'seed': (\d+)", log)[-1]
    return (
        f"| {run.name} | {seed} | {int(updates):,} | {seconds / 60:.1f} "
        f"| {score['score']:.2f} | {score['correct']:,} / {score['total']:,} |"
    )


def main() -> int:
    print("| method | seed | updates | minutes | exact match | test commands |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in sys.argv[1:]:
        print(row(Path(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
