"""Prototypes are the clusters of the model's own states, on one worker or several."""

import dataclasses
import multiprocessing
import re
import sys
import tracemalloc
import weakref
from types import SimpleNamespace

import faiss
import numpy as np
import pytest
import random_batches
import torch
import torch.distributed as dist
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset

from compgen_fairseq.prototypes.extract import Settings, collect_word, eligible, extract
from compgen_fairseq.prototypes.kmeans import gpu_resources, prototypes_of

SETTINGS = Settings(k=2, min_count=5, size=30, max_tokens=60)
WORDS, DIM = 12, 16


def dictionary(words: int = WORDS) -> Dictionary:
    made = random_batches.dictionary(words - 1)
    made.add_symbol(".")
    return made


def corpus(pairs: int = 120, words: int = WORDS, order: list[int] | None = None):
    draw = np.random.default_rng(0)
    made = dictionary(words)
    odds = 1 / np.arange(1, words + 1)
    sides = [
        [
            torch.from_numpy(np.append(draw.choice(words, n, p=odds / odds.sum()) + 4, 2))
            for n in draw.integers(1, 9, pairs)
        ]
        for _ in range(2)
    ]
    columns: list = []
    for side in sides:
        side = side if order is None else [side[i] for i in order]
        columns += [ListDataset(side), np.array([len(x) for x in side]), made]
    return LanguagePairDataset(*columns, shuffle=False)


def model(variant: str = "one-pass", words: int = WORDS, layers: int = 1, **options):
    task = SimpleNamespace(source_dictionary=dictionary(words), target_dictionary=dictionary(words))
    sizes = {"embed_dim": DIM, "ffn_embed_dim": 16, "attention_heads": 2}
    options |= random_batches.both_sides(layers=layers, **sizes)
    return random_batches.build_model("proto_transformer", task, prototypes=variant, **options)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    ("layers", "layer", "index"),
    [(1, "last-but-one", 1), (1, "last", 1), (3, "last-but-one", 2), (3, "last", 3)],
)
def test_prototypes_cluster_the_states_of_each_word(side, layers, layer, index):
    """With all states chosen: those that the model gives each sentence by itself."""
    network, data = model("source-and-target", layers=layers).eval(), corpus()
    states: dict[int, list[np.ndarray]] = {}
    with torch.no_grad():
        for pair in (data[i] for i in range(len(data))):
            source = pair["source"].unsqueeze(0)
            encoded = network.encoder(source, src_lengths=None, return_all_hiddens=True)
            tokens, hidden = source, encoded["encoder_states"]
            if side == "target":
                tokens = pair["target"].roll(1).unsqueeze(0)
                hidden = network.decoder.extract_features(tokens, encoded)[1]["inner_states"]
            for token, vector in zip(tokens[0].tolist(), hidden[index][:, 0], strict=True):
                states.setdefault(token, []).append(vector.numpy())
    settings = Settings(k=1, min_count=5, size=0, max_tokens=60, layer=layer)
    found = extract(network, data, [side], settings)[side]
    words = [t for t in range(4, 4 + WORDS - 1) if len(states.get(t, ())) >= 5]
    assert found.types.tolist() == words and len(words) > 5
    expected = torch.from_numpy(np.stack([np.mean(states[t], axis=0) for t in words]))
    torch.testing.assert_close(found.vectors[:, 0], expected, atol=2e-3, rtol=0)
    assert found.counts.tolist() == [1] * len(words)


def test_leaves_the_model_and_the_random_numbers_alone():
    network = model().train()
    torch.manual_seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    extract(network, corpus(), ["source"], SETTINGS)
    assert network.training and all(part.training for part in network.modules())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()


def test_leaves_faiss_no_memory_of_the_gpu(monkeypatch):
    monkeypatch.setattr(faiss, "StandardGpuResources", set, raising=False)
    held = weakref.ref(gpu_resources())
    extract(model(), corpus(), ["source"], SETTINGS)
    assert held() is None


def test_the_order_of_the_corpus_does_not_matter():
    network = model()
    order = np.random.default_rng(1).permutation(120).tolist()
    one = extract(network, corpus(), ["source"], SETTINGS)["source"]
    other = extract(network, corpus(order=order), ["source"], SETTINGS)["source"]
    assert torch.equal(one.types, other.types) and torch.equal(one.counts, other.counts)
    torch.testing.assert_close(one.vectors, other.vectors, atol=1e-3, rtol=0)


def worker(rank: int, meeting: str, settings: Settings, results) -> None:
    dist.init_process_group("gloo", init_method=meeting, world_size=2, rank=rank)
    found = extract(model("source-and-target"), corpus(), ["source", "target"], settings)
    results.put((rank, {side: [x.numpy() for x in part] for side, part in found.items()}))
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("max_tokens", [60, 10**5])
def test_two_workers_make_the_table_of_one(max_tokens, tmp_path):
    """Each with its share of the batches, or one with the only batch and the other with none."""
    settings = dataclasses.replace(SETTINGS, max_tokens=max_tokens)
    processes = multiprocessing.get_context("fork")
    results = processes.Queue()
    shared = (f"file://{tmp_path}/meeting", settings, results)
    workers = [processes.Process(target=worker, args=(r, *shared)) for r in range(2)]
    for process in workers:
        process.start()
    tables = dict(results.get(timeout=60) for _ in workers)
    for process in workers:
        process.join(60)
        assert process.exitcode == 0
    alone = extract(model("source-and-target"), corpus(), ["source", "target"], settings)
    for side, expected in alone.items():
        assert len(expected.types) > 5
        for table in tables.values():
            for ours, theirs in zip(table[side], expected, strict=True):
                assert np.array_equal(ours, theirs.numpy()), f"{side} differs"


def test_states_that_are_no_numbers_are_reported_and_left_out(caplog):
    network = model()
    with torch.no_grad():
        network.encoder.embed_tokens.weight[5] = float("nan")  # and so every sentence with it
    found = extract(network, corpus(), ["source"], SETTINGS)["source"]
    assert 5 not in found.types and 4 in found.types
    assert found.vectors.isfinite().all()
    assert "are not finite in half precision; left out" in caplog.text


def test_pairs_too_long_for_the_model_are_left_out():
    data = corpus()
    short = [i for i in range(len(data)) if max(data.src_sizes[i], data.tgt_sizes[i]) <= 5]
    limited = extract(model(), data, ["source"], SETTINGS, (5, 5))["source"]
    alone = extract(model(), corpus(order=short), ["source"], SETTINGS)["source"]
    assert torch.equal(limited.types, alone.types)
    torch.testing.assert_close(limited.vectors, alone.vectors, atol=1e-3, rtol=0)


def test_memory_is_that_of_the_chosen_states():
    """Many types; the corpus has many times more states than are allowed for."""
    data = corpus(pairs=1500, words=1500)
    network = model(words=1500)
    tracemalloc.start()
    limit = 1000 * DIM * 2 / 2**30
    found = extract(network, data, ["source"], Settings(k=1, min_count=2, memory=limit))["source"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.types) > 300
    assert peak < 10 * 2**20, f"{peak:,} bytes beside the states"


@pytest.mark.parametrize("sides", [["source"], ["source", "target"]])
def test_sides_share_the_memory(sides, caplog):
    """That of 1000 states, of nearly 1400 a side."""
    caplog.set_level("INFO", "compgen_fairseq")
    settings = Settings(k=1, min_count=5, memory=1000 * DIM * 2 / 2**30)
    extract(model("source-and-target"), corpus(pairs=300), sides, settings)
    taken = [int(number) for number in re.findall(r"(\d+) in all", caplog.text)]
    assert len(taken) == len(sides) and max(taken) <= 1000 / len(sides) < 1.1 * min(taken)


def test_which_types_have_prototypes_and_of_how_many_states():
    often = eligible(dictionary(4), np.array([9, 9, 9, 9, 4, 5, 6, 9]), min_count=5)
    assert often.tolist() == [0, 0, 0, 0, 0, 5, 6, 0]  # special types, a rare one and "." have none
    sizes = {None: 3 * 256, 9: 9, 0: sys.maxsize}
    assert {size: Settings(k=3, size=size).per_type for size in sizes} == sizes


def test_the_states_of_one_word_can_be_looked_at():
    network, data = model().eval(), corpus()
    sample, states = collect_word(network, data, 4, most=10**6, max_tokens=60)
    assert len(sample) == len(states) == sum((p["source"] == 4).sum() for p in data)
    found = extract(network, data, ["source"], Settings(k=2, min_count=1, size=10**6))["source"]
    centres = torch.from_numpy(prototypes_of(states.half().numpy(), 2))
    torch.testing.assert_close(found.vectors[0], centres, atol=1e-3, rtol=0)
