"""compgen-analyze on tiny trained models: embeddings, codes and prototypes."""

import functools
import json
import re
import shutil
from collections import Counter

import numpy as np
import pytest
import torch
from in_process import output, refusal
from scipy.stats import entropy
from written import analyzed, read_table

from compgen_fairseq.analysis import checkpoint
from compgen_fairseq.analysis.codes import words_per_code

WORDS = {"wif", "dax", "lug", "zup", "blick", "kiki"}


@pytest.fixture
def draw(tiny_data, tmp_path):
    """``draw("codes", CHECKPOINT, "--flag", ...)``: the rows and the JSON that it writes."""

    def draw(kind, path, *flags):
        written = analyzed(kind, path, tiny_data, *flags, "--cpu", out=tmp_path / "out")
        _png, _pdf, table, summary = written
        return read_table(table), json.loads(summary.read_text(encoding="utf-8"))

    return draw


def by_cosine(matrix, dictionary, word):
    """The other words by their cosine with a word, the highest first."""
    unit = torch.nn.functional.normalize(matrix.double(), dim=1)
    cosines = unit @ unit[dictionary.index(word)]
    order = cosines.argsort(descending=True).tolist()
    return [w for i in order if (w := dictionary[i]) != word and w.lower() in WORDS]


@pytest.mark.parametrize("side", ["source", "target"])
def test_embeddings_by_code(sal, tiny_data, draw, side):
    rows, summary = draw("embeddings", sal, "--side", side, "--neighbours", "4")
    loaded = checkpoint.load(sal, str(tiny_data), cpu=True)
    half = loaded.model.encoder if side == "source" else loaded.model.decoder
    assert {row["word"].lower() for row in rows} == WORDS
    groups = words_per_code(loaded, side)
    assert all(row["word"] in groups[int(row["code"])] for row in rows)
    assert all(set(group["words"]) <= set(groups[group["code"]]) for group in summary["groups"])
    for row in rows:
        near = by_cosine(half.stack.embedding.weight.detach(), half.dictionary, row["word"])
        assert row["neighbours"].split() == near[:4] == summary["neighbours"][row["word"]]
        here = {r["word"]: np.array([float(r["x"]), float(r["y"])]) for r in rows}
        away = {w: np.hypot(*(here[w] - here[row["word"]])) for w in here if w != row["word"]}
        assert row["neighbours_2d"].split()[0] == min(away, key=away.__getitem__)
    assert summary["words"] == 6 and summary["width"] == 16 and summary["kl_divergence"] >= 0


def test_embeddings_by_cluster(plain, draw, tiny_data):
    rows, summary = draw("embeddings", plain, "--clusters", "3", "--top", "5")
    counts = [int(row["count"]) for row in rows]
    text = (tiny_data.parent / "train.src").read_text().split()
    assert counts == [text.count(row["word"]) for row in rows] == sorted(counts, reverse=True)
    assert len(rows) == 5 and {row["cluster"] for row in rows} == {"0", "1", "2"}
    assert summary["embedding"] == "embed_tokens"


def test_the_codes_of_a_sentence(sal, tiny_data, plugin, run):
    """What a translation looked at and which codes its words have, as docs/faq.md shows it."""
    model = ("--path", sal, "--print-alignment")
    said = run("fairseq_cli.interactive", tiny_data, *plugin, *model, input="wif dax\n")
    assert "\nA-0\t" in said and "\nH-0\t" in said
    codes = functools.partial(output, "compgen-analyze codes", sal, tiny_data)
    rows = [line.split("\t") for line in codes("dax", "WIF", "dax").splitlines()]
    assert [row[:2] for row in rows] == [["dax", "source"], ["WIF", "target"], ["dax", "source"]]
    clusters = json.loads(codes("--json"))
    for word, side, code, words in rows:
        assert word in words.split() and clusters[side][int(code)] == words.split()
    assert codes("--cpu", "dax").split("\t")[:2] == ["dax", "source"]
    said = refusal("compgen-analyze codes", sal, tiny_data, "dax", "fep")
    assert said == f"compgen-analyze codes: {tiny_data} has no word 'fep'"


def test_codes_are_counted_over_the_corpus(sal, tiny_data, draw, tmp_path):
    tags = {"wif": "A", "dax": "A", "lug": "A", "zup": "B", "blick": "B", "kiki": "B"}
    file = tmp_path / "tags"
    file.write_text("".join(f"{word}\t{tag}\n" for word, tag in tags.items()) + "other\tC\n")
    rows, summary = draw("codes", sal, "--tags", str(file), "--top-words", "2")
    groups = words_per_code(checkpoint.load(sal, str(tiny_data), cpu=True), "source")
    occurs = Counter((tiny_data.parent / "train.src").read_text().split())
    usage = [sum(occurs[word] for word in group) for group in groups]
    assert [int(row["tokens"]) for row in rows] == usage and summary["tokens"] == sum(usage)
    assert summary["entropy_bits"] == pytest.approx(entropy(usage, base=2), abs=1e-4)
    majority = Counter()
    for code, (row, group) in enumerate(zip(rows, groups, strict=True)):
        words = sorted(WORDS & set(group), key=lambda word: -occurs[word])
        assert [w for w, _ in summary["words"][str(code)]] == row["top_words"].split()
        assert sorted(words) == sorted(row["top_words"].split())
        assert dict(summary["words"][str(code)]) == {word: occurs[word] for word in words}
        majority[code] = max(Counter(tags[word] for word in words).values(), default=0)
    found = summary["tags"]
    assert found["purity"] == pytest.approx(majority.total() / 6, abs=1e-4)
    assert found["majority_tag"] == 0.5 and found["tagged_words"] == 6 and found["tags"] == 2
    assert found["untagged_tokens"] == 0
    assert 0 <= found["probe"]["accuracy"] <= 1 and found["probe"]["folds"] == 6


def test_codes_of_another_part_and_side(sal, tiny_data, draw):
    rows, summary = draw("codes", sal, "--side", "target", "--subset", "test")
    text = (tiny_data.parent / "test.tgt").read_text().split()
    known = [word for word in text if word.lower() in WORDS]
    assert sum(int(row["tokens"]) for row in rows) == len(known) < len(text)
    assert summary["codes"] == 2 and "tags" not in summary


def test_states_with_their_prototypes(with_prototypes, tiny_data, draw):
    context = [*("--context", "wif lug=after wif"), *("--context", "lug$=last")]
    rows, summary = draw("prototypes", with_prototypes, "lug", *context)
    text = (tiny_data.parent / "train.src").read_text()
    places = Counter()
    for line in text.splitlines():
        for match in re.finditer(r"\blug\b", line):
            head = "after wif" if line[: match.start()].endswith("wif ") else None
            places[head or ("last" if match.end() == len(line) else "other")] += 1
    states = [row for row in rows if row["what"] == "state"]
    assert Counter(row["tag"] for row in states) == places
    assert {tag["tag"]: tag["states"] for tag in summary["tags"]} == places
    assert all(row["sentence"].split()[int(row["position"])] == "lug" for row in states)
    assert summary["centres"] == "prototypes" and summary["number_of_centres"] == 2
    model = checkpoint.load(str(with_prototypes), str(tiny_data), cpu=True).model
    slot = model.encoder.prototypes.slots[model.encoder.dictionary.index("lug")]
    centres = model.encoder.prototypes.vectors[slot, :2]
    checked = 0
    for row in states[:40]:
        tokens = model.encoder.dictionary.encode_line(row["sentence"], add_if_not_exist=False)
        with torch.no_grad():
            encoded = model.encoder(tokens[None].long(), src_lengths=torch.tensor([len(tokens)]))
        state = encoded["encoder_out"][0][int(row["position"]), 0]
        distances = torch.linalg.norm(centres - state, dim=1)
        if (distances[0] - distances[1]).abs() > 0.01:  # states are kept in half precision
            assert int(row["nearest"]) == distances.argmin()
            checked += 1
    assert checked > 10


def test_without_prototypes_the_centres_are_of_k_means(plain, draw):
    rows, summary = draw("prototypes", plain, "zup", "--centres", "4", "--most", "100")
    assert summary["centres"] == "k-means centres" and summary["number_of_centres"] == 4
    assert [row["what"] for row in rows].count("k-means centres") == 4
    assert summary["tags"] == [
        {"tag": "other", "states": 100, "nearest": summary["tags"][0]["nearest"]}
    ]
    assert sum(summary["tags"][0]["nearest"].values()) == 100


@pytest.mark.parametrize("part", ["train", "test"])
def test_batches_hold_every_pair_once_in_order_of_length(plain, tiny_data, part):
    loaded = checkpoint.load(plain, str(tiny_data), cpu=True)
    assert not loaded.model.training
    found = [sample["id"].tolist() for sample in checkpoint.batches(loaded, part, 40)]
    lines = (tiny_data.parent / f"{part}.src").read_text().splitlines()
    ids = [i for batch in found for i in batch]
    assert sorted(ids) == list(range(len(lines))) and len(found) > 5
    longest = [max(len(lines[i].split()) for i in batch) for batch in found]
    assert longest == sorted(longest)


def test_what_cannot_be_done_is_one_sentence(sal, plain, tiny_data, tmp_path):
    data, out, file = tiny_data, tmp_path / "out", tmp_path / "file"
    file.write_text("no checkpoint")
    other = shutil.copytree(tiny_data, tmp_path / "other")
    with (other / "dict.src.txt").open("a") as dictionary:
        dictionary.write("".join(f"more{i} 1\n" for i in range(8)))
    empty = tmp_path / "empty"
    empty.mkdir()
    for command, reason in (
        (["codes", plain, data], "has no codes: train an sq_transformer architecture with --qua"),
        (["codes", sal, data, "--tags", file], "line 1 is not of the form"),
        (["codes", sal, data, "--tags", "scan"], "--tags scan is for SCAN"),
        (["embeddings", plain, tmp_path / "none"], "none is not a folder"),
        (["embeddings", plain, empty], "empty has no binarized text of two languages"),
        (["embeddings", plain, other], "size mismatch for encoder.embed_tokens.weight"),
        (["embeddings", plain, data, "--clusters", "7"], "--clusters lies between 1 and 6"),
        (["embeddings", plain, data, "--embedding", "x"], "--embedding is one of embed_tokens"),
        (["embeddings", plain, data, "--words", "wif", "kiky"], "near it are 'kiki'"),
        (
            ["embeddings", plain, data, "--top", "3"],
            "4 vectors that are not all the same, not these 3",
        ),
        (["prototypes", plain, data, "blik"], "'blik' is not in the source dictionary; near it"),
        (["prototypes", sal, data, "lug"], "has no states to cluster"),
        (["prototypes", plain, data, "</s>"], "'</s>' is a symbol, not a word"),
    ):
        kind, *words = command
        assert reason in refusal(f"compgen-analyze {kind}", *words, "--cpu", "--out", out)
    said = refusal("compgen-analyze codes", sal, data, "--out", file)
    assert "file is not a folder: choose another --out" in said
    for flag, value in (("--tags", file), ("--side", "source"), ("--top-words", 6)):
        said = refusal("compgen-analyze codes", sal, data, flag, value)
        assert f"{flag} is for a figure: say --out FOLDER" in said
    assert not out.exists(), "something half-written is left"
