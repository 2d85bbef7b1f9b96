"""Prepares a data set: ``python -m compgen.data cogs DEST`` is ``prepare/cogs.sh DEST``."""

import importlib
import sys

from compgen.data.corpora import CORPORA

MODULES = {"scan": "prepare_scan", "bitext": "own_text"}  # the others have the data set's name
NAMES = (*MODULES, "bird", "cognition", "cogs", "daxy", "paws", "pretraining", "sst2", "sts_b")

name, *words = sys.argv[1:] or [""]
if name in CORPORA:
    importlib.import_module("compgen.data.translation").main([name, *words])
elif name in NAMES:
    importlib.import_module(f"compgen.data.{MODULES.get(name, name)}").main(words)
else:
    sys.exit(f"compgen.data: {name!r} is none of {', '.join(sorted((*NAMES, *CORPORA)))}.")
