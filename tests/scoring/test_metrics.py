"""Metrics of a log of fairseq-generate."""

import pytest

from compgen.scoring.generate_log import Generation
from compgen.scoring.metrics import BleuMetric, BleuOptions, CogsMetric, ExactMatchMetric


def test_words_never_equal_subwords(tmp_path):
    for name, line in (("references", "run"), ("cases", "pp_recursion")):
        (tmp_path / name).write_text(f"{line}\n")
    file, system = tmp_path / "references", Generation(["s"], ["ru@@ n"], ["ru@@ n"])
    for metric in (ExactMatchMetric(file), CogsMetric(tmp_path / "cases", file)):
        for count in (metric.score, metric.values):
            with pytest.raises(ValueError, match="is in subwords, the other is not"):
                count(system)


def test_bleu_of_an_unknown_word():
    system = Generation(["s"], ["a b c <<unk>>"], ["a b c <unk>"])
    precisions = BleuMetric(BleuOptions("none")).score(system).numbers["precisions"]
    assert precisions[0] == 75
