"""What ends a command ends it in one sentence."""

from compgen.errors import command


def test_ctrl_c(capsys):
    @command("compgen-score")
    def main(argv=None):
        raise KeyboardInterrupt

    assert (main(), capsys.readouterr().err) == (130, "\ncompgen-score: interrupted\n")
