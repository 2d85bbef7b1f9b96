"""The parser of every command: argparse's, with ``--version``."""

import argparse
from typing import Any

from compgen.scoring.signature import version


class Parser(argparse.ArgumentParser):
    """A command's options. ``--version`` prints the package's version."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_argument("--version", action=_Version, help="print the version and leave")


class _Version(argparse.Action):
    def __init__(self, option_strings: Any, dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(parser.prog, version())
        parser.exit()
