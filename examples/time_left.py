"""Copies a log and says how long it takes: a pipe behind a training or a decoding.

fairseq-train ... | python time_left.py training               the time that is left, at each report
fairseq-generate ... | python time_left.py decoding SENTENCES     how far it is, on standard error
"""

import functools
import math
import queue
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

SILENCE = 30.0  # seconds after which it is said what is going on
PHASES = {
    "begin training epoch": "training",
    "| train_inner |": "training",
    "begin validation": "validation",
    "Saved checkpoint": "training",
}


def training(
    lines: Iterable[str | None], clock: Callable[[], float] = time.monotonic
) -> Iterator[str]:
    """Append an estimate to each line that reports training updates.

    The pace is the mean since the training began or was resumed, the end ``--max-update`` in the
    configuration that fairseq logs first. A notice about a package that nothing here needs is left
    out.

    Args:
        lines: fairseq's log, as ``--log-format simple`` writes it; None where it has been silent.
        clock: seconds.
    """
    start: tuple[int, float] | None = None
    total = resumed = 0
    phase, since = "preparation", clock()
    for line in lines:
        if line is None:
            yield f"{phase} is going on, {clock() - since:.0f} s so far\n"
            continue
        if "Please install tensorboardX" in line:
            continue
        for mark, next_phase in PHASES.items():
            if mark in line:
                phase, since = next_phase, clock()
        if found := re.search(r"'optimization': \{[^{}]*'max_update': (\d+)", line):
            total = int(found[1])
        if found := re.search(r"Loaded checkpoint .* @ (\d+) updates", line):
            resumed = int(found[1])
        if start is None and "begin training epoch" in line:
            start = (resumed, since)
        if found := re.search(r"train_inner .*num_updates=([\d.e+]+)", line):
            updates = int(float(found[1]))  # 1e+06
            start = start or (updates, since)
            if total and updates > start[0]:
                left = (total - updates) * (since - start[1]) / (updates - start[0])
                rest = "" if left > 0 else ", the last validation is going on"
                line = f"{line.rstrip()}, time left {math.ceil(left / 60)} min{rest}\n"
        yield line


def decoding(
    lines: Iterable[str | None],
    total: int,
    say: Callable[[str], object],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[str]:
    """Pass on what ``fairseq-generate`` prints, and say every 10 seconds how far it is.

    Args:
        lines: its output; None where it has been silent.
        total: how many sentences there are.
        say: gets a sentence, for people.
        clock: seconds.
    """
    done, start = 0, clock()
    say(f"decoding {total:,} sentences")
    said = start
    for line in lines:
        if line is not None:
            done += line.startswith("S-")
            yield line
        now = clock()
        if now - said >= 10:
            said = now
            passed = now - start
            left = f"{math.ceil(passed * (total / done - 1) / 60)} min left" if done else ""
            say(f"{done:,} of {total:,} sentences decoded, {left or f'{passed:.0f} s so far'}")


def heard(file: TextIO, patience: float) -> Iterator[str | None]:
    """The lines of a file as they come, and None whenever none has come for so many seconds."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in file:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=patience)
        except queue.Empty:
            yield None
            continue
        if not line:
            return
        yield line


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when what it copies has ended
    sys.stdin.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    sys.stdout.reconfigure(errors="surrogateescape", line_buffering=True)  # type: ignore[union-attr]
    if sys.argv[1] == "training":
        sys.stdout.writelines(training(heard(sys.stdin, SILENCE)))
    else:
        say = functools.partial(print, file=sys.stderr, flush=True)
        sys.stdout.writelines(decoding(heard(sys.stdin, 10), int(sys.argv[2]), say))


if __name__ == "__main__":
    main()
