"""What to read next: what the changes that may have happened differ in, weighted by their probability.

With V the variances of the streams' shifts as they are known now and S the covariance of the noise, readings of C carry
log |C (S + V) C'| / |C S C'| / 2 nats. Weighted sums are the leading directions of S^-1 V; single streams, or rows of a
list, are taken one by one, each for what it adds to those before it. So a suspect is read together with the streams
whose noise is like its own.
"""

import numpy as np

from eccaht.base.arrays import Array, frozen
from eccaht.streams.measurements import Constraint, Rule
from eccaht.streams.problem import Problem

_STEPS = 12  # of the iteration for leading directions
_NEGLIGIBLE = 1e-6  # share of the largest entry of a contrast below which a stream is left out
_FIRST = 1e3  # how many times the largest variance makes a stream the first one
_DEPENDENT = 1e-6  # share of a reading's noise that those before it leave


class Choice:
    """Chooses `readings` measurements under the constraint of the problem."""

    def __init__(self, problem: Problem, readings: int) -> None:
        self._problem, self.readings = problem, readings
        self.rows = _listed(problem.measurements, problem.size)
        if self.rows is not None:
            if readings > len(self.rows):
                raise ValueError(f"readings={readings}: the constraint allows only {len(self.rows)} measurements")
            self._noise = np.array([problem.noise_variance(row) for row in self.rows])
        elif readings > problem.size:
            raise ValueError(f"readings={readings} of {problem.size} streams: leave readings out to read all")

    def __call__(self, variance: Array, first: int | None = None) -> Array:
        """Measurements, (m, K), for shifts of these variances; the first one for the stream `first`, if it is given."""
        return frozen(self._sums(variance, first) if self.rows is None else self._singles(variance, first))

    def _singles(self, variance: Array, first: int | None) -> Array:
        rows, problem = self.rows, self._problem
        assert rows is not None
        noise, both = self._noise.copy(), self._noise + rows**2 @ variance
        chosen: list[int] = []
        parts = np.zeros((2, self.readings, len(rows)))  # rows of the Cholesky factors, without and with the shifts
        for m in range(self.readings):
            gain = np.where(noise > _DEPENDENT * self._noise, both / np.maximum(noise, 1e-300), 0.0)
            if m == 0 and first is not None:
                gain = rows[:, first] ** 2 / self._noise
            gain[chosen] = -1.0
            k = int(gain.argmax())
            chosen.append(k)
            column = rows @ problem.covariance.matvec(rows[k])
            column[k] = self._noise[k]
            for part, left, added in ((parts[0], noise, 0.0), (parts[1], both, rows @ (variance * rows[k]))):
                part[m] = (column + added - part[:m, k] @ part[:m]) / np.sqrt(max(left[k], 1e-300))
                left -= part[m] ** 2
        return rows[chosen]

    def _sums(self, variance: Array, first: int | None) -> Array:
        """The leading directions of V^(1/2) S^-1 V^(1/2), by iteration from the streams of the largest variance."""
        problem, streams = self._problem, np.argsort(-variance, kind="stable")
        if first is not None:
            variance = variance.copy()
            variance[first] = _FIRST * variance.max()
        root = np.sqrt(variance)[:, None]
        basis = 0.1 * np.broadcast_to(root / np.linalg.norm(root), (problem.size, self.readings)).copy()
        basis[streams[: self.readings], np.arange(self.readings)] += 1.0
        for _ in range(_STEPS):
            basis = np.linalg.qr(root * problem.covariance.solve(root * basis))[0]
        rows: list[Array] = []
        # a constraint may make two of them one: then single streams take the place of the second
        for contrast in (*(root * basis).T, *(np.eye(1, problem.size, k)[0] for k in streams)):
            c = self._shown(contrast)
            if _adds(problem, rows, c):
                rows.append(c)
            if len(rows) == self.readings:
                break
        return np.array(rows)

    def _shown(self, contrast: Array) -> Array:
        problem = self._problem
        places = np.flatnonzero(np.abs(contrast) > _NEGLIGIBLE * np.abs(contrast).max())
        values = contrast[places]
        largest = max(float((np.abs(problem.shift) + problem.shift_spread).max()), problem.measurements.least_contrast)
        return problem.designing.contrast(problem.covariance, places, values * (largest / np.abs(values).max())).weights


def _adds(problem: Problem, rows: list[Array], c: Array) -> bool:
    """Is the noise of c more than what follows from that of these rows?"""
    if not rows:
        return True
    C = np.array([*rows, c])
    noise = C @ problem.covariance.matvec(np.ascontiguousarray(C.T))
    beside = noise[-1, :-1] @ np.linalg.solve(noise[:-1, :-1], noise[:-1, -1])
    return bool(noise[-1, -1] - beside > _DEPENDENT * noise[-1, -1])


def _listed(within: Constraint, size: int) -> Array | None:
    """All measurements, where they are listed or of one stream each."""
    if not isinstance(within, Rule):
        return None
    region = within.region(size)
    if region.rows is not None:
        return np.array(region.rows)
    if region.most > 1:
        return None
    rows = []
    for k in np.flatnonzero(region.usable).tolist():
        unit = np.eye(1, size, k)[0]
        rows.append(within.scaled(unit if region.high[k] > 0.0 else -unit))
    return np.array(rows)
