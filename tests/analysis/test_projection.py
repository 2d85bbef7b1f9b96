"""t-SNE."""

import numpy as np
import pytest

from compgen_fairseq.analysis.projection import tsne


@pytest.mark.parametrize("width", [3, 80])
def test_clusters_stay_together_and_nothing_is_random(width):
    draw = np.random.default_rng(1)
    centres = 20 * draw.normal(size=(4, width))
    cluster = np.arange(60) % 4
    vectors = (centres[cluster] + draw.normal(size=(60, width))).astype(np.float32)
    found = tsne(vectors, seed=3)
    assert found.points.shape == (60, 2) and found.perplexity == 59 / 3
    assert 0 < found.divergence < 1
    assert np.array_equal(found.points, tsne(vectors, seed=3).points)
    distances = np.linalg.norm(found.points[:, None] - found.points[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (cluster[distances.argmin(1)] == cluster).all()


def test_few_vectors_have_a_lower_perplexity(capsys):
    vectors = np.eye(7, dtype=np.float32)
    assert tsne(vectors).perplexity == 2
    assert tsne(vectors, perplexity=4.5).perplexity == 4.5
    assert capsys.readouterr().out == "", "what scikit-learn prints is for the progress bar"


def test_what_cannot_be_projected():
    for perplexity in (0.0, 5.0):
        with pytest.raises(ValueError, match="--perplexity lies between 0 and 5"):
            tsne(np.eye(5, dtype=np.float32), perplexity=perplexity)
    with pytest.raises(ValueError, match="4 vectors that are not all the same"):
        tsne(np.ones((9, 5), dtype=np.float32))
