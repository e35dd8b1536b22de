"""How fast any search can separate the anomalous set from its rivals (paper, eq. 5; docs/explanation/limits.md)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from eccaht.base.arrays import Array, Index, check_alpha
from eccaht.base.extras import one_thread
from eccaht.streams.limits.mixture import best_action, best_mix
from eccaht.streams.limits.rivals import hardest_rivals, signs
from eccaht.streams.problem import Problem
from eccaht.streams.sets import SetPrior

LARGEST = 512  # streams: the programs need dense matrices of that size
_FIRST = 800  # rivals that the first program looks at
_ROUNDS = 40
_TOLERANCE = 5e-4  # relative gap aimed at
_NEAR = 1.5  # rivals this much easier than the hardest stay in the program


@dataclass(frozen=True)
class Rate:
    """Nats per reading between the true set and its hardest rival: lower <= Gamma* <= upper, both proven.

    found: as lower, against all rivals that were looked at; above `lower` only if harder rivals were not ruled out.
    proven: whether they were, so that `lower` and `upper` differ by the solver's gap (and, for one action, by
    what measurements with anomalous streams on both sides of the others might add).
    budget_active: whether |c|_1 <= budget per unit of contrast lowered the rate of one action.
    """

    lower: float
    upper: float
    found: float
    proven: bool
    budget_active: bool = False


def gamma_star(problem: Problem, anomalies: Sequence[int] | Index, *, mix: bool = False, limited: bool = True) -> Rate:
    """Return the information limit for one true set.

    mix=True: max over W psd, tr W = 1, of min over rivals d'W d / 2, d = S^-1/2 (mu_A - mu_A'). No search is faster.
    mix=False: the same for one measurement repeated for ever, max over c of min over rivals
    (c'(mu_A - mu_A'))^2 / (2 c'S c) (paper, eq. 5); `lower` is the best with all anomalous streams on one side of the
    others (mixture.py), under |c|_1 <= budget per unit of contrast unless limited=False; 0 if the budget admits none.

    >>> rate = gamma_star(Problem(np.eye(6), shift=3.0, n_anomalies=2, budget=9.0), [0, 1], mix=True)
    >>> round(rate.lower, 3), round(rate.upper, 3), rate.proven
    (3.375, 3.375, True)
    """
    check_limits(problem)
    truth = check_anomalies(problem, anomalies)
    with one_thread():  # the matrices are too small to gain from several threads
        bounds, _ = mixed(problem, truth)
        if mix:
            return bounds
        action = best_action(problem, truth, limited=limited)
    return Rate(action.rate, max(bounds.upper, action.rate), action.rate, True, action.budget_active)


def least_measurements(rate: float, alpha: float) -> float:
    """Return kl(alpha, 1 - alpha) / rate, the lower bound on the expected number of measurements (paper, eq. 7).

    It holds for every search that is wrong with probability at most alpha < 1/2 for any true set, with any choice
    of measurements and of the time to stop, if `rate` is an upper bound of Gamma* for a mix (Kaufmann, Cappe & Garivier
    2016, lemma 1). kl(alpha, 1 - alpha) = (1 - 2 alpha) log((1 - alpha) / alpha), about log(1 / alpha) for small alpha.

    >>> round(least_measurements(1.0, 0.05), 3), round(math.log(1 / 0.05), 3)
    (2.65, 2.996)
    """
    check_alpha(alpha)
    return max(1.0 - 2.0 * alpha, 0.0) * math.log((1.0 - alpha) / alpha) / rate  # eq. 7


def mixed(problem: Problem, truth: Index) -> tuple[Rate, Array]:
    """Cutting planes: solve for some rivals, look for harder ones, add them. Also the W that attains `found`."""
    columns = white_shifts(problem)
    rivals = _singles(columns, truth, problem.size)
    lower, found, upper, W = 0.0, 0.0, math.inf, np.eye(problem.size) / problem.size
    for _ in range(_ROUNDS):
        differences = columns @ signs(rivals, truth, problem.size).T
        mix = best_mix(differences, 0.2 * _TOLERANCE)
        upper = min(upper, 0.5 * mix.upper)
        hardest = hardest_rivals(columns.T @ mix.W @ columns, truth, 0.5 * mix.lower * (1.0 - 1e-9))
        W = mix.W if hardest.found > found else W
        lower, found = max(lower, hardest.proven), max(found, hardest.found)
        if found >= upper * (1.0 - _TOLERANCE):
            break
        seen = np.einsum("ik,ik->k", differences, mix.W @ differences)
        near = rivals[(seen < _NEAR * mix.lower) | (mix.p > 1e-6)]
        rivals = np.concatenate([near, hardest.rivals[hardest.nats < upper]])
        rivals = SetPrior(problem.size, truth.size, truth.size).distinct(rivals)[0]
    return Rate(lower, upper, found, lower >= found * (1.0 - 1e-9)), W


def white_shifts(problem: Problem) -> Array:
    """L^-1 diag(shift), S = L L': column k is what an anomaly of stream k adds to the mean, in white noise."""
    return solve_triangular(cholesky(problem.covariance.dense(), lower=True), np.diag(problem.shift), lower=True)


def _singles(columns: Array, truth: Index, size: int) -> Index:
    """Single swaps as sets, the closest ones if there are many."""
    others = np.setdiff1d(np.arange(size), truth)
    rows = np.array([np.append(np.delete(truth, k), j) for k in range(truth.size) for j in others], dtype=np.intp)
    if len(rows) <= _FIRST:
        return rows
    distance = ((columns @ signs(rows, truth, size).T) ** 2).sum(axis=0)
    return rows[np.argpartition(distance, _FIRST)[:_FIRST]]


def check_limits(problem: Problem) -> None:
    """Refuse what the limits do not cover, by name."""
    check_streams(problem.size)
    problem.check_gaussian("limits")
    if problem.unknown_shift:
        raise ValueError("limits are computed for shifts of known size: give numbers instead of UnknownShift")
    if problem.readout_noise > 0.0:
        raise ValueError("limits do not cover readout_noise: leave it out; with it a search can only take longer")


def check_streams(size: int) -> None:
    if size > LARGEST:
        raise ValueError(f"limits are computed for up to {LARGEST} streams, not {size}: take a part of them")


def check_anomalies(problem: Problem, anomalies: Sequence[int] | Index) -> Index:
    """Return a true set in ascending order, or say what is wrong with it."""
    streams = np.unique(np.asarray(anomalies, dtype=np.intp))
    shown = ", ".join(str(k) for k in anomalies)
    if streams.size != len(anomalies) or streams.size != problem.known_number:
        raise ValueError(f"the true set must hold {problem.known_number} different streams, not {shown or 'none'}")
    if streams[0] < 0 or streams[-1] >= problem.size:
        raise ValueError(f"the true set {shown} names a stream outside 0 to {problem.size - 1}")
    return streams


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
