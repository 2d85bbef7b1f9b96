"""Brown clustering: classes of words that keep the most mutual information of a bigram.

Brown et al. (1992), "Class-Based n-gram Models of Natural Language"; equation 5 of the
SQ-Transformer paper. The structure-oriented vector quantization of that paper maximises a
variational bound of the same quantity by gradient descent.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix

#: How many classes are kept apart while words are added one by one (or the number of classes
#: asked for, where that is more). A vocabulary no larger than this is clustered exactly.
WINDOW = 48

Counts = NDArray[np.float64]


def bigram_counts(
    sentences: Iterable[NDArray[np.integer]], vocabulary: int, eos: int
) -> csr_matrix:
    """Count the pairs of neighbours; the first word's left neighbour is ``eos``.

    Args:
        sentences: token ids, each ending in ``eos``.
        vocabulary: number of types.
        eos: id of the end of a sentence.

    Returns:
        ``(vocabulary, vocabulary)``: how often the row's type stands before the column's.
    """
    counts = csr_matrix((vocabulary, vocabulary))
    chunk: list[NDArray[np.integer]] = [np.array([eos])]
    size = 0

    def add() -> csr_matrix:
        tokens = np.concatenate(chunk)
        ones = np.ones(len(tokens) - 1)
        return counts + coo_matrix((ones, (tokens[:-1], tokens[1:])), shape=counts.shape).tocsr()

    for sentence in sentences:
        chunk.append(np.asarray(sentence))
        size += len(sentence)
        if size > 10_000_000:
            counts = add()
            chunk, size = [np.array([eos])], 0
    return add()


def brown_classes(counts: csr_matrix, num_classes: int) -> NDArray[np.int64]:
    """Cluster the types that occur, by greedy merging.

    The most frequent types start as classes of their own; the others join in order of frequency,
    each as a new class, whereupon the pair of classes whose merging loses the least mutual
    information is merged; in the end pairs are merged until ``num_classes`` are left. The result
    is deterministic.

    Args:
        counts: bigram counts ``(vocabulary, vocabulary)``.
        num_classes: how many classes to make.

    Returns:
        the class of each type, ``(vocabulary,)``, numbered by falling frequency; types that do
        not occur are in class 0.

    Raises:
        ValueError: if fewer types than classes occur.
    """
    frequency = np.asarray(counts.sum(0)).ravel() + np.asarray(counts.sum(1)).ravel()
    order = np.argsort(-frequency, kind="stable")
    order = order[frequency[order] > 0]
    if len(order) < num_classes:
        raise ValueError(
            f"{num_classes} classes can't be made of the {len(order)} types that occur: "
            "ask for fewer codes"
        )
    by_column = counts.tocsc()
    total = counts.sum()
    classes = np.full(counts.shape[0], -1)
    joint: Counts = np.zeros((0, 0))
    for word in order:
        classes[word] = len(joint)
        joint = _grow(joint, counts[int(word)], by_column[:, int(word)], classes, int(word))
        if len(joint) > max(WINDOW, num_classes):
            joint = _merge_best(joint, classes, total)
    while len(joint) > num_classes:
        joint = _merge_best(joint, classes, total)
    return _by_frequency(classes, frequency, num_classes)


def mutual_information(joint: Counts) -> float:
    """``I(Z1, Z2)`` in nats of a table of class bigram counts ``(classes, classes)``."""
    joint = joint / joint.sum()
    return float(_information(joint, joint.sum(1)[:, None], joint.sum(0)[None]).sum())


def _information(joint: Counts, left: Counts, right: Counts) -> Counts:
    """``p(a, b) log(p(a, b) / (p(a) p(b)))``, 0 where ``p(a, b)`` is 0."""
    product = np.where(joint > 0, left * right, 1.0)
    return joint * np.log(np.where(joint > 0, joint, 1.0) / product) * (joint > 0)


def _grow(joint: Counts, row: csr_matrix, column, classes: NDArray, word: int) -> Counts:
    """Add the newest class, which is the one word, to the table of class bigrams."""
    new = classes[word]
    grown = np.zeros((new + 1, new + 1))
    grown[:new, :new] = joint
    for sparse, target in ((row, grown[new]), (column, grown[:, new])):
        others = sparse.indices
        known = classes[others] >= 0
        target += np.bincount(classes[others[known]], weights=sparse.data[known], minlength=new + 1)
    grown[new, new] /= 2  # counted as a row and as a column
    return grown


def _merge_best(joint: Counts, classes: NDArray, total: float) -> Counts:
    """Merge the pair that loses the least, in ``classes`` in place; return the smaller table."""
    keep, gone = _cheapest_pair(joint / total)
    classes[classes == gone] = keep
    classes[classes > gone] -= 1
    joint = joint.copy()
    joint[keep] += joint[gone]
    joint[:, keep] += joint[:, gone]
    return np.delete(np.delete(joint, gone, 0), gone, 1)


def _cheapest_pair(joint: Counts) -> tuple[int, int]:
    """The pair ``(i, j)``, ``i < j``, whose merging loses the least mutual information."""
    left, right = joint.sum(1), joint.sum(0)
    terms = _information(joint, left[:, None], right[None])
    own = terms.sum(1) + terms.sum(0) - np.diag(terms)
    before = own[:, None] + own[None] - terms - terms.T
    pair_left, pair_right = left[:, None] + left[None], right[:, None] + right[None]
    rows = _information(joint[:, None] + joint[None], pair_left[..., None], right[None, None])
    columns = _information(joint.T[:, None] + joint.T[None], pair_right[..., None], left)
    index = np.arange(len(joint))
    after = rows.sum(-1) + columns.sum(-1)
    for part in (rows, columns):  # what the pair itself contributes is counted once, merged
        own_part = part[index, :, index]
        after -= own_part + own_part.T
    diagonal = np.diag(joint)
    merged = diagonal[:, None] + diagonal[None] + joint + joint.T
    after += _information(merged, pair_left, pair_right)
    loss = before - after
    loss[np.tril_indices(len(joint))] = np.inf
    keep, gone = np.unravel_index(np.argmin(loss), loss.shape)
    return int(keep), int(gone)


def _by_frequency(classes: NDArray, frequency: NDArray, num_classes: int) -> NDArray[np.int64]:
    mass = np.bincount(
        classes[classes >= 0], weights=frequency[classes >= 0], minlength=num_classes
    )
    rank = np.empty(num_classes, dtype=np.int64)
    rank[np.argsort(-mass, kind="stable")] = np.arange(num_classes)
    return np.where(classes >= 0, rank[np.maximum(classes, 0)], 0)
