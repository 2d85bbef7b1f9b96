"""The small English-French "daxy" set: one new word, known from a single short sentence.

Lake & Baroni (2018), "Generalization without Systematicity": 9,999 simple pairs, 1,000 copies of
"i am daxy ." -> "je suis daxiste .", and 8 test sentences with other uses of "daxy". Their larger
test file holds 1,191 pairs, those 8 among them; none of its sources is in the training set.
There is no validation set, so one is held out here, of sources of their own too.
"""

import random
from collections.abc import Sequence

from compgen.data.preparation import Parser, Preparation
from compgen.data.publisher import collect, expected
from compgen.data.scan import Pair, read_official
from compgen.ranges import AT_LEAST_1, SEED
from compgen.text import write_lines

# SHA-256 of the publisher's files.
OFFICIAL = {
    "train.daxy": "68d0f206cf80f262c8454d851902dc9c4c55bc2ed1891a3c58dd2c03d217f5dd",
    "test.daxy": "a37633e0aff91aa9efe13cd10f37f5bdaac8404b7cb4f3781217e7a7672bb5b3",
    "test": "20206bd2b8d38d4b3715c39a2b4a470cec5ddfb30426462dc7231c606ff32e8c",
}
NEW_WORD = "daxy"

DESCRIPTION = """\
Write the English-French "daxy" set as a fairseq data folder DEST, languages en and fr:

  train  10,499   9,499 pairs and 1,000 copies of "i am daxy ."
  valid     500   of the publisher's training pairs; no source is also in train
  test        8   other sentences with "daxy"
  test1   1,191   the publisher's larger test file; the 8 are among them

The words are the publisher's.
"""


def hold_out_sources(
    pairs: Sequence[Pair], size: int, seed: int = 1
) -> tuple[list[Pair], list[Pair]]:
    """Divide pairs into a validation set of ``size`` and the others, both in their order.

    All pairs of a source stay on one side, and those with the new word in training. Sources are
    drawn at random; one with more pairs than are still wanted is passed over.

    Raises:
        ValueError: the pairs are too few.
    """
    by_source: dict[str, list[int]] = {}
    for index, pair in enumerate(pairs):
        if NEW_WORD not in pair.command.split():
            by_source.setdefault(pair.command, []).append(index)
    sources = list(by_source.values())
    random.Random(seed).shuffle(sources)
    held: set[int] = set()
    for indices in sources:
        if len(held) + len(indices) <= size:
            held.update(indices)
    if not 0 < len(held) == size < sum(map(len, sources)):
        raise ValueError(f"{size} of the training pairs can't be held out for validation.")
    return (
        [pair for index, pair in enumerate(pairs) if index in held],
        [pair for index, pair in enumerate(pairs) if index not in held],
    )


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/daxy.sh``."""
    parser = Parser(
        "prepare/daxy.sh",
        DESCRIPTION,
        folder="the folder of train.daxy, test.daxy and test, in a clone of"
        " github.com/jlrussin/syntactic_attention (default: $COMPGEN_DATA/daxy)",
        checksums="a list, as sha256sum writes it, of the checksums that the files have when they "
        "are not the publisher's",
    )
    parser.add_whole("--valid-size", AT_LEAST_1, "validation pairs (default: 500)", 500)
    parser.add_whole("--seed", SEED, "chooses them (default: 1)", 1, metavar="S")
    args = parser.parse_args(argv)

    settings = {"valid_size": args.valid_size, "seed": args.seed}
    official = expected(OFFICIAL, args.checksums, settings)
    work = Preparation("prepare/daxy.sh", args.dest, settings)
    if work.done():
        return
    with work:
        files = collect("daxy", official, None, work.folder, args.folder)
        parts = {name: read_official(path) for name, path in files.items()}
        valid, train = hold_out_sources(parts["train.daxy"], args.valid_size, args.seed)
        subsets = {"train": train, "valid": valid, "test": parts["test.daxy"]}
        for subset, pairs in {**subsets, "test1": parts["test"]}.items():
            write_lines(work.raw / f"{subset}.en", (pair.command for pair in pairs))
            write_lines(work.raw / f"{subset}.fr", (pair.actions for pair in pairs))
        work.finish("en", "fr", tests=("test", "test1"), inputs=files)
