"""Brown clustering: classes of words that keep the most mutual information of a bigram.

Brown et al. (1992), "Class-Based n-gram Models of Natural Language"; equation 5 of the
SQ-Transformer paper. The structure-oriented vector quantization of that paper maximises a
variational bound of the same quantity by gradient descent.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.special import xlogy

from compgen_fairseq.progress import progress

#: How many classes are kept apart while words are added one by one (or the number of classes
#: asked for, where that is more). A vocabulary no larger than this is clustered exactly.
WINDOW = 48

CHUNK = 10_000_000  # tokens counted at once

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
        if size > CHUNK:
            counts = add()
            chunk, size = [np.array([eos])], 0
    return add()


def brown_classes(counts: csr_matrix, num_classes: int) -> NDArray[np.int64]:
    """Cluster the types that occur, by greedy merging.

    The most frequent types start as classes of their own; the others join in order of frequency,
    each as a new class, whereupon the pair of classes whose merging loses the least mutual
    information is merged; in the end pairs are merged until ``num_classes`` are left. The result
    is deterministic. A type costs the square of the number of classes.

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
    classes = np.full(counts.shape[0], -1)
    table = _Merges(max(WINDOW, num_classes) + 1)
    for word in progress(order, "Brown classes", len(order), " types"):
        classes[word] = table.size
        lines = counts[int(word)], by_column[:, int(word)]
        table.add(*(_beside(line, classes, table.size + 1) for line in lines))
        if table.size > max(WINDOW, num_classes):
            table.merge_best(classes)
    while table.size > num_classes:
        table.merge_best(classes)
    known = np.maximum(classes, 0)  # what does not occur adds nothing
    mass = np.bincount(known, weights=frequency, minlength=num_classes)
    rank = np.argsort(np.argsort(-mass, kind="stable"))
    return np.where(classes >= 0, rank[known], 0)


def _xlogx(x: Counts) -> Counts:
    return xlogy(x, x)


def _saved(x: Counts, y: Counts) -> Counts:
    """``x log x + y log y - (x + y) log(x + y)``, which is 0 where ``x`` or ``y`` is."""
    return _xlogx(x) + _xlogx(y) - _xlogx(x + y)


def _beside(line: csr_matrix, classes: NDArray, size: int) -> NDArray:
    """How often the newest class, one word, stands before, or behind, each class and itself."""
    of = classes[line.indices]
    return np.bincount(of[of >= 0], weights=line.data[of >= 0], minlength=size)


class _Merges:
    """A table of class bigram counts, and what each merging of two of its classes would lose.

    The mutual information of counts ``n(a, b)`` is, but for a constant and the total,
    ``sum n(a, b) log n(a, b) - sum n(a) log n(a) - sum n(b) log n(b)``. So a merging's loss is a
    sum of :func:`_saved`, over the columns for two rows merged and over the rows for two columns.
    These two sums are kept for all pairs of classes: an added or merged class changes one term of
    each, so a step costs the square of the number of classes.

    Args:
        most: the number of classes there can be at a time.
    """

    def __init__(self, most: int):
        self.size = 0
        self._joint, self._rows, self._columns = (np.zeros((most, most)) for _ in range(3))

    def add(self, before: Counts, behind: Counts) -> None:
        """Add a class that stands so often before, and behind, each class, itself the last."""
        n = self.size
        self.size += 1
        self._joint[n, : n + 1], self._joint[: n + 1, n] = before, behind
        self._update(n, 1)
        self._renew(n)

    def merge_best(self, classes: NDArray) -> None:
        """Merge the pair that loses the least, in ``classes`` in place, too."""
        keep, gone = self._cheapest_pair()
        classes[classes == gone] = keep
        classes[classes > gone] -= 1
        self._update(keep, -1)
        self._update(gone, -1)
        n, joint = self.size, self._joint
        joint[keep] += joint[gone]
        joint[:, keep] += joint[:, gone]
        for table in (joint, self._rows, self._columns):
            table[gone : n - 1] = table[gone + 1 : n]
            table[:, gone : n - 1] = table[:, gone + 1 : n]
            table[n - 1], table[:, n - 1] = 0, 0
        self.size -= 1
        self._update(keep, 1)
        self._renew(keep)

    def _update(self, k: int, sign: int) -> None:
        """Add or subtract the terms of class ``k`` as a column of rows and as a row of columns."""
        n = self.size
        for sums, terms in ((self._rows, self._joint[:n, k]), (self._columns, self._joint[k, :n])):
            found = terms.nonzero()[0]
            values = terms[found]
            sums[np.ix_(found, found)] += sign * _saved(values[:, None], values[None])

    def _renew(self, k: int) -> None:
        """Sum all terms of the pairs of class ``k``."""
        n = self.size
        joint = self._joint[:n, :n]
        for sums, table in ((self._rows, joint), (self._columns, joint.T)):
            found = table[k].nonzero()[0]
            sums[k, :n] = sums[:n, k] = _saved(table[:, found], table[k, found]).sum(1)

    def _cheapest_pair(self) -> tuple[int, int]:
        """The pair ``(i, j)``, ``i < j``, whose merging loses the least mutual information."""
        n = self.size
        joint = self._joint[:n, :n]
        left, right, own = joint.sum(1), joint.sum(0), np.diag(joint)
        logs, own_logs = _xlogx(joint), _xlogx(own)
        loss = self._rows[:n, :n] + self._columns[:n, :n]
        # the four counts of the pair itself become one, so their terms are others
        beside = own_logs[:, None] + logs.T - _xlogx(own[:, None] + joint.T)
        above = own_logs[:, None] + logs - _xlogx(own[:, None] + joint)
        loss -= beside + beside.T + above + above.T
        four = own_logs[:, None] + own_logs[None] + logs + logs.T
        loss += four - _xlogx(own[:, None] + own[None] + joint + joint.T)
        for margin in (left, right):
            loss -= _saved(margin[:, None], margin[None])
        # equal losses differ by rounding: the first pair of classes shall win everywhere
        loss = np.round(loss, 6)
        loss[np.tril_indices(n)] = np.inf
        keep, gone = np.unravel_index(np.argmin(loss), loss.shape)
        return int(keep), int(gone)
