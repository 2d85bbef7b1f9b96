"""Paired tests: exact p-values, intervals that mean what they say, and sacreBLEU's own numbers."""

import itertools
import json
import os
import random
import subprocess
import sys
from math import comb

import numpy as np
import pytest

from compgen.scoring.bleu import BleuOptions
from compgen.scoring.significance import compare_bleu, compare_paired, relative_change


def test_the_p_value_is_mcnemars():
    a = [True] * 1 + [False] * 6 + [True] * 13
    b = [False] * 1 + [True] * 6 + [True] * 13
    found = compare_paired(a, b, resamples=50)
    assert (found.a_higher, found.b_higher, found.n) == (1, 6, 20)
    assert (found.a, found.b) == (pytest.approx(70), pytest.approx(95))
    assert found.b - found.a == pytest.approx(25)
    assert found.p_value == pytest.approx(2 * (1 + 7) / 2**7)  # of 7 tosses at most 1 head, twice


def test_the_p_value_is_that_of_the_mean():
    """Not of the signs: b is higher on more units, a by more."""
    a, b = [0.8] * 4 + [0.0] * 6, [0.0] * 4 + [0.2] * 6
    found = compare_paired(a, b)
    assert (found.a_higher, found.b_higher) == (4, 6) and found.b < found.a
    # at least 2 in ten units: of 4 signs of 0.8 and 6 of 0.2
    as_far = sum(
        comb(4, big) * comb(6, small)
        for big in range(5)
        for small in range(7)
        if abs(0.8 * (4 - 2 * big) + 0.2 * (6 - 2 * small)) > 2 - 1e-9
    )
    assert found.p_value == pytest.approx(as_far / 2**10)
    many = compare_paired(a * 300, b * 300)
    assert many.p_value < 0.001 and many.interval[1] < 0


def test_the_interval_is_that_of_the_difference():
    draw = np.random.default_rng(1)
    a = draw.random(4000) < 0.5
    b = np.where(draw.random(4000) < 0.2, draw.random(4000) < 0.8, a)
    found = compare_paired(a, b, resamples=2000)
    difference = b.astype(float) - a
    half = 100 * 1.96 * difference.std() / 4000**0.5
    assert found.interval == pytest.approx(
        (found.b - found.a - half, found.b - found.a + half), abs=0.15
    )
    assert half < 1  # far narrower than for unpaired systems, 2.2
    low, high = compare_paired([0] * 20, [1] + [0] * 19).interval
    assert low == 0 < high  # of the resampled means, none of which is below 0
    assert compare_paired([0, 0], [1, 0]).interval == (0, 100)  # a quarter of the resamples each


def test_swapped_systems_mirror_the_result():
    a, b = [0.2, 0.4, 0, 1, 1, 0.6, 0.2], [0.4, 0.4, 0.2, 0.8, 1, 1, 0.6]
    one, other = compare_paired(a, b), compare_paired(b, a)
    assert one.p_value == other.p_value and one.b - one.a == other.a - other.b
    assert (one.a_higher, one.b_higher) == (1, 4)
    assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]), abs=3)


def test_equal_systems_do_not_differ():
    found = compare_paired([True, False, True], [True, False, True])
    assert (found.p_value, found.interval, found.b - found.a) == (1, (0, 0), 0)
    rates = (0.2, 0.4, 0.6)  # whose sum, forwards and backwards, is not the same
    means = sum(rates) / 3, sum(reversed(rates)) / 3
    found = compare_paired([means[0]] * 9, [means[1]] * 9)
    assert (found.a_higher, found.b_higher, found.p_value, found.interval) == (0, 0, 1, (0, 0))


def test_a_relative_change_from_little():
    assert relative_change([0.2] + 9 * [0.0], [0.1] + 9 * [0.0]) == (-50, (-50, -50))


def test_a_relative_change_is_of_the_mean():
    assert relative_change([0.2, 1.0], [0.2, 0.0])[0] == pytest.approx(100 * (0.2 / 1.2 - 1))
    b = (np.random.default_rng(1).random(2000) < 0.5).astype(float)
    change, interval = relative_change(np.ones(2000), b)
    half = 100 * 1.96 * b.std() / 2000**0.5
    assert interval == pytest.approx((change - half, change + half), abs=0.2)
    # 1.8% of the resamples have five or six of the units that changed, 8.8% have none
    change, interval = relative_change([1] * 6, [2, 2, 1, 1, 1, 1])
    assert (change, *interval) == pytest.approx((100 / 3, 0, 200 / 3))


def test_a_seed_gives_the_same_interval_again():
    a, b = [True, False, False, True, False] * 9, [True, True, False, True, True] * 9
    assert compare_paired(a, b, 100, seed=3) == compare_paired(a, b, 100, seed=3)
    intervals = {compare_paired(a, b, 100, seed=s).interval for s in range(5)}
    assert len(intervals) > 1 and compare_paired(a, b, 1000, seed=3).interval not in intervals


def test_what_is_not_paired_is_refused():
    with pytest.raises(ValueError, match="3 and 2 values are not pairs"):
        compare_paired([1, 0, 1], [1, 0])
    with pytest.raises(ValueError, match="fewer than two units"):
        compare_paired([1], [0])
    with pytest.raises(ValueError, match="fewer than two units"):
        compare_bleu(["a"], ["b"], ["a"], BleuOptions())
    with pytest.raises(ValueError, match="2, 1 and 2 sentences are not pairs"):
        compare_bleu(["a", "b"], ["a"], ["a", "b"], BleuOptions())
    with pytest.raises(ValueError, match="seed must be at least 1, not 0"):
        compare_bleu(["a", "b"], ["a", "b"], ["a", "b"], BleuOptions(), seed=0)
    with pytest.raises(ValueError, match="the test is one of bs, ar, not 'xx'"):
        compare_bleu(["a", "b"], ["a", "b"], ["a", "b"], BleuOptions(), test="xx")
    with pytest.raises(ValueError, match="2 and 3 values are not pairs"):
        relative_change([1, 0], [1, 1, 1])


@pytest.mark.parametrize("value", [-1, 2, float("nan")])
def test_only_shares_are_compared(value):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        compare_paired([1, 0], [1, value])


def test_there_is_no_relative_change_from_nothing():
    with pytest.raises(ValueError, match="no relative change from 0"):
        relative_change([0, 0], [1, 1])


@pytest.fixture
def systems() -> dict[str, list[str]]:
    """References, and two systems that get every tenth and every fourth word wrong."""
    draw = random.Random(1)
    words = "the dog he liked slept on a red chair before every farmer left".split()
    references = [draw.choices(words, k=draw.randint(4, 12)) for _ in range(80)]

    def system(errors):
        return [
            " ".join("bee" if draw.random() < errors else word for word in sentence)
            for sentence in references
        ]

    return {"a": system(0.1), "b": system(0.25), "ref": [" ".join(r) for r in references]}


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_bleu_is_compared_as_sacrebleu_does(systems, test, tmp_path):
    for name, sentences in systems.items():
        (tmp_path / name).write_text("".join(f"{sentence}\n" for sentence in sentences))
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "a", "b", "-f", "json", "-w", "10"]
    printed = subprocess.run(
        [*command, f"--paired-{test}", f"--paired-{test}-n", "60"],
        cwd=tmp_path,
        env={**os.environ, "SACREBLEU_SEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    first, second = (system["BLEU"] for system in json.loads(printed))
    found = compare_bleu(
        systems["a"], systems["b"], systems["ref"], BleuOptions(), test, resamples=60, seed=7
    )
    assert found.a == pytest.approx(first["score"]) and found.b == pytest.approx(second["score"])
    assert found.a > found.b + 10
    assert found.p_value == pytest.approx(second["p_value"])
    if test == "bs":
        intervals = found.a_interval, found.b_interval
        assert intervals == (pytest.approx(first["ci"]), pytest.approx(second["ci"]))
    else:
        assert found.a_interval is None
    assert f"|{test}:60|seed:7|" in found.signature
    assert found.signature.startswith("detok:none|n:80|nrefs:1|")


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_equal_outputs_are_not_told_apart(test, systems):
    same, references = systems["a"], systems["ref"]
    assert compare_bleu(same, same, references, BleuOptions(), test, resamples=20).p_value == 1
    upper = [sentence.upper() for sentence in same]
    lower = BleuOptions(lowercase=True)
    assert compare_bleu(same, upper, references, lower, test, resamples=20).p_value == 1


def test_one_unlike_sentence_tells_nothing(systems):
    one, references = systems["a"], systems["ref"]
    other = [*one[:-1], f"{one[-1]} bee"]
    assert compare_bleu(one, other, references, BleuOptions(), "ar", resamples=99).p_value == 1


def test_means_over_seeds_are_permuted_as_whole_numbers_would_be():
    a = [0, 1, 0, 2, 1, 0, 0, 1]
    b = [2, 1, 1, 1, 3, 2, 1, 0]
    thirds = compare_paired([x / 3 for x in a], [x / 3 for x in b]).p_value
    # of the 2^7 signs of the differences 2, 1, -1, 2, 2, 1, -1 those with a sum of 6 or more
    signs = itertools.product((1, -1), repeat=7)
    sums = [abs(np.dot(some, (2, 1, 1, 2, 2, 1, 1))) for some in signs]
    assert thirds == pytest.approx(sum(one >= 6 for one in sums) / 2**7)
    a, b = (2, 0, 2, 1, 3, 1), (2, 1, 2, 3, 1, 0)
    assert compare_paired([x / 3 for x in a], [x / 3 for x in b]).p_value == 1


def test_the_seed_of_the_environment_stays(systems, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "99")
    args = (systems["a"], systems["b"], systems["ref"], BleuOptions())
    assert "|seed:3|" in compare_bleu(*args, resamples=20, seed=3).signature
    assert os.environ["SACREBLEU_SEED"] == "99"
    monkeypatch.delenv("SACREBLEU_SEED")
    compare_bleu(*args, resamples=20, seed=3)
    assert "SACREBLEU_SEED" not in os.environ
