"""All that the readings say about every set of streams (docs/explanation/joint.md).

With h = shift*c, r = y - c'mean and v = c'S c, a reading adds h r / v to b and h h' / v to M. The log-likelihood of a
set with indicator z, against the empty set, is then b'z - z'M z / 2, exact for any measurements. Where shifts
are not known h = c, and b'x - x'M x / 2 is the log-likelihood of shifts x.

Where the mean was estimated from m vectors it is off by N(0, S / m), in all readings alike. With q = S c / m, in units
of the shift, a reading then says what an independent one with h = shift*c - M q, r - q'b in the place of r and noise
v + q'h says: the earlier readings know the error by what they left unexplained (docs/explanation/confidence.md).
"""

import numpy as np
from scipy.linalg import solve_triangular

from eccaht.base.arrays import Array, Index, check_gram, check_same
from eccaht.base.codec import Field, Sizes
from eccaht.base.compiled import LONGEST_SUM, Loops
from eccaht.streams.covariance import Covariance
from eccaht.streams.posterior.shared_noise import vector_noise, whitened
from eccaht.streams.problem import Problem

_MATRIX = 2048  # up to this many streams M is kept as a matrix; beyond, as the measurements that make it
_LARGEST_MATRIX = 8192  # beyond this M is no matrix, and whole vectors are not taken
_FEW = 3  # a table is made once this share of its rows was asked for
_STRIPE = 64  # rows added at once: what the processor's cache holds
_PATTERNS = 8  # patterns of missing streams that are cached

_LOOPS = Loops("eccaht.streams.posterior.loops")


class SufficientStatistics:
    """The statistics b and M, for K streams and one more place, that of an EMPTY slot (b = 0, M = 0).

    Sets are rows of stream numbers; an EMPTY slot of a row holds K. For up to 2048 streams M is a matrix;
    beyond that it stays a product of the t weighted measurements, t x K, until those would be larger than the matrix
    or a whole vector comes.

    >>> problem = Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0)
    >>> evidence = SufficientStatistics(problem)
    >>> evidence.add(np.array([1.0, 0.0, 0.0]), 2.0)
    >>> evidence.log_likelihood(np.array([[0], [1], [3]]))
    array([2., 0., 0.])
    """

    FIELDS = (
        Field("linear", ("K+1",)),
        Field("half_diagonal", ("K+1",)),
        Field("misfit", low=0.0),
        Field("n_readings", (), int),
        Field("n_vectors", (), int),
        Field("_matrix", ("K+1", "K+1"), optional=True),
        Field("_used_rows", ("m", "K+1")),
        Field("readings", ("kept", "K+2")),
    )

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

    def add(self, c: Array, y: float) -> None:
        """Take one reading."""
        problem = self.problem
        K, variance, r = problem.size, problem.noise_variance(c), y - problem.mean_reading(c)
        h = np.zeros(K + 1)
        np.multiply(c, self._scale, out=h[:K])
        if problem.estimated_from is not None:
            q = self._shared(c[None])
            h -= self._times(q)[0]
            r -= float(q[0] @ self.linear)
            variance += float(q[0] @ h)
        scale = variance**-0.5
        r *= scale
        h *= scale
        self._add(h, r)
        self.newest = [(h, float(r))]

    def add_together(self, C: Array, y: Array) -> None:
        """Take readings of one moment, one a row of C, whose noise has the covariance C S C'."""
        if self._kept is not None:
            raise ValueError("a policy that is robust against outlying readings takes none that share noise")
        self.add_whitened(*whitened(self.problem, C, y))

    def add_whitened(self, rows: Array, residuals: Array) -> None:
        """Take independent readings beyond the mean of noise 1, one a row of weights."""
        scaled = list(zip(*self._known_mean(rows, residuals), strict=True))
        for h, r in scaled:
            self._add(h, r)
        self.newest = scaled

    def _known_mean(self, rows: Array, residuals: Array) -> tuple[Array, list[float]]:
        """Independent readings as h and r of independent ones for a mean that is known, (q, K + 1) and (q,)."""
        h = np.zeros((len(rows), self.linear.size))
        np.multiply(rows, self._scale, out=h[:, :-1])
        if self.problem.estimated_from is None or not len(rows):
            return h, residuals.tolist()
        q = self._shared(rows)
        h -= self._times(q)
        lower = np.linalg.cholesky(np.eye(len(rows)) + q @ h.T)
        beyond = np.column_stack([h, residuals - q @ self.linear])
        whole = np.asarray(solve_triangular(lower, beyond, lower=True))
        return np.ascontiguousarray(whole[:, :-1]), whole[:, -1].tolist()

    def _shared(self, rows: Array) -> Array:
        """S c / m of every row c, in units of the shift, (q, K + 1): what all readings share with it."""
        problem = self.problem
        assert problem.estimated_from is not None
        q = np.zeros((len(rows), self.linear.size))
        shared = problem.covariance.matvec(np.ascontiguousarray(rows.T)).T
        q[:, :-1] = shared / (problem.estimated_from * self._scale)
        return q

    def _times(self, q: Array) -> Array:
        """M q of every row q."""
        return np.asarray(q @ self._matrix if self._matrix is not None else (q @ self._used_rows.T) @ self._used_rows)

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

    def add_vector(self, x: Array) -> None:
        """Take a reading of all streams, or of those that are not NaN.

        b += shift * S^-1 (x - mean), M += (shift shift') * S^-1, with S that of the streams that are there.
        """
        problem = self.problem
        if self._kept is not None:
            raise ValueError("a policy that is robust against outlying readings takes no whole vectors")
        if problem.size > _LARGEST_MATRIX:
            raise ValueError(f"whole vectors are taken for up to {_LARGEST_MATRIX} streams, not {problem.size}")
        there = np.flatnonzero(~np.isnan(x))
        if problem.estimated_from is not None:
            self._as_matrix()
            C = np.eye(problem.size)[there]
            self.add_whitened(*whitened(problem, C, x[there]))
            self.n_vectors, self.newest = self.n_vectors + 1, None
            return
        covariance, information = self._of_vector(there)
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

    def _of_vector(self, there: Index) -> tuple[Covariance, Array]:
        """Covariance of a reading of these streams, and what it adds to M; cached per pattern of missing streams."""
        key = there.tobytes()
        if key in self.vectors:
            return self.vectors[key]
        covariance = vector_noise(self.problem, there)
        inverse, scale = covariance.solve(np.eye(there.size)), self._scale[there]
        information = np.asarray(0.5 * (inverse + inverse.T) * np.outer(scale, scale))
        while len(self.vectors) >= _PATTERNS:
            del self.vectors[next(iter(self.vectors))]
        self.vectors[key] = covariance, information
        return covariance, information

    @property
    def _used_rows(self) -> Array:
        """h / sqrt(v) of every reading, where there is no matrix."""
        return self._rows[: self._used]

    @_used_rows.setter
    def _used_rows(self, rows: Array) -> None:
        self._rows, self._used = rows, len(rows)

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
        return np.asarray((h[:, i] * h[:, j]).sum(axis=0))

    def rows(self, streams: Index) -> Array:
        """M[streams], (N, K + 1)."""
        if self._matrix is not None:
            return self._matrix[streams]
        return np.asarray(self._used_rows[:, streams].T @ self._used_rows)

    def log_likelihood(self, sets: Index) -> Array:
        """b'z - z'M z / 2 of every row: L_t of the set against the empty one (eq. 10)."""
        if self._matrix is not None and sets.shape[1] ** 2 <= LONGEST_SUM and (loops := _LOOPS()) is not None:
            return np.asarray(loops.log_likelihoods(self._matrix, self.linear, sets))
        if self._matrix is not None:
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
        return np.asarray(self.linear - self._used_rows[:, sets].sum(2).T @ self._used_rows)

    def one_more(self, members: Index) -> Array:
        """What each stream adds to the log-likelihood of one set, (K + 1,); to the empty one its score (eq. 3)."""
        return np.asarray(self.fields(members[None])[0] - self.half_diagonal)

    @property
    def readings(self) -> Array:
        """All readings, (t, K + 2): weights times shift, and what was read beyond the mean, in units of the noise."""
        return np.array(self._kept or []).reshape(-1, self.linear.size + 1)

    @readings.setter
    def readings(self, rows: Array) -> None:
        self._kept = list(rows) if self.robust else None

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        """Check that the statistics agree with each other, and with the kept readings where there are any."""
        K = self.problem.size
        table = self._used_rows if self._matrix is None else self._matrix
        if self._matrix is None and not (K > _MATRIX and self.n_readings == self._used < K and not self.n_vectors):
            raise ValueError("its statistics are damaged: they lack the matrix")
        if self._matrix is not None and self._used:
            raise ValueError("its statistics are damaged: they are kept twice")
        if self.linear[-1] or table[:, -1].any():
            raise ValueError("its statistics are damaged: an EMPTY slot has some")
        if not self.n_readings and (self.misfit or self.linear.any() or table.any()):
            raise ValueError("its statistics moved without a reading")
        squares = (table**2).sum(axis=0) if self._matrix is None else table.diagonal()
        check_same(0.5 * squares, self.half_diagonal, "statistics")
        if (np.abs(self.linear) > (1.0 + 1e-6) * np.sqrt(squares * self.misfit)).any():  # the Cauchy-Schwarz inequality
            raise ValueError("its statistics do not agree with each other")
        if self._matrix is None:
            return
        whole = np.empty((K + 1, K + 1))  # r in the place of EMPTY
        whole[:K, :K], whole[K, K] = table[:K, :K], self.misfit
        whole[K, :K] = whole[:K, K] = self.linear[:K]
        check_gram(whole, "statistics")
        if self._kept is not None:  # (h, 0, r) / sqrt(v), of which the statistics are the inner products
            readings = self.readings
            if len(readings) != self.n_readings or readings[:, -2].any():
                raise ValueError("its readings are damaged")
            held = np.delete(readings, -2, axis=1)
            check_same(held.T @ held, whole, "readings and statistics")

    def _append(self, h: Array) -> None:
        if self._used + 1 >= self.problem.size:  # from here on the matrix is the smaller
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
