"""All that the readings say about every set of streams (SPEC section 5).

With h = shift*c, r = y - c'mean and v = c'S c, a reading adds h r / v to b and h h' / v to M. The log-likelihood of a
set with indicator z, against the empty set, is then b'z - z'M z / 2: exact, whatever was measured. Where shifts
are not known h = c, and b'x - x'M x / 2 is the log-likelihood of shifts x.
"""

from __future__ import annotations

import numpy as np

from eccaht.arrays import Array, Index, inner
from eccaht.covariance import Covariance
from eccaht.covariance.ridge import with_ridge
from eccaht.problem import Problem

_MATRIX = 2048  # up to this many streams M is kept as a matrix; beyond, as the measurements that make it
_LARGEST_MATRIX = 8192  # whole vectors have as many rows as streams: beyond this they are refused


class Evidence:
    """The statistics b and M, for K streams and one more place that stands for "nobody" (b = 0, M = 0).

    Sets are rows of stream numbers; an unused slot of a row holds K. For up to 2048 streams M is a matrix;
    beyond that it stays a product of the t weighted measurements, t x K, until those would be larger than the matrix.

    >>> problem = Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0)
    >>> evidence = Evidence(problem)
    >>> evidence.add(np.array([1.0, 0.0, 0.0]), 2.0)
    >>> evidence.log_likelihood(np.array([[0], [1], [3]]))
    array([2., 0., 0.])
    """

    def __init__(self, problem: Problem, *, keep_readings: bool = False) -> None:
        K = problem.size
        self._kept: list[Array] | None = [] if keep_readings else None  # (h, r) / sqrt(v) of every reading
        self.problem = problem
        self.n_readings = 0  # numbers read so far; a whole vector counts K
        self.linear = np.zeros(K + 1)  # b
        self.half_diagonal = np.zeros(K + 1)  # M_kk / 2
        self.misfit = 0.0  # sum of r^2 / v: twice the negative log-likelihood of the empty set
        self._matrix: Array | None = np.zeros((K + 1, K + 1)) if K <= _MATRIX else None
        self._couplings: Array | None = None  # M_ik - M_kk / 2, made when it is asked for
        self._rows = np.zeros((0, K + 1))  # h / sqrt(v), one a reading, where there is no matrix
        self._used = 0
        self._per_vector: Array | None = None
        self._scale = np.ones(K) if problem.unknown_shift else problem.shift  # h = scale * c

    def add(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Take one reading, of so many times the usual noise variance."""
        problem = self.problem
        K, scale = problem.size, (inflation * problem.noise_variance(c)) ** -0.5
        r = (y - inner(c, problem.mean)) * scale
        h = np.zeros(K + 1)
        np.multiply(c, self._scale, out=h[:K])
        h *= scale
        self.linear += h * r
        self.half_diagonal += 0.5 * h * h
        self.misfit += r * r
        self.n_readings += 1
        self._couplings = None
        if self._kept is not None:
            self._kept.append(np.append(h, r))
        if self._matrix is not None:
            self._matrix += np.outer(h, h)
        else:
            self._append(h)

    def add_vector(self, x: Array) -> None:
        """Take a complete reading of all streams: b += shift * S^-1 (x - mean), M += (shift shift') * S^-1."""
        problem = self.problem
        if self._kept is not None:
            raise ValueError("a policy that is robust against outlying readings takes no whole vectors")
        if self._per_vector is None:
            if problem.size > _LARGEST_MATRIX:
                raise ValueError(f"whole vectors are taken for up to {_LARGEST_MATRIX} streams, not {problem.size}")
            inverse = self._vector_covariance.solve(np.eye(problem.size))
            self._per_vector = 0.5 * (inverse + inverse.T) * np.outer(self._scale, self._scale)
        residual = x - problem.mean
        solved = self._vector_covariance.solve(residual)
        matrix, self._couplings = self._as_matrix(), None
        matrix[:-1, :-1] += self._per_vector
        self.linear[:-1] += self._scale * solved
        self.half_diagonal[:-1] += 0.5 * self._per_vector.diagonal()
        self.misfit += float(residual @ solved)
        self.n_readings += problem.size

    @property
    def _vector_covariance(self) -> Covariance:
        """Of a complete reading: each stream is read by an instrument with noise of its own."""
        return with_ridge(self.problem.covariance, self.problem.readout_noise**2)

    @property
    def has_matrix(self) -> bool:
        """Is M kept as a matrix?"""
        return self._matrix is not None

    def block(self, sets: Index) -> Array:
        """M on the streams of each row, (N, n, n)."""
        return self.entries(sets[:, :, None], sets[:, None, :])

    def entries(self, i: Index, j: Index) -> Array:
        """M_ij, broadcast."""
        if self._matrix is not None:
            return self._matrix[i, j]
        told = self._rows[: self._used]
        return np.asarray((told[:, i] * told[:, j]).sum(axis=0))

    def rows(self, streams: Index) -> Array:
        """M[streams], (N, K + 1)."""
        if self._matrix is not None:
            return self._matrix[streams]
        told = self._rows[: self._used]
        return told[:, streams].T @ told

    def log_likelihood(self, sets: Index) -> Array:
        """b'z - z'M z / 2 of every row."""
        if self._matrix is not None:
            pairs = self._matrix[sets[:, :, None], sets[:, None, :]]
            return self.linear[sets].sum(1) - 0.5 * pairs.sum((1, 2))
        predicted = self._rows[: self._used, sets].sum(2)
        return self.linear[sets].sum(1) - 0.5 * np.einsum("tn,tn->n", predicted, predicted)

    def coupling(self, streams: Index) -> Array:
        """M_ik - M_kk / 2 for each i of `streams` and all k, (N, K + 1).

        Added to the fields of a set that holds i, this is what k adds to the log-likelihood in the place of i.
        """
        if self._matrix is None:
            told = self._rows[: self._used]
            return told[:, streams].T @ told - self.half_diagonal
        if self._couplings is None:
            self._couplings = self._matrix - self.half_diagonal
        return self._couplings[streams]

    def fields(self, sets: Index) -> Array:
        """g = b - M z of every row, (N, K + 1): what one more stream would add, but for its own M_kk / 2."""
        if self._matrix is not None:
            g = self._matrix[sets[:, 0]]
            for slot in range(1, sets.shape[1]):
                g += self._matrix[sets[:, slot]]
            return np.subtract(self.linear, g, out=g)
        told = self._rows[: self._used]
        return self.linear - told[:, sets].sum(2).T @ told

    @property
    def readings(self) -> Array:
        """All readings, (t, K + 2): weights times shift, and what was read beyond the mean, in units of the noise."""
        return np.array(self._kept or []).reshape(-1, self.linear.size + 1)

    def state(self) -> dict[str, Array]:
        """What a file must keep."""
        kept = {"linear": self.linear, "half_diagonal": self.half_diagonal}
        if self._kept is not None:
            kept["readings"] = self.readings
        whole = self._matrix is not None
        kept["counts"] = np.array([float(self.n_readings), self.misfit, float(whole)])
        return kept | {"table": self._matrix if self._matrix is not None else self._rows[: self._used]}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a kept state."""
        self.linear[:], self.half_diagonal[:] = state["linear"], state["half_diagonal"]
        self._couplings = None
        if self._kept is not None:
            self._kept = list(state["readings"])
        self.n_readings, self.misfit = int(state["counts"][0]), float(state["counts"][1])
        table = state["table"].copy()
        if state["counts"][2]:
            if table.shape != (self.linear.size, self.linear.size):
                raise ValueError("its statistics are damaged")
            self._matrix = table
        else:
            self._matrix, self._rows, self._used = None, table, len(table)

    def _append(self, h: Array) -> None:
        if self._used + 1 >= self.problem.size:  # as many rows as streams: the matrix is the smaller of the two
            matrix = self._as_matrix()
            matrix += np.outer(h, h)
            return
        if self._used == len(self._rows):
            self._rows = np.vstack([self._rows, np.zeros((max(16, self._used), h.size))])
        self._rows[self._used] = h
        self._used += 1

    def _as_matrix(self) -> Array:
        if self._matrix is None:
            told = self._rows[: self._used]
            self._matrix = told.T @ told
            self._rows, self._used = self._rows[:0], 0
        return self._matrix
