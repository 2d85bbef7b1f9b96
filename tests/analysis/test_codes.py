"""Use, purity and probe of codes, on cases computed by hand."""

import numpy as np
import pytest
import torch

from compgen_fairseq.analysis.codes import count, probe, purity, statistics

TAGS = np.array(["N", "N", "V", "V", "A"])
CODES = np.array([0, 0, 0, 1, 1])


def test_four_codes_of_which_three_are_used():
    found = statistics(np.array([4, 0, 2, 2]))
    # 1/2 * 1 + 2 * 1/4 * 2 bits
    assert found["entropy_bits"] == 1.5 and found["effective_codes"] == 2.83
    assert (found["codes"], found["used_codes"], found["tokens"]) == (4, 3, 8)
    assert statistics(np.array([0, 7]))["entropy_bits"] == 0


def test_purity():
    assert purity(CODES, TAGS, np.ones(5)) == 3 / 5  # two N of code 0, V or A of code 1
    assert purity(CODES, TAGS, np.array([1, 1, 3, 1, 4])) == 7 / 10  # V of code 0, A of code 1
    assert purity(np.zeros(5), TAGS, np.ones(5)) == 2 / 5  # the most frequent tag
    assert purity(CODES, TAGS, np.zeros(5)) is None


def test_a_probe_of_codes_that_tell_the_tags_is_always_right():
    codebook = np.random.default_rng(1).normal(scale=1e-3, size=(3, 8))  # of any scale
    codes = np.arange(30) % 3
    tags = np.array(["N", "V", "A"])[codes]
    counts = np.ones(30)
    found = probe(codebook[codes], tags, counts, seed=1)
    assert found["accuracy"] == found["accuracy_by_tokens"] == 1 and found["folds"] == 10
    assert found["majority_accuracy"] < 0.4


def test_a_probe_of_codes_that_tell_nothing_is_the_majority():
    tags = np.array(["N"] * 14 + ["V"] * 6)
    counts = np.array([1] * 14 + [7] * 6)
    found = probe(np.zeros((20, 4)), tags, counts, seed=1)
    assert found["accuracy"] == found["majority_accuracy"] == 14 / 20
    assert found["accuracy_by_tokens"] == found["majority_accuracy_by_tokens"] == 14 / 56


def test_the_seed_draws_the_folds_of_the_probe():
    draw = np.random.default_rng(1)
    vectors, tags = draw.normal(size=(30, 4)), draw.choice(["N", "V"], 30)
    found = [probe(vectors, tags, np.ones(30), seed)["accuracy"] for seed in 2 * (1, 2, 3)]
    assert found[:3] == found[3:] and len(set(found)) > 1


@pytest.mark.parametrize("tags", [["N"], ["N", "N", "N"], ["N", "V"]])
def test_too_little_for_a_probe(tags):
    with pytest.raises(ValueError, match="too few tagged words"):
        probe(np.eye(len(tags)), np.array(tags), np.ones(len(tags)), seed=1)


def test_counting():
    dataset = [{"target": torch.tensor(line)} for line in ([4, 4, 2], [5, 2], [4, 2])]
    assert count(dataset, "target", 7).tolist() == [0, 0, 3, 0, 3, 1, 0]
