"""The scorers that fairseq-generate builds by their names."""

from fairseq import scoring
from fairseq.data import Dictionary

import compgen_fairseq  # noqa: F401


def test_fairseq_builds_the_scorer():
    scorer = scoring.build_scorer("exact_match", Dictionary())
    scorer.add_string("run <<unk>>", "run <unk>")  # as fairseq-generate spells unknown words
    scorer.add_string("run", "run")
    assert scorer.score() == 50
    assert scorer.result_string() == "ExactMatch = 50.00 (1 / 2)"
