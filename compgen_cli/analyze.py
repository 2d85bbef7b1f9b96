"""``compgen-analyze``: pictures and tables of what a model has learned."""

import argparse
import importlib
import logging
import sys
from pathlib import Path

from compgen.errors import command
from compgen_cli.parser import Parser

KINDS = {
    "embeddings": "t-SNE of word embeddings, by code or cluster, with the nearest neighbours",
    "codes": "words, use and entropy of the codes, their purity and a probe for parts of speech",
    "attention": "attention maps, and their agreement over structurally equivalent pairs",
    "prototypes": "t-SNE of a word's encoder states with its prototypes, its uses told apart",
    "consistency": "the number of distinct source words that each target word is aligned to",
    "errors": "CTER or exact match of systems by length, modifier or generalization case",
    "seeds": "a histogram of a score over seeds for each method, and its mean, median and spread",
}


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line; ``compgen_fairseq.analysis`` has a module for each kind."""
    top = Parser(prog="compgen-analyze", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="KIND")
    for kind, text in KINDS.items():
        one = commands.add_parser(kind, help=text, description=text)
        if kind in argv[:1]:
            module = importlib.import_module(f"compgen_fairseq.analysis.{kind}")
            module.add_arguments(one)
            printed = kind == "codes"
            text = "where to write" + (" (default: print the words of each code)" * printed)
            one.add_argument("--out", required=not printed, metavar="FOLDER", help=text)
            one.set_defaults(run=module.run)
            return one.parse_intermixed_args(argv[1:])  # WORDs may come behind a flag
    return top.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run one kind and print the files it wrote; errors end in one sentence."""
    given = sys.argv[1:] if argv is None else argv

    @command(" ".join(["compgen-analyze", *given[:1]]))
    def analyze(argv: list[str] | None = None) -> int:
        args = parse(given)
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
        logging.getLogger("fairseq").setLevel(logging.WARNING)
        if args.out and Path(args.out).exists() and not Path(args.out).is_dir():
            raise ValueError(f"{args.out} is not a folder: choose another --out")
        print(*args.run(args), sep="\n")
        return 0

    return analyze(argv)


if __name__ == "__main__":
    sys.exit(main())
