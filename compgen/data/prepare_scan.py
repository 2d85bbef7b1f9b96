"""``prepare/scan.sh``: a SCAN split, generated or read by ``scan``, as a prepared folder."""

from collections.abc import Sequence

from compgen.data import scan
from compgen.data.preparation import Parser, Preparation, hold_out
from compgen.ranges import AT_LEAST_0, AT_LEAST_1, SEED
from compgen.text import write_lines

DESCRIPTION = """\
Write a SCAN split as a fairseq data folder DEST, languages src (commands) and tgt (actions).

The default validation set, test20, is a part of the test set: say so wherever a number is reported.
simple and jump_numN are read from the official files, with --valid last20 all are; else the other
splits are generated."""


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/scan.sh``."""
    parser = Parser(
        "prepare/scan.sh",
        DESCRIPTION,
        folder="the official SCAN files, a clone of github.com/brendenlake/SCAN"
        " (default: $COMPGEN_DATA/scan)",
        positional={"split": scan.SPLITS},
    )
    text = "addjump only: N mutated copies of each primitive (Nx primitive augmentation)"
    parser.add_whole("--augment", AT_LEAST_1, text)
    text = "with --augment: extra copies of each bare primitive (default: 1000)"
    parser.add_whole("--atomic-copies", AT_LEAST_0, text)
    parser.add_argument(
        "--valid",
        choices=("test20", "train20", "last20"),
        default="test20",
        help="validation set: a random 20%% of the test set, which keeps it (test20, the default), "
        "or of the training set, which loses it (train20), or the last 20%% of the lines of the "
        "official training file (last20)",
    )
    parser.add_whole("--valid-size", AT_LEAST_1, "this many validation pairs, not 20%%")
    parser.add_whole("--seed", SEED, "chooses the validation set (default: 1)", 1, metavar="S")
    args = parser.parse_args(argv)
    if args.valid == "last20" and args.seed != 1:
        parser.error("--seed chooses random pairs: leave it out with --valid last20")
    if args.folder and args.split in scan.RULES and args.valid != "last20":
        parser.error(f"{args.split} is generated: leave out --from, or say --valid last20")
    if args.augment is None and args.atomic_copies is not None:
        parser.error("--atomic-copies goes with --augment")
    if args.augment is not None:
        if args.split != "addjump":
            parser.error(f"--augment is for the split addjump only, not for {args.split}")
        if args.valid == "last20":
            parser.error("--valid last20 is for the official training files: leave out --augment")
        args.atomic_copies = 1000 if args.atomic_copies is None else args.atomic_copies

    names = ("split", "augment", "atomic_copies", "valid", "valid_size", "seed")
    settings = {name: getattr(args, name) for name in names}
    work = Preparation("prepare/scan.sh", args.dest, settings, positional=["split"])
    if work.done():
        return
    last = args.valid == "last20"
    train, test = scan.split(args.split, args.folder, published=last)
    if args.augment is not None:
        train = scan.augment(args.augment, args.atomic_copies)
    if args.valid == "test20":
        valid, _ = hold_out(test, args.valid_size, args.seed)
    else:
        valid, train = hold_out(train, args.valid_size, None if last else args.seed)
    with work:
        for part, pairs in {"train": train, "valid": valid, "test": test}.items():
            write_lines(work.raw / f"{part}.src", (pair.command for pair in pairs))
            write_lines(work.raw / f"{part}.tgt", (pair.actions for pair in pairs))
        work.finish("src", "tgt")
