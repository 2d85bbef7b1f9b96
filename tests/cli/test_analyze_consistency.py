"""compgen-analyze consistency on a tiny trained model."""

import json
from collections import Counter, defaultdict

import pytest
import torch
from in_process import refusal
from written import analyzed, read_table

from compgen_fairseq.analysis import checkpoint


@pytest.fixture
def count(plain, tiny_data, tmp_path):
    """``count("--flag", ..., out="out")``: the JSON and the folder that it writes."""

    def count(*flags, out="out"):
        folder = tmp_path / out
        analyzed("consistency", plain, tiny_data, *flags, "--cpu", out=folder)
        return json.loads((folder / "consistency.json").read_text()), folder

    return count


def alignments(plain, tiny_data, step):
    """The source words of each target word, sentence by sentence through the model's own
    output."""
    loaded = checkpoint.load(plain, str(tiny_data), cpu=True)
    source, target = loaded.dictionary("source"), loaded.dictionary("target")
    data, found = checkpoint.subset(loaded, "test"), defaultdict(Counter)
    for i in range(len(data)):
        sample = data.collater([data[i]])
        with torch.no_grad():
            attention = loaded.model(**sample["net_input"])[1]["attn"][0][0]
        words = [source[int(token)] for token in data[i]["source"][:-1]]
        written = [target[int(token)] for token in data[i]["target"]]
        steps = written if step == "output" else ["</s>", *written[:-1]]
        for word, weights in zip(steps, attention, strict=True):
            found[word][words[int(weights[:-1].argmax())]] += 1
    return found


@pytest.mark.parametrize("step", ["output", "input"])
def test_counts_are_those_of_the_models_own_alignment(plain, tiny_data, count, step):
    found, folder = count("--step", step, "--label", "plain", "--max-tokens", 60)
    expected = alignments(plain, tiny_data, step)
    (model,) = found["models"].values()
    assert set(model["words"]) == {"WIF", "DAX", "LUG", "ZUP", "BLICK", "KIKI"}
    for word, numbers in model["words"].items():
        assert numbers["aligned"] == expected[word]
        assert numbers["occurrences"] == expected[word].total()
        assert numbers["types"] == len(expected[word])
        assert list(numbers["aligned"].values()) == sorted(expected[word].values(), reverse=True)
    frequencies = [numbers["occurrences"] for numbers in model["words"].values()]
    assert frequencies == sorted(frequencies, reverse=True)
    types = [len(expected[word]) for word in model["words"]]
    assert model["mean"] == pytest.approx(sum(types) / 6)
    table = read_table(folder / "consistency.csv")
    assert [int(row["types"]) for row in table] == types
    assert [row["model"] for row in table] == ["plain"] * 6


def test_words_that_are_named_and_two_models(plain, tiny_model, count):
    early = tiny_model / "checkpoint1.pt"
    flags = ["--words", "ZUP", "DAX", "--layer", 1, "--versus", early, "--label", "late", "early"]
    found, _ = count(*flags)
    assert list(found["models"]) == ["late", "early"] and found["layer"] == 1
    late, early = found["models"].values()
    assert list(late["words"]) == list(early["words"]) == ["ZUP", "DAX"]
    for word in late["words"]:
        assert late["words"][word]["occurrences"] == early["words"][word]["occurrences"]
    one, _ = count("--top", 1, out="one")
    assert [len(model["words"]) for model in one["models"].values()] == [1]


def test_what_cannot_be_done_is_one_sentence(plain, tiny_data, tmp_path):
    for flags, reason in (
        (["--words", "ZUP", "--top", 1], "--top is for the most frequent words"),
        (["--words", "ZUPP"], "'ZUPP' is not in the target dictionary; near it are 'ZUP'"),
        (["--words", "<unk>", "</s>", "<pad>"], "'<pad>' does not occur in the subset test"),
        (["--layer", "2"], "--layer 2: "),
        (["--subset", "none"], "'none'"),
        (["--label", "a", "b"], "--label: name each of 1 models"),
        (["--versus", plain, "--label", "a", "a"], "--label: name each of 2 models"),
    ):
        words = [plain, tiny_data, "--cpu", "--out", tmp_path / "out", *flags]
        assert reason in refusal("compgen-analyze consistency", *words, bars=True)
        assert not (tmp_path / "out").exists(), "something half-done is left"
