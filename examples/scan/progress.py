"""Shows how far trainings are, until it is stopped: ``progress.py UPDATES RUN...``."""

import re
import sys
import time
from pathlib import Path

from tqdm import tqdm


def updates(run: Path) -> int:
    """The number of updates that a run's log has reached."""
    log = run / "train.log"
    if not log.exists():
        return 0
    with log.open(encoding="utf-8") as file:
        file.seek(max(log.stat().st_size - 20_000, 0))
        found = re.findall(r"num_updates[ =](\d+)", file.read())
    return int(found[-1]) if found else 0


def main() -> None:
    total, runs = int(sys.argv[1]), [Path(name) for name in sys.argv[2:]]
    bars = [
        tqdm(total=total, desc=run.name, unit="update", position=i, mininterval=10)
        for i, run in enumerate(runs)
    ]
    while True:
        for bar, run in zip(bars, runs, strict=True):
            bar.n = updates(run)
            bar.refresh()
        if not sys.stderr.isatty():
            sys.stderr.write("\n")
        if all(bar.n >= total for bar in bars):
            return
        time.sleep(5 if sys.stderr.isatty() else 60)


if __name__ == "__main__":
    main()
