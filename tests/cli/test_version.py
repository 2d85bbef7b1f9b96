"""Every command says its version."""

import importlib
import re
from importlib.metadata import version
from pathlib import Path

import pytest

SETUP = (Path(__file__).parents[2] / "setup.py").read_text(encoding="utf-8")
COMMANDS = re.findall(r'"(compgen-[a-z]+)=([a-z_.]+):main"', SETUP)


@pytest.mark.parametrize(("name", "module"), COMMANDS)
def test_the_version(name, module, capsys):
    with pytest.raises(SystemExit) as end:
        importlib.import_module(module).main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"{name} {version('compgen-fairseq')}\n"
