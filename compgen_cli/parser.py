"""The parser of every command: argparse's, with ``--version``."""

import argparse
from typing import Any

from compgen.scoring.signature import version


def add_user_dir(parser: argparse.ArgumentParser) -> None:
    """Have a command that reads checkpoints import a plugin of somebody's own."""
    text = "a plugin of your own that has the checkpoint's architecture"
    parser.add_argument("--user-dir", type=_plugin, metavar="FOLDER", help=text)


def _plugin(folder: str) -> str:
    from compgen_fairseq.analysis.checkpoint import plugin

    return plugin(folder)


class Parser(argparse.ArgumentParser):
    """A command's options. ``--version`` prints the package's version."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        text = f"%(prog)s {version()}"
        help = "print the version and leave"
        self.add_argument("--version", action="version", version=text, help=help)
