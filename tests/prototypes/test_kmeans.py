"""k-means on what real types bring: few states, equal states, states that are not numbers."""

import faiss
import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from compgen_fairseq.prototypes.kmeans import gpu_of, kmeans, prototypes_of


def clusters(n: int, k: int, dim: int = 32, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(k, dim))
    return (centres[np.arange(n) % k] + 0.1 * draw.normal(size=(n, dim))).astype(np.float16)


def squares(states: np.ndarray, centres: np.ndarray) -> float:
    apart = states.astype(np.float64)[:, None] - centres[None]
    return float((apart**2).sum(-1).min(1).sum())


def test_finds_clusters():
    """Of all states: by default faiss clusters 256 per centre."""
    states = clusters(3000, 3)
    means = np.stack([states[i::3].mean(0, dtype=np.float64) for i in range(3)])
    found = prototypes_of(states, 3)
    assert found.dtype == np.float32
    nearest = ((found[:, None] - means[None]) ** 2).sum(-1).argmin(1)
    np.testing.assert_allclose(found, means[nearest], atol=1e-3)
    assert set(nearest) == {0, 1, 2}


@pytest.mark.parametrize("sizes", [[17] * 12, [150, 40, 6, 4], [190, 5, 5]])
def test_is_as_good_as_scikit_learn(sizes):
    """Over many types, as single ones end in different local optima; contexts differ in number."""
    ours = theirs = 0.0
    for seed in range(10):
        draw = np.random.default_rng(seed)
        centres = np.repeat(draw.normal(size=(len(sizes), 32)), sizes, axis=0)
        states = (centres + 0.1 * draw.normal(size=centres.shape)).astype(np.float32)
        ours += kmeans(states, 3)[1]
        theirs += KMeans(3, n_init=10, random_state=seed).fit(states).inertia_
    assert ours <= 1.01 * theirs


def test_reports_the_sum_of_squares():
    states = clusters(200, 5).astype(np.float32)
    centres, inertia = kmeans(states, 3)
    assert inertia == pytest.approx(squares(states, centres), rel=1e-3)


@pytest.mark.parametrize(("n", "copies"), [(1, 1), (2, 1), (3, 1), (2, 250)])
def test_no_more_states_than_prototypes_are_the_prototypes(n, copies):
    states = clusters(n, n)
    found = prototypes_of(np.tile(states, (copies, 1)), 3)
    assert sorted(map(tuple, found)) == sorted(map(tuple, states))


def test_a_cluster_without_states_is_no_prototype():
    """Four places, one of them far off, all but one with many copies: centres would coincide."""
    states = np.repeat(np.eye(4, 8, dtype=np.float16) * [[1], [1], [1], [1e3]], [400, 1, 1, 1], 0)
    found = prototypes_of(states.astype(np.float16), 3)
    assert 1 <= len(found) <= 3 and len(np.unique(found, axis=0)) == len(found)
    nearest = ((states[:, None].astype(np.float32) - found[None]) ** 2).sum(-1).argmin(1)
    assert set(nearest) == set(range(len(found)))


def test_states_that_are_no_numbers_are_left_out():
    states = clusters(300, 3)
    broken = states.copy()
    broken[::10] = np.nan
    broken[5] = np.inf
    left = np.isfinite(broken).all(1)
    np.testing.assert_array_equal(prototypes_of(broken, 3), prototypes_of(states[left], 3))
    assert prototypes_of(np.full((20, 8), np.nan, np.float16), 3).shape == (0, 8)


def test_the_same_states_and_seed_give_the_same_prototypes():
    states = clusters(500, 7)
    np.testing.assert_array_equal(prototypes_of(states, 3), prototypes_of(states, 3))
    assert not np.array_equal(prototypes_of(states, 3), prototypes_of(states, 3, seed=9))


@pytest.mark.parametrize(
    ("gpus", "device", "expected"), [(2, "cpu", None), (2, "cuda:1", 1), (0, "cuda:1", None)]
)
def test_clusters_are_found_where_the_model_is(gpus, device, expected, monkeypatch):
    """--cpu means no GPU for k-means either."""
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: gpus)
    assert gpu_of(torch.device(device)) == expected
