"""``compgen-prepare``: make the fairseq data folder of a data set; each is prepare/NAME.sh."""

import importlib
import sys

from compgen.data.corpora import CORPORA
from compgen.errors import command
from compgen_cli.parser import Parser

# each data set's module of compgen.data, and what comes before the user's words
MODULES = {
    **{
        name: [name]
        for name in ("bird", "cognition", "cogs", "daxy", "paws", "pretraining", "sst2", "sts_b")
    },
    **{name: ["translation", name] for name in CORPORA},
    "bitext": ["own_text"],
    "scan": ["prepare_scan"],
}


def main(argv: list[str] | None = None) -> int:
    """Prepare one data set; its own ``--help`` says how."""
    parser = Parser(prog="compgen-prepare", description=__doc__, allow_abbrev=False)
    names = ", ".join(sorted(MODULES))
    parser.add_argument("name", metavar="NAME", choices=MODULES, help=names)
    parser.add_argument("words", metavar="...", nargs="...", help="see compgen-prepare NAME --help")
    args = parser.parse_args(argv)
    module, *first = MODULES[args.name]

    @command(f"prepare/{args.name}.sh", "interrupted; the same command again goes on.")
    def prepare(argv: list[str] | None = None) -> int:
        importlib.import_module(f"compgen.data.{module}").main([*first, *args.words])
        return 0

    return prepare()


if __name__ == "__main__":
    sys.exit(main())
