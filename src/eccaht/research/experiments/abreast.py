"""Many simulated searches of one policy, abreast: one after the other would give the same numbers, bit for bit.

Where a policy keeps one log-likelihood ratio a stream, a step costs a few microseconds of arithmetic and several times
that in calls. Here the scores of all searches are the rows of one matrix, which is ranked and updated as a whole; what
is measured is still chosen by the chooser of each policy, and read in a world of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.recalled import Known
from eccaht.base.scales import check_reading
from eccaht.research.experiments.comparison import run_policy
from eccaht.streams.measurements import Budget
from eccaht.streams.policies import Policy, make_policy
from eccaht.streams.policies.parts import Chooser, View
from eccaht.streams.posterior import PseudoLikelihood, Ranker, Ranking
from eccaht.streams.problem import Problem
from eccaht.streams.run.simulator import Simulator

Hits = NDArray[np.int32]

_FEW = 3  # so many searches are faster abreast than one by one


def run_abreast(
    problem: Problem, name: str, horizon: int, seeds: Sequence[tuple[int, int]], options: Mapping[str, Any]
) -> Hits:
    """Run a policy once for each seed; the true anomalies in its decision after each measurement, (runs, horizon).

    >>> from eccaht import families
    >>> problem = Problem(families.toeplitz(8, 0.5), shift=4.0, n_anomalies=1, budget=2.0)
    >>> run_abreast(problem, "ecc-aht", 5, [(0, run) for run in range(4)], {})[:, -1]
    array([1, 1, 1, 1], dtype=int32)
    """
    policies = [make_policy(name, problem, seed=seed, stopping=None, **options) for seed in seeds]
    fit = type(policies[0].inside[0]) is PseudoLikelihood and type(problem.measurements) is Budget
    if not fit or len(seeds) < _FEW:
        return np.stack([run_policy(problem, name, horizon, seed, options)[0] for seed in seeds])
    worlds = [Simulator(problem, seed=seed, names=[name]) for seed in seeds]
    return _Searches(problem, policies, worlds).hits(horizon, [f"{name}, run {run}" for _, run in seeds])


class _Searches:
    """Searches side by side: one row each."""

    def __init__(self, problem: Problem, policies: Sequence[Policy], worlds: Sequence[Simulator]) -> None:
        beliefs, self._choosers, rankers, self._rngs = zip(*(policy.inside for policy in policies), strict=True)
        self._problem, self._worlds = problem, worlds
        self._beliefs = cast("tuple[PseudoLikelihood, ...]", beliefs)
        self._scores = np.empty((len(policies), problem.size))
        for belief, row in zip(self._beliefs, self._scores, strict=True):
            belief.move_to(row)
        self._rank = Rankers(rankers, problem.known_number)
        self._counting = type(self._choosers[0]).record is not Chooser.record
        self._weights = np.empty_like(self._scores)
        self._believed = self._beliefs[0].problem

    def hits(self, horizon: int, labels: Sequence[str]) -> Hits:
        """Measure `horizon` times in every search; errors begin with the label of theirs."""
        truth = np.zeros(self._scores.shape, dtype=bool)
        for row, world in zip(truth, self._worlds, strict=True):
            row[world.anomalies] = True
        found = np.empty((len(truth), horizon), dtype=np.int32)
        noise = np.stack([world.noise(horizon) for world in self._worlds], axis=1)
        rows, rankings = np.arange(len(truth))[:, None], self._rank(self._scores)[1]
        for t in range(horizon):
            self._step(t, rankings, noise[t], labels)
            members, rankings = self._rank(self._scores)
            found[:, t] = truth[rows, members].sum(axis=1)
        return found

    def _step(self, t: int, rankings: Sequence[Ranking], noise: Array, labels: Sequence[str]) -> None:
        """One measurement in every search: its weights, its mean reading in the world, and what is known of it."""
        chosen: list[Known] = []
        levels: list[float] = []
        searches = zip(self._choosers, self._beliefs, rankings, self._rank.each, self._rngs, self._worlds, strict=True)
        for chooser, belief, ranking, rank, rng, world in searches:
            try:
                c = chooser.choose(View(belief, ranking, rank, t, rng)).weights
            except (ValueError, ArithmeticError) as error:
                raise type(error)(f"{labels[len(chosen)]}, after {t} measurements: {error}") from None
            c.flags.writeable = False
            chosen.append(self._problem.known(c))
            levels.append(world.level(c))
            if self._counting:
                chooser.record(c)
        readings = np.array(levels) + noise * np.sqrt([one.variance for one in chosen])
        for one, reading, label in zip(chosen, readings.tolist(), labels, strict=True):
            try:
                check_reading(reading - one.mean, one.variance)
            except ValueError as error:
                raise ValueError(f"{label}, after {t} measurements: {error}") from None
        if self._believed is not self._problem:
            chosen = [self._believed.known(one.weights) for one in chosen]
        np.concatenate([one.weights for one in chosen], out=self._weights.reshape(-1))
        self._update(readings - [one.mean for one in chosen], np.array([one.variance for one in chosen]))

    def _update(self, r: Array, v: Array) -> None:
        """As `PseudoLikelihood.update` does, operation by operation: eq. 3."""
        h = self._believed.shift * self._weights
        gain = 0.5 * h
        np.subtract(r[:, None], gain, out=gain)
        gain *= h
        gain /= v[:, None]
        self._scores += gain


class Rankers:
    """Rank every row of a matrix of scores, as its own ranker would."""

    def __init__(self, each: Sequence[Ranker], n: int) -> None:
        self.each, self._n = each, n
        self._rows = np.arange(len(each))

    def __call__(self, scores: Array) -> tuple[NDArray[np.intp], list[Ranking]]:
        """The members of each set, one row each, and the rankings."""
        n, rows, cut = self._n, self._rows, scores.shape[1] - self._n
        places = scores.argpartition((cut - 1, cut), axis=1)
        members, champions, challengers = np.sort(places[:, cut:], axis=1), places[:, cut], places[:, cut - 1]
        inside, outside = scores[rows, champions], scores[rows, challengers]
        leads = inside - outside
        # exactly n + 1 scores reach the challenger's, and exactly one member has the champion's: no ties to break
        plain = ((scores >= outside[:, None]).sum(axis=1) == n + 1) & (leads > 0.0)
        plain &= (scores[rows[:, None], members] == inside[:, None]).sum(axis=1) == 1
        columns = (champions.tolist(), challengers.tolist(), leads.tolist())
        rankings = [Ranking(*row) for row in zip(members, *columns, strict=True)]
        for k in (~plain).nonzero()[0].tolist():
            rankings[k] = self.each[k](scores[k], n)
            members[k] = rankings[k].members
        return members, rankings
