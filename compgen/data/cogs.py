"""COGS: sentences and their logical forms, the generalization cases, validation sets.

COGS (Kim & Linzen, 2020, "COGS: A Compositional Generalization Challenge Based on Semantic
Interpretation") has 24,155 training, 3,000 development and 3,000 test pairs of one distribution,
and 21,000 generalization pairs, 1,000 for each of 21 cases. A line of its files is a sentence, its
logical form and its case, with tabs between; words have one space between.

The subset ``test`` is the generalization set, ``test1`` the in-distribution test set. With
``--valid gen20`` the validation set is *a part of the test set* (an out-of-distribution
development set, as Jiang, Zhou & Bansal, 2024, appendix B.1, use it): say so wherever a number
that it helped to choose is reported.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compgen.data.preparation import Parser, Preparation, hold_out
from compgen.data.publisher import collect, expected
from compgen.ranges import SEED
from compgen.text import read_fields, write_lines

REPOSITORY = "https://raw.githubusercontent.com/najoungkim/COGS/HEAD"
# SHA-256 of the publisher's files since the correction of September 2022.
OFFICIAL = {
    "data/train.tsv": "220b3804b562c0156ee986eff1bdd15c27e52142549362a64f57baf86e304c78",
    "data/dev.tsv": "ab66388a309c7ac1ad210c781a6a0ce12281a9ef24619a12422a752cef61bc21",
    "data/test.tsv": "68f8e51e9f6d9cd22d64efe68dd21d7ea5ba327e9a2359481030161aea757035",
    "data/gen.tsv": "d013d9eee0bafc153f8decc85f42814ac97260f84964d980e1e2b84577b82361",
}

DESCRIPTION = """\
Write COGS as a fairseq data folder DEST, languages en (sentence) and lf (logical form):

  train  24,155   valid  3,000, or 4,200 with --valid gen20
  test   21,000   the generalization set; its case names, line by line, are in cases/test.case
  test1   3,000   the in-distribution test set
"""


class Example(NamedTuple):
    """A sentence, its logical form and the name of its generalization case."""

    sentence: str
    logical_form: str
    case: str


def read(path: Path) -> list[Example]:
    """The examples of one of the publisher's files.

    Raises:
        ValueError: the file is missing or a line has not three fields.
    """
    return [Example(*map(str.strip, fields)) for fields in read_fields(path, 3)]


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/cogs.sh``."""
    parser = Parser(
        "prepare/cogs.sh",
        DESCRIPTION,
        folder="the publisher's files, a clone of github.com/najoungkim/COGS (default:"
        " $COMPGEN_DATA/cogs if it is there; otherwise they are downloaded)",
        checksums="a list, as sha256sum writes it, of the checksums that the files have when they "
        "are not the publisher's of September 2022",
    )
    text = (
        "validation set: the publisher's development set (dev, the default), or a random 20%% of "
        "the generalization set, which keeps it (gen20), as in the SQ-Transformer paper"
    )
    parser.add_argument("--valid", choices=("dev", "gen20"), default="dev", help=text)
    parser.add_whole("--seed", SEED, "chooses gen20 (default: 1)", metavar="S")
    args = parser.parse_args(argv)
    if args.seed is not None and args.valid != "gen20":
        parser.error("--seed goes with --valid gen20")
    seed = 1 if args.valid == "gen20" and args.seed is None else args.seed

    settings = {"valid": args.valid, "seed": seed}
    official = expected(OFFICIAL, args.checksums, settings)
    work = Preparation("prepare/cogs.sh", args.dest, settings)
    if work.done():
        return
    with work:
        files = collect("cogs", official, REPOSITORY, work.folder / "downloads", args.folder)
        parts = {Path(name).stem: read(path) for name, path in files.items()}
        generalization = parts["gen"]
        gen20 = args.valid == "gen20"
        valid = hold_out(generalization, seed=seed)[0] if gen20 else parts["dev"]
        subsets = {
            "train": parts["train"],
            "valid": valid,
            "test": generalization,
            "test1": parts["test"],
        }
        for subset, examples in subsets.items():
            write_lines(work.raw / f"{subset}.en", (e.sentence for e in examples))
            write_lines(work.raw / f"{subset}.lf", (e.logical_form for e in examples))
        for subset in ("test", "valid") if gen20 else ("test",):
            cases = (example.case for example in subsets[subset])
            write_lines(work.data / "cases" / f"{subset}.case", cases)
        work.finish("en", "lf", tests=("test", "test1"), inputs=files)
