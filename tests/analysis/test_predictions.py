"""The scores of compgen-predict; the command is in tests/cli/test_finetuning.py."""

import pytest

from compgen_fairseq.analysis.predictions import Predictions, score


def test_classes_and_numbers():
    found = score(Predictions(["0", "1", "1", "1"], ["1", "1", "0", "1"]), "test", None)
    assert (found["score"], found["correct"], found["total"]) == (50, 2, 4)
    assert found["classes"]["1"]["score"] == pytest.approx(200 / 3)
    found = score(Predictions(["0", "1", "1", "1"], ["1", "1", "0", "1"]), "test", "0")
    assert (found["score"], found["total"]) == (0, 1) and "label:0" in found["signature"]
    found = score(Predictions([0.0, 1.0, 2.0], [1.0, 2.0, 4.0]), "test", None)
    assert found["spearman"] == pytest.approx(100)
    assert found["score"] == pytest.approx(300 / (2 * 14 / 3) ** 0.5)


@pytest.mark.parametrize(
    ("found", "label", "reason"),
    [
        (Predictions(["0", "1"], ["0", "0"]), "2", "no sentence of test has the label 2"),
        (Predictions([0.5, 1.0], [0.5, 1.0]), "1", "--label does not go with them"),
        (Predictions([0.5, 0.5], [0.5, 1.0]), None, "are the same"),
        (Predictions([0.5, 1.0], [1.0, 1.0]), None, "are the same"),
        (Predictions([0.5, 1.0], [1.0, float("nan")]), None, "some are not finite"),
    ],
)
def test_what_cannot_be_scored(found, label, reason):
    with pytest.raises(ValueError, match=reason):
        score(found, "test", label)
