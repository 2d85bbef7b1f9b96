"""t-SNE: many-dimensional vectors as points of a plane."""

import contextlib
import io
import re
from typing import NamedTuple

import numpy as np

from compgen_fairseq.progress import progress

DIMENSIONS = 50  # of the principal components that t-SNE reads
ITERATIONS = 1000
MANY = 10_000  # vectors: of more, those far off are taken together in larger groups


class Projection(NamedTuple):
    """What :func:`tsne` returns."""

    points: np.ndarray  # (n, 2), float32
    divergence: float  # of the similarities in the plane from those in the space, in nats
    perplexity: float


def tsne(vectors: np.ndarray, seed: int = 1, perplexity: float | None = None) -> Projection:
    """Project vectors by t-SNE (van der Maaten and Hinton, 2008), Barnes-Hut approximation.

    Wide vectors are first reduced to their 50 principal components, as the method's authors do;
    the start is the first two of them. The same vectors and seed give the same points.

    Args:
        vectors: ``(n, dim)``, float32.
        seed: of the principal components.
        perplexity: about how many neighbours count; by default 30, of few vectors a third.

    Raises:
        ValueError: if there are too few vectors, or only copies of one, which end scikit-learn.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    n, dim = vectors.shape
    if n < 4 or not np.ptp(vectors, axis=0).any():
        raise ValueError(f"t-SNE needs at least 4 vectors that are not all the same, not these {n}")
    perplexity = min(30.0, (n - 1) / 3) if perplexity is None else perplexity
    if not 0 < perplexity < n:
        raise ValueError(f"--perplexity lies between 0 and {n}, the number of vectors")
    if min(n, dim) > DIMENSIONS:
        vectors = PCA(DIMENSIONS, svd_solver="randomized", random_state=seed).fit_transform(vectors)
    method = TSNE(
        perplexity=perplexity,
        init="pca",
        max_iter=ITERATIONS,
        angle=0.5 if n <= MANY else 0.8,
        random_state=seed,
        verbose=2,
    )
    with _Bar() as bar, contextlib.redirect_stdout(bar):
        points = method.fit_transform(vectors)
    return Projection(points, float(method.kl_divergence_), float(perplexity))


class _Bar(io.TextIOBase):
    """A bar of t-SNE's iterations, read from what scikit-learn prints every 50 of them."""

    def __init__(self) -> None:
        self.bar = progress(None, "t-SNE", ITERATIONS, " iterations")

    def write(self, text: str) -> int:
        if found := re.search(r"Iteration (\d+): error", text):
            self.bar.update(int(found[1]) - self.bar.n)
        return len(text)

    def close(self) -> None:
        self.bar.close()
        super().close()
