"""Copies a training's log and adds the time that is left: ``... | python time_left.py UPDATES``."""

import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator


def annotate(
    lines: Iterable[str], total: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[str]:
    """Append an estimate to each line that reports training updates.

    The pace is the mean since the training began or was resumed. A notice about a package that
    nothing here needs is left out.

    Args:
        lines: fairseq's log, as ``--log-format simple`` writes it.
        total: the number of updates the training ends after.
        clock: seconds.
    """
    start: tuple[int, float] | None = None
    resumed = 0
    for line in lines:
        if "Please install tensorboardX" in line:
            continue
        if found := re.search(r"Loaded checkpoint .* @ (\d+) updates", line):
            resumed = int(found[1])
        if start is None and "begin training epoch" in line:
            start = (resumed, clock())
        found = re.search(r"train_inner .*num_updates=(\d+)", line)
        if found:
            updates, now = int(found[1]), clock()
            start = start or (updates, now)
            if updates > start[0]:
                left = (total - updates) * (now - start[1]) / (updates - start[0])
                rest = "" if left > 0 else ", the last validation is going on"
                line = f"{line.rstrip()}, time left {math.ceil(left / 60)} min{rest}\n"
        yield line


def main() -> None:
    for line in annotate(sys.stdin, int(sys.argv[1])):
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
