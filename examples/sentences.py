"""Prints how many sentences a subset has: ``python sentences.py DATA SUBSET``."""

import json
import sys
from pathlib import Path


def sentences(folder: str, subset: str) -> int:
    """What PREPARED.json says.

    Raises:
        ValueError: it says nothing of the kind; the message is one sentence.
    """
    file = Path(folder, "PREPARED.json")
    try:
        number = json.loads(file.read_text(encoding="utf-8"))["pairs"].get(subset, 0)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        number = None
    if type(number) is not int or number < 0:
        raise ValueError(
            f"{file} does not say how many sentences {subset} has; prepare the folder again"
        )
    return number


if __name__ == "__main__":
    try:
        print(sentences(*sys.argv[1:]))
    except ValueError as error:
        sys.exit(f"sentences.py: {error}")
