"""A bound on Gamma* that single swaps give, for any number of streams: looser than gamma_star, and far cheaper."""

from __future__ import annotations

import math

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance.spectrum import largest_eigenpair
from eccaht.streams.limits.rates import least_measurements
from eccaht.streams.problem import Problem

_ROUNDS = 60  # steps towards the best weights
_RIVALS, _CANDIDATES = 100, 1000  # streams outside a set that the bound looks at, and that these are chosen from


def fewest_measurements(problem: Problem, anomalies: Index, alpha: float = 0.05) -> float:
    """Return the mean number of measurements that any search needs to name this set and err in a share alpha at most.

    >>> round(fewest_measurements(Problem(np.eye(50), shift=0.5, n_anomalies=1, budget=5.0), np.array([3])), 2)
    20.78
    """
    return max(1.0, least_measurements(swap_rate(problem, anomalies), alpha))


def swap_rate(problem: Problem, anomalies: Index) -> float:
    """Return an upper bound of Gamma* for this set (paper, eq. 5; of a mix, so of one action, too).

    For any mix of measurements some single swap of the set gains at most lambda_max(sum of w d d') / 2
    nats a measurement, d = S^-1/2 (shift_i e_i - shift_j e_j), for any weights w of the swaps that sum to 1. The
    weights are improved by multiplicative steps, each of which gives a valid bound under any constraint on weights.
    Of many streams only those that are hardest to distinguish from the set get weight.
    """
    chosen = np.concatenate([anomalies, _hardest(problem, anomalies)])
    values, vectors = np.linalg.eigh(_gram(problem, chosen))
    white = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # column k: shift of the chosen k in white noise
    A, B = white[:, : anomalies.size], white[:, anomalies.size :]
    weights = np.full((A.shape[1], B.shape[1]), 1.0 / (A.shape[1] * B.shape[1]))
    least = math.inf
    for step in range(_ROUNDS):
        across = A @ weights @ B.T
        M = (A * weights.sum(axis=1)) @ A.T + (B * weights.sum(axis=0)) @ B.T - across - across.T
        value, vector = largest_eigenpair(M)
        least = min(least, value)
        gained = np.square((vector @ A)[:, None] - vector @ B)
        weights = weights * np.exp(-gained / (gained.max() * math.sqrt(1.0 + step)))
        weights /= weights.sum()
    return 0.5 * least


def _hardest(problem: Problem, anomalies: Index) -> Index:
    """The streams outside the set whose swap with a member shows least, at most _RIVALS."""
    outside = np.setdiff1d(np.arange(problem.size), anomalies)
    outside = outside[np.linspace(0, outside.size - 1, min(outside.size, _CANDIDATES)).round().astype(np.intp)]
    if outside.size <= _RIVALS:
        return outside
    G = _gram(problem, np.concatenate([anomalies, outside]))
    own, n = G.diagonal(), anomalies.size
    information = own[:n, None] + own[n:] - 2.0 * G[:n, n:]
    return outside[np.argsort(information.min(axis=0), kind="stable")[:_RIVALS]]


def _gram(problem: Problem, chosen: Index) -> Array:
    """Inner products of the chosen streams' shifts in white noise: shift_i shift_j (S^-1)_ij."""
    units = np.zeros((problem.size, chosen.size))
    units[chosen, range(chosen.size)] = problem.shift[chosen]
    G: Array = units.T @ problem.covariance.solve(units)
    return 0.5 * (G + G.T)
