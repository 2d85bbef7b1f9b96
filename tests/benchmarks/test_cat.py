"""The comparison of the encoders runs from its command line."""

import re

import cat
import pytest

TINY = "--layers 2 --dim 16 --heads 2 --codes 9 --sememes 7 --length 6 --pairs 3 --rounds 3".split()


def test_reports_both_encoders_and_their_ratio(capsys):
    cat.main(TINY)
    line = capsys.readouterr().out
    assert len(re.findall(r"\d+\.\d+(?= s|$)", line, re.MULTILINE)) == 3


def test_bad_arguments_end_in_one_sentence(capsys):
    with pytest.raises(SystemExit):
        cat.main([*TINY, "--rounds", "0"])
    assert "--rounds: must be a whole number, at least 1, not '0'" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"^cat: .*3"):
        cat.main([*TINY, "--heads", "3"])
