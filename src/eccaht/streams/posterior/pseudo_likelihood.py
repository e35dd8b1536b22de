"""One log-likelihood ratio a stream, as if no other stream were anomalous (paper, eq. 3 and 4)."""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array, frozen, support_of
from eccaht.base.stored import check_bounded
from eccaht.streams.posterior.protocol import Belief
from eccaht.streams.posterior.shared_noise import whitened
from eccaht.streams.problem import Problem

_SHORT = 512  # up to here all streams at once are faster than those with weight


class PseudoLikelihood(Belief):
    """Scores l(k) = log(n/(K-n)) + sum over readings of (h_k r - h_k^2/2) / v.

    h = shift*c, r = y - c'mean, v = c'S c. A stream without weight in c keeps its score.

    >>> problem = Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0)
    >>> belief = PseudoLikelihood(problem)
    >>> belief.update(np.array([1.0, 0.0, 0.0]), 2.0)
    >>> belief.scores - belief.scores[1]
    array([2., 0., 0.])
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n, K = problem.known_number, problem.size
        self._scores = np.full(K, np.log(n / (K - n)))
        self._view = frozen(self._scores.view())

    @property
    def scores(self) -> Array:
        """Log-odds of each stream, a read-only view."""
        return self._view

    def update(self, c: Array, y: float, inflation: float = 1.0) -> None:
        """Add the evidence of one reading."""
        problem = self.problem
        known = problem.known(c)
        v, r, only = inflation * known.variance, y - known.mean, known.only
        if only >= 0:  # the same arithmetic, on one number
            moved, scores = problem.shift.item(only) * c.item(only), self._scores
            scores[only] = scores.item(only) + moved * (r - 0.5 * moved) / v
        elif c.size <= _SHORT:
            h = problem.shift * c
            self._scores += h * (r - 0.5 * h) / v  # eq. 3
        else:
            support = support_of(c)
            h = problem.shift[support] * c[support]
            self._scores[support] += h * (r - 0.5 * h) / v

    def update_together(self, C: Array, y: Array) -> None:
        """Add the log-likelihood ratio of each stream alone against none: h_k'G^-1 r - h_k'G^-1 h_k / 2."""
        rows, r = whitened(self.problem, C, y)
        h = rows * self.problem.shift
        self._scores += h.T @ r - 0.5 * (h * h).sum(axis=0)

    def twin(self) -> PseudoLikelihood:
        twin = type(self)(self.problem)
        twin._scores[:] = self._scores
        return twin

    def move_to(self, row: Array) -> None:
        """Keep the scores in `row` from now on, so that those of many searches lie side by side."""
        row[:] = self._scores
        self._scores, self._view = row, frozen(row.view())

    def state(self) -> dict[str, Array]:
        return {"scores": self._scores}

    def restore(self, state: dict[str, Array], n_told: int) -> None:
        check_bounded(state["scores"], "scores")
        if not n_told and (state["scores"] != self._scores).any():
            raise ValueError("its scores moved without a reading")
        self._scores[:] = state["scores"]
