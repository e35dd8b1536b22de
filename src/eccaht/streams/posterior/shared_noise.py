"""Readings of one moment: their noise is that of the streams at that moment, so it is correlated.

The rows of C read at once have noise covariance G = C S C' + r^2 I, r the instrument's own. With G = L L' the rows
of L^-1 C and the residuals L^-1 (y - C mean) are as good as independent readings of noise 1, so whatever takes those
takes these: b += H'G^-1 r and M += H'G^-1 H. A whole vector is C = I.
"""

import numpy as np
from scipy.linalg import solve_triangular

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance import Covariance, Dense
from eccaht.streams.covariance.base import with_ridge
from eccaht.streams.problem import Problem

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


def vector_noise(problem: Problem, there: Index) -> Covariance:
    """The covariance of one reading of these streams, each by an instrument with noise of its own."""
    covariance = with_ridge(problem.covariance, problem.readout_noise**2)
    return covariance if there.size == problem.size else Dense(covariance.dense()[np.ix_(there, there)])
