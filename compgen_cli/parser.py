"""The parser of every command: argparse's, with ``--version``."""

import argparse
from typing import Any

from compgen.scoring.signature import version


class Parser(argparse.ArgumentParser):
    """A command's options. ``--version`` prints the package's version."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        text = f"%(prog)s {version()}"
        help = "print the version and leave"
        self.add_argument("--version", action="version", version=text, help=help)
