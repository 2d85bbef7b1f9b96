"""What needs no PyTorch does not load it: all of ``compgen``, and every command before its work."""

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
import compgen, compgen_cli
for module in pkgutil.walk_packages(compgen.__path__, "compgen."):
    importlib.import_module(module.name)
for command in pkgutil.iter_modules(compgen_cli.__path__):
    importlib.import_module(f"compgen_cli.{command.name}")
loaded = {"torch", "fairseq", "compgen_fairseq"} & set(sys.modules)
assert not loaded, loaded
"""


def test_text_needs_neither_torch_nor_fairseq() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
