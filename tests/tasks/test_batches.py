"""Copies are dealt evenly, nothing is lost, and without copies nothing changes."""

import numpy as np
import pytest
import torch

from compgen_fairseq.tasks.batches import (
    MixedLengthsDataset,
    SpreadRepeatsDataset,
    spread_repeats,
)
from compgen_fairseq.tasks.compgen_translation import (
    CompgenTranslationConfig,
    CompgenTranslationTask,
)


def corpus(n_plain=3000, kinds=12, copies=50, seed=0):
    """Length-sorted indices, the pair of each, its tokens: short repeated pairs, longer others."""
    draw = np.random.default_rng(seed)
    pairs = np.concatenate([np.arange(kinds).repeat(copies), kinds + np.arange(n_plain)])
    tokens = np.concatenate([np.full(kinds * copies, 2), draw.integers(3, 50, size=n_plain)])
    order = draw.permutation(len(pairs))  # the index of a pair says nothing about the pair
    pairs, tokens = pairs[order], tokens[order]
    indices = np.argsort(tokens, kind="stable")
    return indices, pairs, tokens


def test_the_same_indices_with_the_first_occurrences_in_their_order():
    indices, pairs, tokens = corpus()
    spread = spread_repeats(indices, pairs[indices], tokens[indices])
    assert sorted(spread) == sorted(indices)
    _, first_before = np.unique(pairs[indices], return_index=True)
    first_after = np.isin(spread, indices[first_before])
    np.testing.assert_array_equal(spread[first_after], indices[np.sort(first_before)])


def test_copies_lie_at_equal_distances_in_tokens():
    indices, pairs, tokens = corpus(copies=51)
    spread = spread_repeats(indices, pairs[indices], tokens[indices])
    _, first = np.unique(pairs[indices], return_index=True)
    is_copy = ~np.isin(spread, indices[first])
    assert is_copy.sum() == 12 * 50
    passed = np.cumsum(np.where(is_copy, 0, tokens[spread]))
    gaps = np.diff(passed[is_copy])
    interval = passed[-1] / is_copy.sum()
    assert np.abs(gaps - interval).max() < 50  # off by less than one sentence
    assert passed[is_copy][0] < interval + 50 and passed[is_copy][-1] > passed[-1] - interval - 50


def test_a_run_of_copies_holds_every_repeated_pair():
    indices, pairs, tokens = corpus(kinds=12, copies=51)
    spread = spread_repeats(indices, pairs[indices], tokens[indices])
    _, first = np.unique(pairs[indices], return_index=True)
    dealt = pairs[spread[~np.isin(spread, indices[first])]]
    for start in range(0, len(dealt), 12):
        assert sorted(dealt[start : start + 12]) == list(range(12))


def test_a_pair_with_fewer_copies_is_spread_over_the_whole_epoch_too():
    pairs = np.array([0] * 101 + [1] * 11 + list(range(2, 102)))
    spread = spread_repeats(np.arange(len(pairs)), pairs, np.ones_like(pairs))
    places = np.flatnonzero(pairs[spread] == 1)[1:]
    np.testing.assert_allclose(np.diff(places), len(pairs) / 10, atol=3)


def test_without_copies_nothing_moves():
    indices = np.array([4, 1, 3, 0, 2])
    np.testing.assert_array_equal(spread_repeats(indices, indices + 7, np.ones(5)), indices)
    assert len(spread_repeats(indices[:0], indices[:0], indices[:0])) == 0


def load(data, part="train", **options):
    interpolated = {"train_subset": "train", "dataset_impl": None, "required_seq_len_multiple": 1}
    config = CompgenTranslationConfig(data=str(data), **interpolated, **options)
    task = CompgenTranslationTask.setup_task(config)
    task.load_dataset(part)
    return task, task.dataset(part)


def test_batches_of_the_real_data_set(tiny_data):
    made = {}
    for where in ("sorted", "spread"):
        task, dataset = load(tiny_data, train_batches=where)
        limits = {"max_tokens": 100, "required_batch_size_multiple": 8}
        made[where] = task.get_batch_iterator(dataset, seed=3, **limits).frozen_batches
        assert sorted(np.concatenate(made[where])) == list(range(285))
        assert max(len(b) * dataset.num_tokens_vec(b).max() for b in made[where]) <= 100
    copies = {where: [(b >= 203).mean() for b in made[where]] for where in made}  # "dax" and "wif"
    assert max(copies["sorted"]) == 1 and min(copies["sorted"]) == 0
    assert max(copies["spread"]) <= 0.6 and min(copies["spread"][:-1]) > 0.1


def test_mixed_batches_hold_every_length_and_change_with_the_epoch(tiny_data):
    task, dataset = load(tiny_data, train_batches="mixed")
    limits = {"max_tokens": 200, "required_batch_size_multiple": 8, "seed": 3}
    first, second, again = (
        task.get_batch_iterator(dataset, epoch=epoch, **limits).frozen_batches
        for epoch in (1, 2, 1)
    )
    for made in (first, second):
        assert sorted(np.concatenate(made)) == list(range(285))
        assert max(len(b) * dataset.num_tokens_vec(b).max() for b in made) <= 200
    assert np.concatenate(first).tolist() == np.concatenate(again).tolist()
    assert np.concatenate(first).tolist() != np.concatenate(second).tolist()
    assert all(len(np.unique(dataset.num_tokens_vec(batch))) > 2 for batch in first[:-1])
    assert not isinstance(load(tiny_data, "valid", train_batches="mixed")[1], MixedLengthsDataset)


def test_batches_of_as_many_sentences_get_as_many_copies(tiny_data):
    task, dataset = load(tiny_data, train_batches="spread")
    made = task.get_batch_iterator(dataset, max_sentences=16).frozen_batches
    copies = [int((batch >= 203).sum()) for batch in made]  # 80 of 285, and two first occurrences
    assert copies[0] in (6, 7) and set(copies[1:-1]) == {4, 5} and sum(copies) == 82


def test_data_without_repeats_keeps_fairseqs_batches(tiny_data):
    task, plain = load(tiny_data, "valid")
    limits = {"max_tokens": 100, "required_batch_size_multiple": 8}
    theirs = task.get_batch_iterator(plain, **limits).frozen_batches
    ours = task.get_batch_iterator(SpreadRepeatsDataset(plain), **limits).frozen_batches
    assert len(ours) == len(theirs) > 1
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_the_training_set_is_spread(tiny_data):
    assert isinstance(load(tiny_data, train_batches="spread")[1], SpreadRepeatsDataset)
    assert not isinstance(load(tiny_data, "valid", train_batches="spread")[1], SpreadRepeatsDataset)
    assert not isinstance(load(tiny_data)[1], SpreadRepeatsDataset)


def test_the_wrapper_hands_on_what_the_trainer_asks_for(tiny_data):
    _, dataset = load(tiny_data, train_batches="spread")
    plain = dataset.dataset
    indices = np.arange(len(plain))
    kept, ignored = dataset.filter_indices_by_size(indices, (4, 4))
    assert len(kept) == len(plain) - len(ignored) and max(map(dataset.size, kept)) == (4, 4)
    np.testing.assert_array_equal(dataset.sizes, plain.sizes)
    plain.buckets = [(8, 10)]
    assert dataset.get_batch_shapes() == [(8, 10)]
    for name in ("supports_prefetch", "supports_fetch_outside_dataloader"):
        assert getattr(dataset, name) == getattr(plain, name)
    assert dataset.can_reuse_epoch_itr_across_epochs is plain.can_reuse_epoch_itr_across_epochs


@pytest.mark.parametrize("other", [((1, 2), (3,)), ((1,), (2, 4)), ((3,), (1, 2))])
def test_pairs_are_equal_only_if_both_sides_are(other):
    texts = [((1,), (2, 3)), other, ((1,), (2, 3))]
    pairs = [{"source": torch.tensor(s), "target": torch.tensor(t)} for s, t in texts]
    assert SpreadRepeatsDataset(pairs).pair_ids.tolist() == [0, 1, 0]
