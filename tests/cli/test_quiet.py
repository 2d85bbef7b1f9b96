"""What stands before a training is fairseq's own log, without warnings that nobody can act on."""

import sys

from small_models import TRANSFORMER


def test_no_warning_precedes_a_training(tiny_data, plugin, tiny_training, run):
    flags = "--task compgen_translation --max-update 1 --disable-validation --no-save".split()
    training = (tiny_data, *plugin, *TRANSFORMER, *tiny_training, *flags)
    log = run("fairseq_cli.train", *training, python=sys.executable)
    assert "num_updates 1" in log
    assert "Warning" not in log.partition("done training")[0] and "DEBUG" not in log
