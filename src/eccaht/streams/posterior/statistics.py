"""All that the readings say about every set of streams (docs/explanation/joint.md).

With h = shift*c, r = y - c'mean and v = c'S c, a reading adds h r / v to b and h h' / v to M. The log-likelihood of a
set with indicator z, against the empty set, is then b'z - z'M z / 2, exact for any measurements. Where shifts
are not known h = c, and b'x - x'M x / 2 is the log-likelihood of shifts x.
"""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array, Index, check_bounded, check_gram, check_same, whole_numbers
from eccaht.base.compiled import Loops
from eccaht.base.sums import LONGEST_SUM
from eccaht.streams.covariance import Covariance
from eccaht.streams.posterior.shared_noise import WholeVectors, vector_noise, whitened
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import ShiftPrior

_MATRIX = 2048  # up to this many streams M is kept as a matrix; beyond, as the measurements that make it
_LARGEST_MATRIX = 8192  # beyond this M is no matrix: whole vectors must be complete
_FEW = 3  # a table is made once this share of its rows was asked for
_STRIPE = 64  # rows added at once: what the processor's cache holds
_PATTERNS = 8  # patterns of missing streams that are cached

_LOOPS = Loops("eccaht.streams.posterior.loops")


class SufficientStatistics:
    """The statistics b and M, for K streams and one more place, that of an EMPTY slot (b = 0, M = 0).

    Sets are rows of stream numbers; an EMPTY slot of a row holds K. For up to 2048 streams M is a matrix;
    beyond that it stays a product of the t weighted measurements, t x K, until those would be larger than the matrix,
    and whole vectors stay a multiple of S^-1.

    >>> problem = Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0)
    >>> evidence = SufficientStatistics(problem)
    >>> evidence.add(np.array([1.0, 0.0, 0.0]), 2.0)
    >>> evidence.log_likelihood(np.array([[0], [1], [3]]))
    array([2., 0., 0.])
    """

    def __init__(self, problem: Problem, *, keep_readings: bool = False) -> None:
        K = problem.size
        self._kept: list[Array] | None = [] if keep_readings else None  # (h, r) / sqrt(v) of every reading
        self.problem = problem
        self.n_readings = 0  # numbers read so far; a whole vector counts K
        self.n_vectors = 0  # whole vectors among them
        self.linear = np.zeros(K + 1)  # b
        self.half_diagonal = np.zeros(K + 1)  # M_kk / 2
        self.misfit = 0.0  # sum of r^2 / v: twice the negative log-likelihood of the empty set
        self._matrix: Array | None = np.zeros((K + 1, K + 1)) if K <= _MATRIX else None
        self._couplings: Array | None = None  # M_ik - M_kk / 2, made when much of it is asked for
        self._asked = 0  # rows of it asked for since the last reading
        self._rows = np.zeros((0, K + 1))  # h / sqrt(v), one a reading, where there is no matrix
        self._used = 0
        self.vectors: dict[bytes, tuple[Covariance, Array]] = {}  # a cache, by the streams that are there
        self.newest: list[tuple[Array, float]] | None = None  # (h, r) / sqrt(v) of the last readings, if they were sums
        self._scale = np.ones(K) if problem.unknown_shift else problem.shift  # h = scale * c
        self._whole: WholeVectors | None = None  # whole vectors, where there is no matrix

    def add(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Take one reading; its noise variance is `inflation` times the usual one."""
        problem = self.problem
        K, scale = problem.size, (inflation * problem.noise_variance(c)) ** -0.5
        r = (y - problem.mean_reading(c)) * scale
        h = np.zeros(K + 1)
        np.multiply(c, self._scale, out=h[:K])
        h *= scale
        self._add(h, r)
        self.newest = [(h, float(r))]

    def add_together(self, C: Array, y: Array) -> None:
        """Take readings of one moment, one a row of C, whose noise has the covariance C S C'."""
        if self._kept is not None:
            raise ValueError("a policy that is robust against outlying readings takes none that share noise")
        rows, residuals = whitened(self.problem, C, y)
        scaled = [(np.append(row * self._scale, 0.0), r) for row, r in zip(rows, residuals.tolist(), strict=True)]
        for h, r in scaled:
            self._add(h, r)
        self.newest = scaled

    @property
    def robust(self) -> bool:
        """Is every reading kept, because one may be outlying?"""
        return self._kept is not None

    def _add(self, h: Array, r: float) -> None:
        """Take a reading in units of its noise."""
        self.linear += h * r  # the two terms of eq. 10
        self.half_diagonal += 0.5 * h * h
        self.misfit += r * r
        self.n_readings += 1
        self._couplings, self._asked = None, 0
        if self._kept is not None:
            self._kept.append(np.append(h, r))
        if self._matrix is not None:
            _add_outer(self._matrix, h)
        else:
            self._append(h)

    def add_vector(self, x: Array, excess: Array | None = None) -> None:
        """Take a reading of all streams, or of those that are not NaN.

        b += shift * S^-1 (x - mean), M += (shift shift') * S^-1, with S that of the streams that are there.
        excess: (K, K), what the covariance of this reading has beyond S.
        """
        problem = self.problem
        if self._kept is not None:
            raise ValueError("a policy that is robust against outlying readings takes no whole vectors")
        there = np.flatnonzero(~np.isnan(x))
        if problem.size > _LARGEST_MATRIX and excess is None and there.size == problem.size:
            self._add_complete(x - problem.mean)
            return
        if problem.size > _LARGEST_MATRIX:
            missing = "noisier than usual" if there.size == problem.size else "in which streams are missing"
            raise ValueError(f"vectors {missing} are taken for up to {_LARGEST_MATRIX} streams, not {problem.size}")
        covariance, information = self._of_vector(there, excess)
        residual = (x - problem.mean)[there]
        solved = covariance.solve(residual)
        matrix, self._couplings = self._as_matrix(), None
        matrix[np.ix_(there, there)] += information
        self.linear[there] += self._scale[there] * solved
        self.half_diagonal[there] += 0.5 * information.diagonal()
        self.misfit += float(residual @ solved)
        self.n_readings += there.size
        self.n_vectors += 1
        self.newest = None

    def _add_complete(self, residual: Array) -> None:
        """A vector of all of very many streams: M stays a multiple of S^-1."""
        whole = self._whole_vectors()
        solved = whole.solve(residual)
        self.half_diagonal += 0.5 * whole.diagonal
        self.linear[:-1] += self._scale * solved
        self.misfit += float(residual @ solved)
        whole.count += 1
        self.n_readings += residual.size
        self.n_vectors += 1
        self.newest = None

    def _whole_vectors(self) -> WholeVectors:
        if self._whole is None:
            self._whole = WholeVectors(vector_noise(self.problem, np.arange(self.problem.size)), self._scale)
        return self._whole

    def _of_vector(self, there: Index, excess: Array | None) -> tuple[Covariance, Array]:
        """Covariance of a reading of these streams, and what it adds to M; cached per pattern of missing streams."""
        key = there.tobytes()
        if excess is None and key in self.vectors:
            return self.vectors[key]
        covariance = vector_noise(self.problem, there, excess)
        inverse, scale = covariance.solve(np.eye(there.size)), self._scale[there]
        information = np.asarray(0.5 * (inverse + inverse.T) * np.outer(scale, scale))
        if excess is None:
            while len(self.vectors) >= _PATTERNS:
                del self.vectors[next(iter(self.vectors))]
            self.vectors[key] = covariance, information
        return covariance, information

    @property
    def _used_rows(self) -> Array:
        """h / sqrt(v) of every reading, where there is no matrix."""
        return self._rows[: self._used]

    @property
    def has_matrix(self) -> bool:
        return self._matrix is not None

    @property
    def matrix(self) -> Array | None:
        """M, (K + 1, K + 1), where it is kept as a matrix; to be read only."""
        return self._matrix

    def block(self, sets: Index) -> Array:
        """M on the streams of each row, (N, n, n)."""
        return self.entries(sets[:, :, None], sets[:, None, :])

    def entries(self, i: Index, j: Index) -> Array:
        """M_ij, broadcast."""
        if self._matrix is not None:
            return self._matrix[i, j]
        h = self._used_rows
        sums = np.asarray((h[:, i] * h[:, j]).sum(axis=0))
        return sums if self._whole is None else sums + self._whole.entries(i, j)

    def rows(self, streams: Index) -> Array:
        """M[streams], (N, K + 1)."""
        if self._matrix is not None:
            return self._matrix[streams]
        sums = self._used_rows[:, streams].T @ self._used_rows
        return sums if self._whole is None else sums + self._whole.rows(streams)

    def log_likelihood(self, sets: Index) -> Array:
        """b'z - z'M z / 2 of every row: L_t of the set against the empty one (eq. 10)."""
        if self._matrix is not None and sets.shape[1] ** 2 <= LONGEST_SUM and (loops := _LOOPS()) is not None:
            return np.asarray(loops.log_likelihoods(self._matrix, self.linear, sets))
        if self._matrix is not None or self._whole is not None:
            return self.linear[sets].sum(1) - 0.5 * self.block(sets).sum((1, 2))
        predicted = self._used_rows[:, sets].sum(2)
        return self.linear[sets].sum(1) - 0.5 * np.einsum("tn,tn->n", predicted, predicted)

    def coupling(self, streams: Index) -> Array:
        """M_ik - M_kk / 2 for each i of `streams` and all k, (N, K + 1).

        Added to the fields of a set that holds i, this is what k adds to the log-likelihood in the place of i.
        """
        if self._matrix is None:
            return self.rows(streams) - self.half_diagonal
        if self._couplings is None:
            self._asked += streams.size
            if _FEW * self._asked < self.linear.size:
                return self._matrix[streams] - self.half_diagonal
            self._couplings = self._matrix - self.half_diagonal
        return self._couplings[streams]

    def fields(self, sets: Index) -> Array:
        """g = b - M z of every row, (N, K + 1): what one more stream would add, but for its own M_kk / 2."""
        if self._matrix is not None:
            g = self._matrix[sets[:, 0]]
            for slot in range(1, sets.shape[1]):
                g += self._matrix[sets[:, slot]]
            return np.subtract(self.linear, g, out=g)
        fields = self.linear - self._used_rows[:, sets].sum(2).T @ self._used_rows
        return fields if self._whole is None else fields - self._whole.times(sets)

    def one_more(self, members: Index) -> Array:
        """What each stream adds to the log-likelihood of one set, (K + 1,); to the empty one its score (eq. 3)."""
        return np.asarray(self.fields(members[None])[0] - self.half_diagonal)

    @property
    def readings(self) -> Array:
        """All readings, (t, K + 2): weights times shift, and what was read beyond the mean, in units of the noise."""
        return np.array(self._kept or []).reshape(-1, self.linear.size + 1)

    def restricted(self, streams: Index) -> SufficientStatistics:
        """The statistics of sets of these streams alone, as those of a problem that has no others."""
        problem = self.problem
        shift = ShiftPrior(problem.shift[streams], problem.shift_spread[streams])
        few = Problem(np.eye(streams.size), shift=shift, n_anomalies=problem.n_anomalies, budget=1.0)
        inner, places = SufficientStatistics(few), np.append(streams, problem.size)
        inner._matrix = self.entries(places[:, None], places[None])
        inner.linear, inner.half_diagonal = self.linear[places], self.half_diagonal[places]
        inner.misfit, inner.n_readings, inner.n_vectors = self.misfit, self.n_readings, self.n_vectors
        return inner

    def state(self) -> dict[str, Array]:
        kept = {"linear": self.linear, "half_diagonal": self.half_diagonal}
        if self._kept is not None:
            kept["readings"] = self.readings
        whole = self._matrix is not None
        kept["counts"] = np.array([float(self.n_readings), self.misfit, float(whole), float(self.n_vectors)])
        return kept | {"table": self._used_rows if self._matrix is None else self._matrix}

    def restore(self, state: dict[str, Array]) -> None:
        self.linear[:], self.half_diagonal[:] = state["linear"], state["half_diagonal"]
        self._couplings = None
        n_readings, as_matrix, n_vectors = whole_numbers(state["counts"][[0, 2, 3]], "counts of readings")
        self.n_readings, self.n_vectors, self.misfit = int(n_readings), int(n_vectors), float(state["counts"][1])
        table = state["table"]
        if as_matrix == 1 and table.shape == (self.linear.size, self.linear.size):
            self._matrix = table
        elif as_matrix == 0 and self.problem.size > _MATRIX and len(table) < self.problem.size:
            self._matrix, self._rows, self._used = None, table, len(table)
            counted = self.n_readings == len(table) + self.n_vectors * self.problem.size
            if not counted or (self.n_vectors and self.problem.size <= _LARGEST_MATRIX):
                raise ValueError("its statistics are damaged")
            if self.n_vectors:
                self._whole_vectors().count = self.n_vectors
        else:
            raise ValueError("its statistics are damaged")
        self._check_restored(state.get("readings"))

    def _check_restored(self, readings: Array | None) -> None:
        """Check that the statistics are consistent, and equal to those of the kept readings where there are any."""
        table = self._rows if self._matrix is None else self._matrix
        for values in (self.linear, self.half_diagonal, np.array([self.misfit]), table):
            check_bounded(values, "statistics")
        if self.linear[-1] or table[:, -1].any() or self.misfit < 0:
            raise ValueError("its statistics are damaged")
        if not self.n_readings and (self.misfit or self.linear.any() or table.any()):
            raise ValueError("its statistics moved without a reading")
        squares = (table**2).sum(axis=0) if self._matrix is None else table.diagonal()
        if self._whole is not None:
            squares = squares + self._whole.count * self._whole.diagonal
        check_same(0.5 * squares, self.half_diagonal, "statistics")
        if (np.abs(self.linear) > (1.0 + 1e-6) * np.sqrt(squares * self.misfit)).any():  # the Cauchy-Schwarz inequality
            raise ValueError("its statistics do not agree with each other")
        if self._matrix is None:
            return
        K = self.problem.size
        whole = np.empty((K + 1, K + 1))  # r in the place of EMPTY
        whole[:K, :K], whole[K, K] = table[:K, :K], self.misfit
        whole[K, :K] = whole[:K, K] = self.linear[:K]
        check_gram(whole, "statistics")
        if self._kept is not None:
            self._kept = _checked_readings(readings, self.n_readings, whole)

    def _append(self, h: Array) -> None:
        if self._used + 1 >= self.problem.size and self._whole is None:  # from here on the matrix is the smaller
            _add_outer(self._as_matrix(), h)
            return
        if self._used == len(self._rows):
            self._rows = np.vstack([self._rows, np.zeros((max(16, self._used), h.size))])
        self._rows[self._used] = h
        self._used += 1

    def _as_matrix(self) -> Array:
        if self._matrix is None:
            self._matrix = self._used_rows.T @ self._used_rows
            self._rows, self._used = self._rows[:0], 0
        return self._matrix


def _add_outer(matrix: Array, h: Array) -> None:
    for start in range(0, h.size, _STRIPE):
        matrix[start : start + _STRIPE] += h[start : start + _STRIPE, None] * h


def _checked_readings(readings: Array | None, count: int, inner: Array) -> list[Array]:
    """Kept readings (h, 0, r) / sqrt(v), if the statistics are their inner products."""
    if readings is None or len(readings) != count or readings[:, -2].any():
        raise ValueError("its readings are damaged")
    check_bounded(readings, "readings")
    held = np.delete(readings, -2, axis=1)
    check_same(held.T @ held, inner, "readings and statistics")
    return list(readings)
