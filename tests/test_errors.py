"""What ends a command ends it in one sentence."""

import pytest

from compgen.errors import command


def test_ctrl_c(capsys):
    @command("compgen-score")
    def main(argv=None):
        raise KeyboardInterrupt

    assert (main(), capsys.readouterr().err) == (130, "\ncompgen-score: interrupted\n")


def test_where_it_failed_is_told_if_asked_for(monkeypatch):
    @command("compgen-score")
    def main(argv=None):
        raise ValueError("no such thing")

    monkeypatch.setenv("COMPGEN_TRACEBACK", "1")
    with pytest.raises(ValueError, match="no such thing"):
        main()
