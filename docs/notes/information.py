#!/usr/bin/env python3
"""What codes and their contexts share, I(Z; context) = H(Z) - H(Z|context), in nats (equation 4 of
Jiang, Zhou and Bansal, 2024), counted on a training set.

    python docs/notes/information.py DATA SOURCE [TARGET]

DATA is a folder of prepare/scan.sh. SOURCE and TARGET are classes, as "walk look | left right";
words with a number, as walk1, are in the class of those without. With SOURCE alone, of a word of
each sentence, drawn at random, its code and those of the other words; the end of the sentence is
left out. With TARGET, of each target word and the end </s>, its code, those before it and those of
the source.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from scipy.stats import entropy

Codes = tuple[int, ...]


def coded(file: Path, classes: str, end: bool) -> list[Codes]:
    """The codes of each line."""
    groups = [group.split() for group in classes.split("|")]
    code = {word: number for number, group in enumerate(groups) for word in group}
    ends = ["</s>"] * end
    lines = file.read_text(encoding="utf-8").splitlines()
    return [tuple(code[re.sub(r"\d+$", "", w)] for w in [*line.split(), *ends]) for line in lines]


def occurrences(data: Path, source: str, target: str | None) -> Iterator[tuple[int, object, float]]:
    """Code, context and weight of each word that counts."""
    sources = coded(data / "raw" / "train.src", source, end=False)
    if target is None:
        for z in (z for z in sources if len(z) > 1):
            yield from ((z[i], (z[:i], z[i + 1 :]), 1 / len(z)) for i in range(len(z)))
        return
    for read, z in zip(sources, coded(data / "raw" / "train.tgt", target, end=True), strict=True):
        yield from ((z[i], (read, z[:i]), 1.0) for i in range(len(z)))


def information(data: Path, source: str, target: str | None = None) -> tuple[float, float]:
    """H(Z) and H(Z|context)."""
    codes: dict[int, float] = defaultdict(float)
    contexts: dict[object, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for code, context, weight in occurrences(data, source, target):
        codes[code] += weight
        contexts[context][code] += weight
    found = [list(weights.values()) for weights in contexts.values()]
    mean = sum(sum(weights) * entropy(weights) for weights in found) / sum(codes.values())
    return float(entropy(list(codes.values()))), float(mean)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        of_code, given_context = information(Path(sys.argv[1]), *sys.argv[2:])
    except KeyError as error:
        sys.exit(f"information.py: no class has the word {error}")
    except OSError as error:
        sys.exit(f"information.py: {error.filename}: {error.strerror}")
    print(f"H(Z) {of_code:.4f}  H(Z|context) {given_context:.4f}  I {of_code - given_context:.4f}")
