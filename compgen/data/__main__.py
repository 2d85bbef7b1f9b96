"""Prepares a data set: ``python -m compgen.data cogs DEST`` runs the module ``cogs`` in here."""

import importlib
import sys

importlib.import_module(f"compgen.data.{sys.argv[1]}").main(sys.argv[2:])
