"""``compgen-compare`` on logs of fairseq-generate."""

import functools
import json
from pathlib import Path

import pytest
from in_process import output, refusal
from logs import write_log
from sacrebleu import corpus_bleu

from compgen.scoring import generate_log
from compgen.scoring.cter_rates import rates


@pytest.fixture
def better(tiny_log, tmp_path) -> Path:
    """A system that is right where the tiny model is, and in the first five other sentences."""
    found = generate_log.read(tiny_log)
    wrong = [i for i, h in enumerate(found.hypotheses) if h != found.targets[i]][:5]
    hypotheses = [found.targets[i] if i in wrong else h for i, h in enumerate(found.hypotheses)]
    return write_log(tmp_path / "better.log", found.sources, found.targets, hypotheses)


def test_exact_match(tiny_log, better):
    files = [str(tiny_log), str(better)]
    options = [*files, "--resamples", "200", "--seed", "4"]
    found = json.loads(output("compgen-compare", *options, "--json"))
    numbers = found["scores"]["exact_match"]
    assert (found["metric"], found["a"], found["b"]) == ("exact_match", *files)
    assert (numbers["a_higher"], numbers["b_higher"], numbers["n"]) == (0, 5, 37)
    assert numbers["p_value"] == pytest.approx(2 / 2**5)
    assert numbers["difference"] == pytest.approx(100 * 5 / 37)
    low, high = numbers["interval"]
    assert 0 <= low < numbers["difference"] < high < 40
    stamp = "metric:exact_match|case:mixed|test:permutation|bs:200|seed:4|n:37|version:"
    assert found["signature"].startswith(stamp)

    printed = output("compgen-compare", *options)
    assert f"B - A   +13.51  95% interval [{low:+.2f}, {high:+.2f}]\n" in printed
    assert (
        "p       0.0625  (paired permutation test: of 37, A is higher in 0 and B in 5)" in printed
    )
    assert printed.splitlines()[-1] == found["signature"]


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_bleu(test, tiny_log, better):
    options = [str(tiny_log), str(better), "--metric", "bleu", "--test", test, "--lowercase"]
    found = json.loads(output("compgen-compare", *options, "--resamples", "50", "--json"))
    a, b = (generate_log.read(log) for log in (tiny_log, better))
    numbers = found["scores"]["bleu"]
    targets = [target.replace("<<unk>>", "unknown") for target in a.targets]
    for name, system in (("a", a), ("b", b)):
        expected = corpus_bleu(system.hypotheses, [targets], lowercase=True, force=True)
        assert numbers[name] == pytest.approx(expected.score)
    assert 0 < numbers["p_value"] <= 1
    stamp = f"metric:bleu|ref:log|detok:none|n:37|nrefs:1|{test}:50|seed:12345|case:lc|"
    assert found["signature"].startswith(stamp)
    printed = output("compgen-compare", *options, "--resamples", "50")
    assert ("±" in printed) == (test == "bs")
    assert ("(paired bootstrap)" in printed) == (test == "bs")


def test_chrf_as_json(tiny_log, better):
    options = ["--metric", "chrf", "--resamples", "20", "--json"]
    numbers = json.loads(output("compgen-compare", tiny_log, better, *options))["scores"]["chrf"]
    assert 0 < numbers["a"] < numbers["b"] < 100


@pytest.fixture
def compounds(tmp_path) -> dict[str, Path]:
    """Three compounds in five sentences each, and the words that translate their atoms."""
    files = {"compound": tmp_path / "test.compound", "lexicon": tmp_path / "lexicon"}
    files["compound"].write_text("".join(5 * f"the {n}\n" for n in ("dog", "car", "bee")))
    files["lexicon"].write_text("the\t/\ndog\t狗\ncar\t车\nbee\t蜂\n", encoding="utf-8")
    return files


def test_cter_by_groups_of_five(compounds, tmp_path):
    sources = [f"{i} saw the {n} ." for n in ("dog", "car", "bee") for i in range(5)]
    right = [word for word in "狗车蜂" for _ in range(5)]
    wrong = {"a": {0, 1, 5, 6, 10}, "b": {0, 2, 11}}
    logs = [
        write_log(
            tmp_path / f"{name}.log",
            sources,
            None,
            ["马" if i in ids else f"看 见 {word}" for i, word in enumerate(right)],
        )
        for name, ids in wrong.items()
    ]
    flags = [f"--{name}={path}" for name, path in compounds.items()]
    options = [*map(str, logs), "--metric", "cter", *flags, "--json"]
    found = json.loads(output("compgen-compare", *options))
    instance, aggregate = found["scores"]["instance"], found["scores"]["aggregate"]
    for name, ids in wrong.items():
        expected = rates([i in ids for i in range(15)])
        assert instance[name] == pytest.approx(expected.instance)
        assert aggregate[name] == pytest.approx(expected.aggregate)
    # by group, A has 2, 2 and 1 wrong lines, B has 2, 0 and 1
    assert (instance["a_higher"], instance["b_higher"], instance["n"]) == (1, 0, 3)
    assert (aggregate["a_higher"], aggregate["b_higher"], aggregate["n"]) == (1, 0, 3)
    assert instance["p_value"] == 1  # one toss
    assert "|rules:published|lexicon:" in found["signature"] and "|n:15|" in found["signature"]
    assert "|rules:strict|" in output("compgen-compare", *options, "--strict")


def test_errors_are_one_sentence(tiny_log, better, compounds, tmp_path):
    message = functools.partial(refusal, "compgen-compare")
    assert f"{tmp_path} is a folder: " in message(tiny_log, tmp_path)
    found = generate_log.read(tiny_log)
    sources = ["kiki", *found.sources[1:]]
    other = write_log(tmp_path / "other.log", sources, found.targets, found.hypotheses)
    assert (
        f"{tiny_log} and {other} are not about the same sentences: the source of id 0 is "
        f"{found.sources[0]!r} in the one and 'kiki' in the other" in message(tiny_log, other)
    )
    targets = [*found.targets[:9], "KIKI", *found.targets[10:]]
    other = write_log(tmp_path / "other.log", found.sources, targets, found.hypotheses)
    assert "the reference of id 9 is " in message(tiny_log, other)
    texts = (found.sources[:30], found.targets[:30], found.hypotheses[:30])
    other = write_log(tmp_path / "other.log", *texts)
    assert f"has 37 sentences and {other} has 30" in message(tiny_log, other)
    assert "say --compound FILE and --lexicon FILE" in message(tiny_log, better, "--metric", "cter")
    flags = [f"--{name}={path}" for name, path in compounds.items()]
    files = f"{tiny_log} and {compounds['compound']}: "
    assert files in message(tiny_log, better, "--metric", "cter", *flags)
