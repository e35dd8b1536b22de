"""The mix of measurements that attains the information limit of a set: what to measure, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from eccaht.base.arrays import Array, Index
from eccaht.base.extras import one_thread
from eccaht.streams.limits.rates import check_anomalies, check_limits, mixed
from eccaht.streams.problem import Problem

_NEVER = 5e-4  # a measurement with a smaller share of the readings is left out


class MixtureDesign(NamedTuple):
    """Measurements, one a row and scaled to the budget, with their shares of the readings.

    rate: nats a reading between the set and its hardest rival.
    """

    rate: float
    shares: Array
    measurements: Array


def mixture_design(problem: Problem, anomalies: Sequence[int] | Index) -> MixtureDesign:
    """Return the best mix for a set: max over W psd, tr W = 1, of min over rivals d'W d / 2 (`gamma_star(mix=True)`).

    W = sum of p_m w_m w_m' over its eigenvectors: the measurement L'^-1 w_m, S = L L', gets the share p_m.

    >>> design = mixture_design(Problem(np.eye(4), shift=1.0, n_anomalies=2, budget=2.0), [0, 3])
    >>> round(design.rate, 3), design.measurements.round(3).tolist()
    (0.5, [[0.5, -0.5, -0.5, 0.5]])
    """
    check_limits(problem)
    truth = check_anomalies(problem, anomalies)
    with one_thread():
        bounds, W = mixed(problem, truth)
    shares, directions = np.linalg.eigh(W)
    kept = np.flatnonzero(shares > _NEVER)[::-1]
    root = cholesky(problem.covariance.dense(), lower=True)
    weights = solve_triangular(root, directions[:, kept], lower=True, trans=1)
    weights *= np.where(problem.shift[truth] @ weights[truth] < 0.0, -1.0, 1.0)  # the set reads high
    rows = (weights * (problem.budget / np.abs(weights).sum(axis=0))).T
    return MixtureDesign(bounds.found, shares[kept] / shares[kept].sum(), rows)
