"""Concave functions of the belief, between the nodes of a grid.

The value of a search is a concave function of the probabilities q of the sets, and homogeneous: V(t q) = t V(q). So it
is enough to know it where the largest q is 1, and probabilities need not be normalised. There each q lies between two
nodes (k/n)^3, which are dense where a set is nearly ruled out; the cells are cut into simplices (Kuhn), and V is
interpolated linearly from their corners. The interpolation of a concave function never exceeds it (Jensen).
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from eccaht.base.arrays import Array, Index


class BeliefGrid:
    """Nodes for M sets; those that an isometry of the problem takes into each other share one value.

    points: one node of each class, (N, M). start: the class of the belief that takes all sets for equally likely.
    """

    def __init__(self, intervals: int, isometries: Index) -> None:
        n, M = intervals, isometries.shape[1]
        self.n, self.isometries = n, isometries
        self._nodes = (np.arange(n + 1) / n) ** 3
        self._scale = 1.0 / np.diff(self._nodes)
        self._stride = (n + 1) ** np.arange(M)[::-1]
        places = np.indices((n + 1,) * M, dtype=np.int16).reshape(M, -1)
        (facet,) = np.nonzero(places.max(axis=0) == n)
        places = places[:, facet]
        first, turn = facet.copy(), np.zeros(facet.size, dtype=np.int16)
        for g, order in enumerate(isometries):
            turned = self._stride @ places[order].astype(np.int64)
            earlier = turned < first
            first[earlier], turn[earlier] = turned[earlier], g
        own = first == facet
        self._class = np.full((n + 1) ** M, -1, dtype=np.int32)
        self._class[facet[own]] = np.arange(int(own.sum()))
        self._class[facet] = self._class[first]
        self._turn = np.zeros((n + 1) ** M, dtype=np.int16)
        self._turn[facet] = turn
        self.points: Array = self._nodes[places[:, own].T.astype(np.intp)]
        self.start = int(self._class[-1])

    def corners(self, q: Array) -> tuple[Index, Array]:
        """The classes of the corners around each q, (..., M) to (..., M + 1), and their weights."""
        places, weights = self._corners(q)
        return self._class[places], weights

    def turned(self, q: Array, means: Array) -> Array:
        """What is known of each class, (N, M), at the corners around each q: (..., M + 1, M), in the order of q."""
        places, _ = self._corners(q)
        back = np.argsort(self.isometries, axis=1)[self._turn[places]]
        return np.take_along_axis(means[self._class[places]], back, axis=-1)

    def _corners(self, q: Array) -> tuple[Index, Array]:
        top = q.max(axis=-1, keepdims=True)
        ratio = q / np.maximum(top, 1e-300)
        below = np.minimum((self.n * np.cbrt(ratio)).astype(np.intp), self.n - 1)
        short = (self._nodes[below] - ratio) * self._scale[below]
        short = np.clip(short, -1.0, 0.0)  # rounding may choose the next interval
        order = np.argsort(short, axis=-1)
        places = np.empty((*q.shape[:-1], q.shape[-1] + 1), dtype=np.intp)
        places[..., 0], places[..., 1:] = below @ self._stride, self._stride[order]
        weights = np.diff(np.sort(short, axis=-1), axis=-1, prepend=-1.0, append=0.0)
        return places.cumsum(axis=-1), top * weights


def isometries_of(points: Array) -> Index:
    """All orders of the points, shape (M, d), that leave their distances as they are."""
    distance = ((points[:, None] - points) ** 2).sum(axis=-1)
    orders = np.array(list(permutations(range(len(points)))))
    moved = distance[orders[:, :, None], orders[:, None, :]]
    return np.asarray(orders[np.abs(moved - distance).max(axis=(1, 2)) <= 1e-9 * distance.max()])
