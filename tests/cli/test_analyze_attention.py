"""compgen-analyze attention on tiny trained models."""

import json

import numpy as np
import pytest
import torch
from in_process import refusal
from matplotlib.image import imread
from written import analyzed, read_table

from compgen_fairseq.analysis import checkpoint
from compgen_fairseq.analysis.attention_maps import SIDES, attention_maps

PICTURES = {f"attention-{side}.{form}" for side in SIDES for form in ("png", "pdf")}


@pytest.fixture
def draw(tiny_data, tmp_path):
    """``draw(CHECKPOINT, "--flag", ..., out="out")``: the folder that it writes."""

    def draw(path, *flags, out="out"):
        analyzed("attention", path, tiny_data, *flags, "--cpu", out=tmp_path / out)
        return tmp_path / out

    return draw


def described(folder):
    return json.loads((folder / "attention.json").read_text())["attention"]


def pairs_of(folder):
    return read_table(folder / "pairs.tsv", delimiter="\t")


def test_sal_attends_alike_to_sentences_of_the_same_codes(sal, tiny_data, draw):
    folder = draw(sal, "--pairs", 500, "--subset", "train")
    assert {file.name for file in folder.iterdir()} == PICTURES | {
        *("attention.json", "attention.csv", "pairs.tsv", "maps.json")
    }
    found = described(folder)
    encoder = {name: found["encoder"][name] for name in ("kl", "same_token", "same_pattern")}
    assert encoder == {"kl": 0.0, "same_token": 1.0, "same_pattern": 1.0}
    assert found["cross"]["kl"] > 0 and 0 < found["cross"]["same_token"] < 1
    stack = checkpoint.load(sal, str(tiny_data), cpu=True)
    codes = stack.model.encoder.stack.type_codes().tolist()
    pairs = pairs_of(folder)
    assert 0 < found["decoder"]["pairs"] == found["cross"]["pairs"] <= len(pairs)
    assert found["encoder"]["pairs"] == len(pairs)
    text = (tiny_data.parent / "train.src").read_text().splitlines()
    for pair in pairs:
        sources = [pair[f"source_{side}"] for side in "ab"]
        assert sources == [text[int(pair[side])] for side in "ab"] and sources[0] != sources[1]
        a, b = ([codes[stack.dictionary("source").index(w)] for w in s.split()] for s in sources)
        assert a == b


def test_another_model_is_measured_on_the_same_pairs_one_by_one(sal, plain, tiny_data, draw):
    own = draw(sal, "--pairs", 12, "--subset", "train", out="own")
    folder = draw(plain, "--pairs", 12, "--codes", sal, "--subset", "train", out="codes")
    assert (folder / "pairs.tsv").read_bytes() == (own / "pairs.tsv").read_bytes()
    given = draw(plain, "--pairs-from", own / "pairs.tsv", "--subset", "train", out="given")
    assert described(given) == described(folder) and not (given / "pairs.tsv").exists()
    for name in PICTURES:
        assert (folder / name).read_bytes() == (given / name).read_bytes()
    loaded = checkpoint.load(plain, str(tiny_data), cpu=True)
    data = checkpoint.subset(loaded, "train")

    def maps(i):
        return attention_maps(loaded.model, data.collater([data[int(i)]])["net_input"])

    expected = {side: [] for side in SIDES}
    for pair in pairs_of(folder):
        a, b = maps(pair["a"]), maps(pair["b"])
        for side in SIDES if pair["targets"] == "1" else ("encoder",):
            first, second = (m[side][0, ..., int(side == "decoder") :, :] for m in (a, b))
            if first.size(-2) == 0:
                continue
            seen = first[..., :] > 0
            ratio = torch.where(seen, first / second, 1.0).log()
            kl = ((first - second) * ratio).sum(-1) / 2
            expected[side].append((float(kl.mean()), first.argmax(-1) == second.argmax(-1)))
    found = described(folder)
    for side, values in expected.items():
        assert found[side]["pairs"] == len(values) > 0
        kls, same = zip(*values, strict=True)
        assert found[side]["kl"] == pytest.approx(np.mean(kls), rel=1e-4)
        shares = [float(s.double().mean()) for s in same]
        assert found[side]["same_token"] == pytest.approx(np.mean(shares), abs=1e-6)
        whole = np.mean([s.all(-1).double().mean() for s in same])
        assert found[side]["same_pattern"] == pytest.approx(whole, abs=1e-6)
    heads = [row for row in read_table(folder / "attention.csv") if row["attention"] == "encoder"]
    assert [(row["layer"], row["head"]) for row in heads] == [("1", "1"), ("1", "2")]
    mean = np.mean([float(row["kl"]) for row in heads])
    assert mean == pytest.approx(found["encoder"]["kl"])


def test_word_classes_of_a_file(plain, tiny_data, tmp_path, draw):
    """All words are of one class: sentences of the same length are pairs."""
    classes = tmp_path / "classes"
    classes.write_text("".join(f"{w}\tword\n" for w in "wif dax lug zup blick kiki".split()))
    pairs = pairs_of(draw(plain, "--pairs", 5, "--classes", classes))
    assert len(pairs) == 5
    for pair in pairs:
        assert len(pair["source_a"].split()) == len(pair["source_b"].split())
        assert pair["targets"] == "1" and "fep" not in pair["source_a"] + pair["source_b"]


def test_a_typed_sentence_and_one_by_number(sal, tiny_data, draw):
    text = (tiny_data.parent / "test.src").read_text().splitlines()
    number = next(i for i, line in enumerate(text) if len(line.split()) == 3 and "fep" not in line)
    folder = draw(sal, "--id", number)
    assert {file.name for file in folder.iterdir()} == PICTURES | {"maps.json"}
    (shown,) = json.loads((folder / "maps.json").read_text())
    words = [*text[number].split(), "</s>"]
    assert shown["encoder"]["queries"] == shown["encoder"]["keys"] == words
    target = [word.upper() for word in words[:-1]]
    assert shown["decoder"]["queries"] == ["</s>", *target]
    assert shown["cross"]["queries"] == [*target, "</s>"] and shown["cross"]["keys"] == words
    weights = np.array(shown["cross"]["weights"])
    assert weights.shape == (2, 2, 4, 4)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    typed = draw(sal, "--sentence", text[number], out="typed")
    for name in PICTURES | {"maps.json"}:
        assert (typed / name).read_bytes() == (folder / name).read_bytes(), "the subset has it"
    new = draw(sal, "--sentence", "wif wif wif wif wif wif wif wif wif", out="new")
    names = {"attention-encoder.png", "attention-encoder.pdf", "maps.json"}
    assert {file.name for file in new.iterdir()} == names


def test_differences_of_two_sentences_are_outlined(plain, draw):
    twice = draw(plain, "--sentence", "wif dax lug", "--sentence", "wif dax lug", out="twice")
    two = draw(plain, "--sentence", "wif dax lug", "--sentence", "lug kiki zup", out="two")
    orange = []
    for folder in (twice, two):
        picture = imread(folder / "attention-encoder.png")[..., :3]
        colour = np.array([0xD5, 0x5E, 0x00]) / 255
        orange.append(int((abs(picture - colour).max(-1) < 0.05).sum()))
    assert orange[0] == 0 < orange[1]


def test_what_cannot_be_done_is_one_sentence(sal, plain, tiny_data, tmp_path):
    one_each = tmp_path / "classes"
    one_each.write_text("".join(f"{w}\t{w}\n" for w in "wif dax lug zup blick kiki".split()))
    other = tmp_path / "pairs.tsv"
    other.write_text("a\tb\ttargets\tsource_a\tsource_b\n0\t1\t1\tno\tsuch\n")
    for path, flags, reason in (
        (plain, [], "say what to draw"),
        (plain, ["--pairs", "3"], "has no codes: name an sq_transformer with --codes"),
        (plain, ["--pairs", "3", "--codes", plain], "has no codes"),
        (plain, ["--pairs", "3", "--classes", one_each], "no two sentences of the subset test"),
        (plain, ["--pairs", "3", "--classes", tmp_path / "none"], "none: No such file"),
        (plain, ["--pairs-from", other], "line 2: sentence 0 of this subset is not 'no'"),
        (plain, ["--pairs-from", other, "--pairs", "2"], "choose one"),
        (sal, ["--codes", sal, "--id", "0"], "say --pairs N, too"),
        (sal, ["--id", "37"], "the subset test has 37 sentences"),
        (sal, ["--id", "0", "--id", "1", "--id", "2"], "at most two"),
        (sal, ["--sentence", "wif diff"], "'diff' is not in the source dictionary"),
        (sal, ["--sentence", " "], "no word"),
        (sal, ["--sentence", "wif", "--sentence", "wif dax"], "differ in length"),
    ):
        words = [path, tiny_data, "--cpu", "--out", tmp_path / "out", *flags]
        assert reason in refusal("compgen-analyze attention", *words)
        assert not (tmp_path / "out").exists(), "something half-done is left"
