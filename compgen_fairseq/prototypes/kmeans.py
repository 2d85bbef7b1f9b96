"""k-means of one type's states, with faiss."""

import functools
import logging
from typing import Any

import numpy as np

ITERATIONS = 20  # with 300, scikit-learn's number, the sum of squares is the same
SEED = 1
#: as many as scikit-learn's KMeans had for Yin et al.: from one start, the states of a word that is
#: mostly in one context end in a bad optimum
STARTS = 10


@functools.cache
def _faiss() -> Any:
    """The library, loaded when it is first needed, without its report of how it is loaded."""
    logging.getLogger("faiss.loader").setLevel(logging.WARNING)
    import faiss

    return faiss


@functools.cache
def gpu_resources() -> Any:
    """What faiss needs: 1.5 GiB of the GPU's memory, until the cache is cleared."""
    return _faiss().StandardGpuResources()


def kmeans(
    states: np.ndarray, k: int, seed: int = SEED, gpu: int | None = None
) -> tuple[np.ndarray, float]:
    """Lloyd's algorithm (equation 7 of Yin et al., 2022), the best of ``STARTS`` k-means++ starts.

    Args:
        states: float32, ``(n, dim)`` with ``n >= k``.
        k: number of clusters.
        seed: of the states that the clusters start from.
        gpu: number of the GPU to use; None for the CPU.

    Returns:
        the centres, float32, ``(k, dim)``, and the sum of squared distances to them.
    """
    faiss = _faiss()
    parameters = faiss.ClusteringParameters()
    parameters.niter = ITERATIONS
    parameters.nredo = STARTS
    parameters.init_method = faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS
    parameters.seed = seed % 2**31  # a C int
    parameters.min_points_per_centroid = 1
    parameters.max_points_per_centroid = len(states)  # they are a sample already
    clustering = faiss.Clustering(states.shape[1], k, parameters)
    index = faiss.IndexFlatL2(states.shape[1])
    if gpu is not None:
        index = faiss.index_cpu_to_gpu(gpu_resources(), gpu, index)
    clustering.train(states, index)
    centres = faiss.vector_to_array(clustering.centroids).reshape(k, -1)
    return centres, float(index.search(states, 1)[0].sum())


def prototypes_of(
    states: np.ndarray, k: int, seed: int = SEED, gpu: int | None = None
) -> np.ndarray:
    """The prototypes of one type.

    States that are not finite don't count. If no more than ``k`` different states are left, they
    are the prototypes; else the centres of k-means to which a state belongs.

    Args:
        states: ``(n, dim)``, in half precision.
        k: the most prototypes.
        seed, gpu: see :func:`kmeans`.

    Returns:
        float32, ``(m, dim)`` with ``m <= k``; no two are the same.
    """
    states = states[np.isfinite(states).all(axis=1)].astype(np.float32)
    if len(np.unique(states[:, :1])) <= k:  # no more than k different states only if so
        different = np.unique(states, axis=0)
        if len(different) <= k:
            return different
    centres, _ = kmeans(np.ascontiguousarray(states), k, seed, gpu=gpu)
    centres = np.unique(centres[np.isfinite(centres).all(axis=1)], axis=0)
    index = _faiss().IndexFlatL2(centres.shape[1])
    index.add(centres)
    return centres[np.unique(index.search(states, 1)[1])]


def gpu_of(device: Any) -> int | None:
    """The number of the GPU that a model is on, if it is on one and faiss can use it."""
    return device.index if _faiss().get_num_gpus() > 0 else None
