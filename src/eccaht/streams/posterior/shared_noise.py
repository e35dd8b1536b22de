"""Readings of one moment: their noise is that of the streams at that moment, so it is correlated.

The rows of C read at once have noise covariance G = C S C' + r^2 I, r the instrument's own. With G = L L' the rows
of L^-1 C and the residuals L^-1 (y - C mean) are as good as independent readings of noise 1, so whatever takes those
takes these: b += H'G^-1 r and M += H'G^-1 H. A whole vector is C = I; complete ones add a multiple of S^-1 to M, of
which only the columns that are asked for are worked out.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance import Covariance, Dense
from eccaht.streams.covariance.base import with_ridge
from eccaht.streams.problem import Problem

_COLUMNS = 128  # of S^-1 that are kept
_DEPENDENT = 1e-10  # share of a reading's noise variance that the others leave, below which it is one of them again


def whitened(problem: Problem, C: Array, y: Array) -> tuple[Array, Array]:
    """L^-1 C, (q, K), and L^-1 (y - C mean), (q,).

    >>> problem = Problem(np.array([[1.0, 0.6], [0.6, 1.0]]), shift=1.0, n_anomalies=1, budget=1.0)
    >>> rows, residuals = whitened(problem, np.eye(2), np.array([1.0, 1.0]))
    >>> residuals
    array([1. , 0.5])
    """
    noise = C @ problem.covariance.matvec(np.ascontiguousarray(C.T))
    noise = 0.5 * (noise + noise.T)
    noise[np.diag_indices_from(noise)] += problem.readout_noise**2
    deviations = np.sqrt(noise.diagonal())
    lower = _root(noise / np.outer(deviations, deviations))
    rows = solve_triangular(lower, C / deviations[:, None], lower=True)
    residuals = solve_triangular(lower, (y - C @ problem.mean) / deviations, lower=True)
    return rows, residuals


def _root(correlation: Array) -> Array:
    """The Cholesky factor, row by row, so that a row which follows from those before it is named."""
    lower = np.zeros_like(correlation)
    for k in range(len(correlation)):
        side = solve_triangular(lower[:k, :k], correlation[:k, k], lower=True) if k else np.empty(0)
        left = float(correlation[k, k] - side @ side)
        if not left > _DEPENDENT:
            raise ValueError(
                f"the noise of measurement {k} follows from that of the measurements before it, to all digits: "
                "leave it out, or tell readings of different moments one by one"
            )
        lower[k, :k], lower[k, k] = side, left**0.5
    return lower


def vector_noise(problem: Problem, there: Index, excess: Array | None = None) -> Covariance:
    """The covariance of one reading of these streams, each by an instrument with noise of its own.

    excess: (K, K), what it has beyond the usual one.
    """
    covariance = with_ridge(problem.covariance, problem.readout_noise**2)
    if excess is None and there.size == problem.size:
        return covariance
    chosen = np.ix_(there, there)
    usual = covariance.dense()[chosen]
    return Dense(usual if excess is None else usual + excess[chosen])


class WholeVectors:
    """count * (scale scale') * S^-1, by columns; the place of EMPTY is the last, all 0."""

    def __init__(self, covariance: Covariance, scale: Array) -> None:
        self._covariance, self._scale, self.count = covariance, scale, 0
        self._columns: dict[int, Array] = {}
        self._diagonal: Array | None = None

    @property
    def diagonal(self) -> Array:
        if self._diagonal is None:
            self._diagonal = np.append(self._scale**2 * self._covariance.inverse_diagonal(), 0.0)
        return self._diagonal

    def solve(self, residual: Array) -> Array:
        return self._covariance.solve(residual)

    def rows(self, streams: Index) -> Array:
        return np.array([self._row(k) for k in streams.tolist()]).reshape(-1, self._scale.size + 1) * self.count

    def entries(self, i: Index, j: Index) -> Array:
        i, j = np.broadcast_arrays(i, j)
        streams, place = np.unique(i, return_inverse=True)
        found = np.empty(i.shape)
        place = place.reshape(i.shape)
        for at, k in enumerate(streams.tolist()):
            here = place == at
            found[here] = self._row(k)[j[here]]
        return self.count * found

    def times(self, sets: Index) -> Array:
        """The product with the indicator of every row, (N, K + 1)."""
        K = self._scale.size
        product = np.zeros((len(sets), K + 1))
        for row, members in zip(product, sets, strict=True):
            held = members[members < K]
            if held.size:
                row[:K] = self.count * self._scale * self._covariance.solve_sparse(held, self._scale[held])
        return product

    def _row(self, k: int) -> Array:
        K = self._scale.size
        if k not in self._columns:
            row = np.zeros(K + 1)
            if k < K:
                row[:K] = self._scale * self._covariance.solve_sparse(np.array([k]), self._scale[[k]])
            while len(self._columns) >= _COLUMNS:
                del self._columns[next(iter(self._columns))]
            self._columns[k] = row
        return self._columns[k]
