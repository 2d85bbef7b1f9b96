"""``compgen-results``: keeps what a run ended with as a small file, and makes tables of them."""

import argparse
import re
import sys
from pathlib import Path

from compgen.errors import command
from compgen.output import write_files, write_json
from compgen.reporting.results import result
from compgen.reporting.results_tables import headlines, tables
from compgen.text import read_text
from compgen_cli.parser import Parser


@command("compgen-results")
def main(argv: list[str] | None = None) -> int:
    """Write a result or the tables; return 1 if something cannot be read or written."""
    parser = Parser(prog="compgen-results", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "the result of one finished and evaluated run"
    one = commands.add_parser("write", help=text, description=f"Write {text}.")
    one.add_argument("run", metavar="RUN", help="the folder of train.sh and evaluate.sh")
    one.add_argument("file", metavar="FILE", help="results/DATA/SETTING/METHOD.SEED.json")
    text = "settings that may have changed when the run was resumed, such as max_update"
    one.add_argument("--allow-differences", metavar="NAME,...", default="", help=text)
    one.set_defaults(do=_write)
    text = "RESULTS.md, of a folder of results"
    all_of_them = commands.add_parser("tables", help=text, description=f"Make {text}.")
    all_of_them.add_argument("folder", metavar="FOLDER", help="holds DATA/SETTING/METHOD.SEED.json")
    all_of_them.add_argument("--out", metavar="FILE", help="write there instead of printing")
    text = "also put the headlines between this file's lines <!-- results --> and <!-- end -->"
    all_of_them.add_argument("--readme", metavar="FILE", help=text)
    all_of_them.set_defaults(do=_tables)
    args = parser.parse_args(argv)
    args.do(args)
    return 0


def _write(args: argparse.Namespace) -> None:
    try:
        found = result(args.run, frozenset(filter(None, args.allow_differences.split(","))))
    except LookupError as error:
        raise ValueError(f"{args.run}: its RUN.json or a file of scores has no {error}") from None
    write_json(Path(args.file), found)


def _tables(args: argparse.Namespace) -> None:
    if not Path(args.folder).is_dir():
        raise ValueError(f"{args.folder} is not a folder of results")
    files = [(args.out, tables(args.folder))]
    if args.readme:
        readme = read_text(args.readme)
        parts = re.split(r"(<!-- results -->\n).*?(<!-- end -->\n)", readme, flags=re.DOTALL)
        if len(parts) != 4:
            raise ValueError(f"{args.readme} has no lines <!-- results --> and <!-- end -->")
        before, begin, end, after = parts
        files.append((args.readme, before + begin + headlines(args.folder) + end + after))
    write_files(*files)
    if not args.out:
        print(files[0][1], end="")


if __name__ == "__main__":
    sys.exit(main())
