"""The pair measured without looking at the noise."""

from __future__ import annotations

import numpy as np

from eccaht.arrays import Array
from eccaht.problem import Problem


class Difference:
    """c proportional to D = shift_i e_i - shift_j e_j: the No-QP ablation of the paper (section 5.2).

    >>> Difference(Problem(np.eye(3), shift=[1.0, 3.0, 1.0], n_anomalies=1, budget=2.0))(0, 1)
    array([ 0.5, -1.5,  0. ])
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __call__(self, i: int, j: int) -> Array:
        """Return the difference, scaled to the budget."""
        problem = self._problem
        a, b = float(problem.shift[i]), -float(problem.shift[j])
        c = np.zeros(problem.size)
        c[i], c[j] = a, b
        return c * (problem.budget / (abs(a) + abs(b)))
