"""compgen-prepare is the prepare scripts, for an installation without them."""

import pytest
from prepare_scripts import SCRIPTS

from compgen_cli import prepare

NAMES = sorted(path.stem for path in SCRIPTS.glob("*.sh") if path.is_symlink())


def test_every_script_has_its_data_set():
    assert sorted(prepare.MODULES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        prepare.main([name, "--help"])
    assert end.value.code == 0
    assert f"usage: prepare/{name}.sh " in capsys.readouterr().out
