"""How the next measurement is chosen from what is believed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from eccaht.arrays import Array, support_of
from eccaht.measure import single_stream
from eccaht.policies.parts import Choice, Chooser, View
from eccaht.problem import Problem
from eccaht.stored import whole_numbers

Selector = Callable[[View], tuple[int, int]]
PairToWeights = Callable[[int, int], Array]


def champion_challenger(view: View) -> tuple[int, int]:
    """The weakest member of the set and the strongest stream outside (paper, Algorithm 1, lines 7 to 10)."""
    return view.ranking.champion, view.ranking.challenger


def thompson_pair(view: View) -> tuple[int, int]:
    """Champion and challenger of randomised beliefs, drawn from Beta(p N + 1, (1 - p) N + 1) with N = max(t, 2)."""
    p, N = view.belief.beliefs, max(view.n_told, 2)
    drawn = view.rank(view.rng.beta(p * N + 1.0, (1.0 - p) * N + 1.0), view.ranking.members.size)
    return drawn.champion, drawn.challenger


class Pair(Chooser):
    """Select a pair, then design the measurement that separates it."""

    def __init__(self, select: Selector, design: PairToWeights) -> None:
        self._select, self._design = select, design

    def choose(self, view: View) -> Choice:
        """Return the measurement for the selected pair."""
        i, j = self._select(view)
        return Choice(self._design(i, j), (i, j))


class LeastMeasured(Chooser):
    """Measure the champion or the challenger, whichever gains more from one more reading: 1 / (T (T + 1)).

    T counts the readings in which a stream had weight; the rule is that of CombGapE for a pair (paper, appendix
    BaseArm-CombGapE). The champion wins a tie.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._counts = np.zeros(problem.size)

    def choose(self, view: View) -> Choice:
        """Return the budget on one of the two streams."""
        i, j = champion_challenger(view)
        return Choice(single_stream(self._problem, i if self._counts[i] <= self._counts[j] else j), (i, j))

    def told(self, c: Array) -> None:
        """Count a reading for every stream with weight in it."""
        self._counts[support_of(c)] += 1.0

    def state(self) -> dict[str, Array]:
        """The counts."""
        return {"counts": self._counts}

    def restore(self, state: dict[str, Array], n_told: int) -> None:
        """Go on counting."""
        self._counts[:] = whole_numbers(state["counts"], "counts of readings", most=n_told)


class RoundRobin(Chooser):
    """One stream after the other."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def choose(self, view: View) -> Choice:
        """Return the budget on the stream whose turn it is."""
        return Choice(single_stream(self._problem, view.n_told % self._problem.size))


class RandomSparse(Chooser):
    """ceil(B) random streams with Gaussian weights, scaled to the budget (paper, Algorithm RSP)."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._count = min(math.ceil(problem.budget), problem.size)

    def choose(self, view: View) -> Choice:
        """Return a random measurement."""
        streams = view.rng.choice(self._problem.size, self._count, replace=False)
        weights = view.rng.standard_normal(self._count)
        c = np.zeros(self._problem.size)
        c[streams] = weights * (self._problem.budget / np.abs(weights).sum())
        return Choice(c)
