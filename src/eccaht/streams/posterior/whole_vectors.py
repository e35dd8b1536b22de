"""What complete readings of very many streams add to M, count * (scale scale') * S^-1, without a K x K matrix.

A few columns of S^-1 are worked out when they are asked for and the latest are kept: memory is linear in K.
"""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance import Covariance

_COLUMNS = 128  # of S^-1 that are kept


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
