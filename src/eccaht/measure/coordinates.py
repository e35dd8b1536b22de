"""Measurements of single streams."""

from __future__ import annotations

import numpy as np

from eccaht.arrays import Array
from eccaht.problem import Problem


class Coordinates:
    """The best of +-e_k for a pair: whichever of the two has the larger shift per standard deviation.

    Any other stream says nothing about the pair (paper, Algorithm ECC-AHT-Restricted). The champion wins a tie.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._strength = problem.shift**2 / problem.covariance.diagonal()

    def __call__(self, i: int, j: int) -> Array:
        """Return the budget on one stream."""
        return single_stream(self._problem, i if self._strength[i] >= self._strength[j] else j)


def single_stream(problem: Problem, k: int) -> Array:
    """All weight on stream k.

    >>> single_stream(Problem(np.eye(3), shift=1.0, n_anomalies=1, budget=2.0), 1)
    array([0., 2., 0.])
    """
    c = np.zeros(problem.size)
    c[k] = problem.budget
    return c
