"""Runs a module of this package as a command: ``python compgen_fairseq/data cogs DEST``.

The prepare scripts call it by this folder's path. Importing ``compgen_fairseq`` in the usual way
registers the plugin, which loads PyTorch and fairseq: seconds that ``--help`` or "already prepared"
should not cost. So the parent package is put in place here without running its ``__init__``.
"""

import importlib
import sys
import types
from pathlib import Path

if "compgen_fairseq" not in sys.modules:
    package = types.ModuleType("compgen_fairseq")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["compgen_fairseq"] = package
    del sys.path[0]  # this folder: its modules are imported by their full names only

if __name__ == "__main__":
    importlib.import_module(f"compgen_fairseq.data.{sys.argv[1]}").main(sys.argv[2:])
