"""``compgen-analyze``: pictures and tables of what a model has learned."""

import argparse
import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from compgen_fairseq.analysis import AnalysisError

KINDS = ("embeddings", "codes", "attention", "prototypes", "consistency", "errors", "seeds")


def parser(kinds: Sequence[str] = KINDS) -> argparse.ArgumentParser:
    """The command line with some kinds; each is a module of ``compgen_fairseq.analysis``."""
    top = argparse.ArgumentParser(prog="compgen-analyze", description=__doc__)
    commands = top.add_subparsers(dest="kind", required=True, metavar="KIND")
    for kind in kinds:
        module = importlib.import_module(f"compgen_fairseq.analysis.{kind}")
        one = commands.add_parser(kind, help=module.HELP, description=module.HELP)
        module.add_arguments(one)
        one.add_argument("--out", required=True, metavar="FOLDER", help="the folder to write to")
        one.set_defaults(run=module.run)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one kind and print the files it wrote; what can't be done ends in one sentence."""
    argv = sys.argv[1:] if argv is None else argv
    chosen = [kind for kind in KINDS if kind in argv[:1]]
    args = parser(chosen or KINDS).parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for chatty in ("fairseq", "compgen.scoring"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        if Path(args.out).exists() and not Path(args.out).is_dir():
            raise AnalysisError(f"{args.out} is no folder: choose another --out")
        files = args.run(args)
    except (ValueError, OSError) as error:
        print(f"compgen-analyze {args.kind}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(*files, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
