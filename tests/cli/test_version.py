"""Every command says its version."""

import importlib
from importlib.metadata import PackageNotFoundError, entry_points, version

import pytest

from compgen_cli import score

SCRIPTS = entry_points(group="console_scripts")
COMMANDS = [(one.name, one.module) for one in SCRIPTS if one.name.startswith("compgen-")]


@pytest.mark.parametrize(("name", "module"), COMMANDS)
def test_the_version(name, module, capsys):
    with pytest.raises(SystemExit) as end:
        importlib.import_module(module).main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"{name} {version('compgen-fairseq')}\n"


def test_of_a_clone_that_is_not_installed(monkeypatch, capsys):
    def version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", version)
    with pytest.raises(SystemExit):
        score.main(["--version"])
    assert capsys.readouterr().out == "compgen-score uninstalled\n"
