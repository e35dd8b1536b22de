"""The measurement that best separates two streams (paper, eq. 2 and Algorithm 1, line 12)."""

from __future__ import annotations

import numpy as np

from eccaht.arrays import Array, as_count, frozen
from eccaht.measurements import Design
from eccaht.problem import Problem

_OPPOSITE = np.array([1.0, -1.0])


def pair_design(problem: Problem, i: int, j: int) -> Design:
    """Return the measurement that separates "i is anomalous" from "j is anomalous" best.

    >>> problem = Problem([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], shift=1.0, n_anomalies=1, budget=4.0)
    >>> design = pair_design(problem, 0, 1)
    >>> design.weights, round(design.information, 6)
    (array([ 2., -2.,  0.]), 2.0)
    """
    i, j = (as_count(k, "stream", least=0) for k in (i, j))
    if max(i, j) >= problem.size or i == j:
        raise ValueError(f"a pair needs two different streams below {problem.size}, not {i} and {j}")
    _check_separable(problem, i, j)
    pair = np.array([i, j], dtype=np.intp)
    design = problem.measurements.contrast(problem.covariance, pair, problem.shift[pair] * _OPPOSITE)
    frozen(design.weights)
    return design


class PairDesign:
    """The pair design as a part of a policy: (i, j) -> weights."""

    def __init__(self, problem: Problem) -> None:
        check_weakest_pair(problem)
        self._problem = problem

    def __call__(self, i: int, j: int) -> Array:
        """Return the optimal weights."""
        problem, pair = self._problem, np.array([i, j], dtype=np.intp)
        return problem.measurements.recalled(problem.covariance, pair, problem.shift[pair] * _OPPOSITE).weights


def check_weakest_pair(problem: Problem) -> None:
    """Refuse a problem whose constraint cannot separate the two streams of smallest shift."""
    weakest = np.argpartition(np.abs(problem.shift), 1)[:2]
    _check_separable(problem, *sorted(weakest.tolist()))


def _check_separable(problem: Problem, i: int, j: int) -> None:
    problem.measurements.check_pair(problem.shift[[i, j]], (problem.label(i), problem.label(j)))
