"""Copies a training's log and adds the time that is left: ``... | python time_left.py UPDATES``."""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator


def annotate(
    lines: Iterable[str], total: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[str]:
    """Append an estimate to each line that reports training updates.

    The pace is the mean since the first such line, so a resumed training starts afresh.

    Args:
        lines: fairseq's log, as ``--log-format simple`` writes it.
        total: the number of updates the training ends after.
        clock: seconds.
    """
    start: tuple[int, float] | None = None
    for line in lines:
        found = re.search(r"train_inner .*num_updates=(\d+)", line)
        if found:
            updates, now = int(found[1]), clock()
            start = start or (updates, now)
            if updates > start[0]:
                left = (total - updates) * (now - start[1]) / (updates - start[0])
                line = f"{line.rstrip()}, time left {left / 60:.0f} min\n"
        yield line


def main() -> None:
    for line in annotate(sys.stdin, int(sys.argv[1])):
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
