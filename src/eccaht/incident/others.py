"""What sensors say about each other once some of them are set free: the algebra behind two of the three views.

Setting a sensor free is one step of elimination on Q = R^-1: what remains is the precision of the others among
themselves. A sensor that is silent in a window is free in it from the beginning, so that it bears no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array

_LEAST = 1e-12  # of a precision: below it a sensor is free already


@dataclass(frozen=True, eq=False)
class Free:
    """Windows of scores, any course set free.

    G: Q z, (L, K). Q: by pattern of silent sensors, (P, K, K). which: the pattern of each window, (L,).
    q: the distance z' Q z of each window, (L,).
    """

    G: Array
    Q: Array
    which: NDArray[np.intp]
    q: Array

    @staticmethod
    def of(scores: Array, precision: Array) -> Free:
        """No sensor is set free but those that are silent, NaN."""
        silent = np.isnan(scores)
        if not silent.any():
            G = scores @ precision
            return Free(G, precision[None], np.zeros(len(scores), dtype=np.intp), _distances(G, scores))
        patterns, which = np.unique(silent, axis=0, return_inverse=True)
        which = which.ravel()
        Q = np.stack([eliminated(precision, np.flatnonzero(pattern)) for pattern in patterns])
        known = np.where(silent, 0.0, scores)
        G = np.empty_like(known)
        for number in range(len(patterns)):
            G[which == number] = known[which == number] @ Q[number]
        return Free(G, Q, which, _distances(G, known))

    def by_window(self, by_pattern: Array) -> Array:
        """What holds for each pattern, (P, K), window by window: (L, K), or (1, K) where all are alike."""
        return by_pattern if len(by_pattern) == 1 else by_pattern[self.which]

    @property
    def own(self) -> Array:
        """The diagonal of Q, (P, K)."""
        return np.maximum(np.einsum("pkk->pk", self.Q), _LEAST)

    @property
    def left(self) -> Array:
        """How many sensors are not free, by window: (L,)."""
        return np.asarray((np.einsum("pkk->pk", self.Q) >= _LEAST).sum(axis=1)[self.which], dtype=np.float64)

    @property
    def total(self) -> Array:
        """The sum of Q over the windows, (K, K)."""
        return np.asarray(np.tensordot(np.bincount(self.which, minlength=len(self.Q)), self.Q, axes=1))

    def without(self, chosen: Sequence[int]) -> Free:
        """These sensors are set free too."""
        if len(chosen) == 1:
            return self._without_one(chosen[0])
        A = list(chosen)
        G, Q, q = np.empty_like(self.G), np.empty_like(self.Q), np.empty_like(self.q)
        for number, precision in enumerate(self.Q):
            rows = self.which == number
            inner, moved = precision[np.ix_(A, A)], self.G[np.ix_(rows, A)]
            inner[np.diag_indices(len(A))] += inner.diagonal() < _LEAST  # sensors that are free already stay so
            solved = np.linalg.solve(inner, np.hstack([precision[A], moved.T]))
            shares, pull = solved[:, : len(precision)], solved[:, len(precision) :]
            G[rows] = self.G[rows] - moved @ shares
            Q[number] = precision - precision[:, A] @ shares
            q[rows] = np.maximum(self.q[rows] - np.einsum("ta,at->t", moved, pull), 0.0)
        return Free(G, Q, self.which, q)

    def _without_one(self, k: int) -> Free:
        """The same for one sensor, which searches need most: without a system to solve."""
        pivot = self.Q[:, k, k]
        pivot = np.where(pivot < _LEAST, np.inf, pivot)
        shares = self.Q[:, k] / pivot[:, None]
        column = self.G[:, k]
        explained = column * column / (pivot if len(pivot) == 1 else pivot[self.which])
        return Free(
            self.G - column[:, None] * self.by_window(shares),
            self.Q - self.Q[:, :, k, None] * shares[:, None, :],
            self.which,
            np.maximum(self.q - explained, 0.0),
        )


@dataclass(frozen=True, eq=False)
class Shifts:
    """One shift in all windows, N(0, spread^2): b, (K,), and M, (K, K), of section 5, given those of some sensors."""

    b: Array
    M: Array
    spread: float

    def without(self, chosen: Sequence[int]) -> Shifts:
        """These sensors have shifts of their own."""
        if len(chosen) == 1:
            k = chosen[0]
            share = self.M[k] / (self.M[k, k] + self.spread**-2)
            return Shifts(self.b - self.b[k] * share, self.M - self.M[:, k, None] * share, self.spread)
        A = list(chosen)
        share = np.linalg.solve(self.M[np.ix_(A, A)] + np.eye(len(A)) / self.spread**2, self.M[A])
        return Shifts(self.b - self.b[A] @ share, self.M - self.M[:, A] @ share, self.spread)

    def gains(self) -> Array:
        """The log ratio of marginal likelihoods for a shift of each further sensor, as `b`: (K,), or (n, K)."""
        own = np.maximum(self.M.diagonal(), 0.0)
        return np.asarray(0.5 * self.b**2 / (own + self.spread**-2) - 0.5 * np.log1p(self.spread**2 * own))


def worth_of_sums(total: Array, inflation: Array) -> tuple[Array, Array]:
    """What sums of g are worth if windows have memory: W and M, (K, K) each.

    A shift d moves the sum of g by T d, T the sum of Q over the windows. Memory makes the covariance of that sum
    C = r T r, r the root of the inflation, instead of T: b = W sum(g) with W = T C^-1, and M = W T, so that M d is what
    a shift adds to b, and M the covariance of b where nothing is wrong.
    """
    if (inflation == 1.0).all():
        return np.eye(len(total)), total
    root = np.sqrt(inflation)
    C = total * np.outer(root, root)
    C[np.diag_indices(len(C))] += C.diagonal() < _LEAST  # sensors that are silent throughout
    W = np.linalg.solve(C, total).T  # T and C are symmetric
    return W, W @ total


def _distances(G: Array, scores: Array) -> Array:
    return np.maximum(np.einsum("tk,tk->t", G, scores), 0.0)


def eliminated(precision: Array, gone: NDArray[np.intp]) -> Array:
    """The precision of the sensors that are left, 0 for those that are gone."""
    if not gone.size:
        return precision
    left = precision - precision[:, gone] @ np.linalg.solve(precision[np.ix_(gone, gone)], precision[gone])
    left[gone], left[:, gone] = 0.0, 0.0
    return left
