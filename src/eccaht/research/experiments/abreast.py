"""Many simulated searches of one policy abreast: one after the other would give the same numbers, bit for bit.

Where a policy keeps one log-likelihood ratio a stream, a step costs a few microseconds of arithmetic and several times
that in calls. Here many searches are one policy, and their worlds one world, for the loop of `streams.run`: the scores
of all are the rows of one matrix, which is ranked and updated as a whole. What is measured is still chosen by the
chooser of each, and read in a world of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, check_reading
from eccaht.base.recalled import Known
from eccaht.research.experiments.comparison import run_policy
from eccaht.streams import (
    Budget,
    Policy,
    Problem,
    PseudoLikelihood,
    Ranker,
    Ranking,
    Reading,
    Simulator,
    World,
    log_ratio,
    make_policy,
    steps,
)
from eccaht.streams.policies.catalogue import BUILT_IN
from eccaht.streams.policies.parts import Chooser, View

_FEW = 3  # so many searches are faster abreast than one by one


def run_abreast(
    problem: Problem, name: str, horizon: int, seeds: Sequence[tuple[int, int]], options: Mapping[str, Any]
) -> NDArray[np.int32]:
    """Run a policy once for each seed; the true anomalies in its decision after each measurement, (runs, horizon).

    >>> from eccaht import families
    >>> problem = Problem(families.toeplitz(8, 0.5), shift=4.0, n_anomalies=1, budget=2.0)
    >>> run_abreast(problem, "ecc-aht", 5, [(0, run) for run in range(4)], {})[:, -1]
    array([1, 1, 1, 1], dtype=int32)
    """
    if name not in BUILT_IN:  # only a Policy verifies what the user's own asks for
        return np.stack([run_policy(problem, name, horizon, seed, options)[0] for seed in seeds])
    policies = [make_policy(name, problem, seed=seed, stopping=None, **options) for seed in seeds]
    fit = type(policies[0].inside[0]) is PseudoLikelihood and type(problem.measurements) is Budget
    if not fit or len(seeds) < _FEW:
        return np.stack([run_policy(problem, name, horizon, seed, options)[0] for seed in seeds])
    worlds = [Simulator(problem, seed=seed, names=[name]) for seed in seeds]
    searches = _Searches(problem, policies, [f"{name}, run {run}" for _, run in seeds])
    truth = np.zeros((len(seeds), problem.size), dtype=bool)
    for row, world in zip(truth, worlds, strict=True):
        row[world.anomalies] = True
    found, rows = np.empty((len(seeds), horizon), dtype=np.int32), np.arange(len(seeds))[:, None]
    one_policy, one_world = cast(Policy, searches), cast(World, _Worlds(worlds, horizon))
    for t, _ in enumerate(steps(one_policy, one_world, horizon, obey_stopping=False)):
        found[:, t] = truth[rows, searches.members].sum(axis=1)
    return found


class _Searches:
    """What the loop asks of a policy, for several at once: a measurement and a reading of each."""

    can, pair = PseudoLikelihood.can, None

    def __init__(self, problem: Problem, policies: Sequence[Policy], labels: Sequence[str]) -> None:
        beliefs, self._choosers, rankers, self._rngs = zip(*(policy.inside for policy in policies), strict=True)
        self._beliefs = cast("tuple[PseudoLikelihood, ...]", beliefs)
        self._problem, self._believed = problem, self._beliefs[0].problem
        self._scores = np.empty((len(policies), problem.size))
        for belief, row in zip(self._beliefs, self._scores, strict=True):
            belief.move_to(row)
        self._rank, self._labels, self._n_told = Rankers(rankers, problem.known_number), labels, 0
        self._counting = type(self._choosers[0]).record is not Chooser.record
        self._weights = np.empty_like(self._scores)
        self.members, self._rankings = self._rank(self._scores)

    def ask(self) -> list[Known]:
        """The measurement of each search; errors begin with its label."""
        chosen: list[Known] = []
        searches = zip(self._choosers, self._beliefs, self._rankings, self._rank.each, self._rngs, strict=True)
        for chooser, belief, ranking, rank, rng in searches:
            try:
                c = chooser.choose(View(belief, ranking, rank, self._n_told, rng)).weights
            except (ValueError, ArithmeticError) as error:
                raise self._labelled(error, len(chosen)) from None
            c.flags.writeable = False
            chosen.append(self._problem.known(c))
        return chosen

    def tell(self, chosen: Sequence[Known], readings: Array, *, inflation: float = 1.0) -> None:  # noqa: ARG002
        """As `Policy.tell` and `PseudoLikelihood.update` do for one."""
        for k, (one, reading) in enumerate(zip(chosen, readings.tolist(), strict=True)):
            try:
                check_reading(reading - one.mean, one.variance)
            except ValueError as error:
                raise self._labelled(error, k) from None
        if self._counting:
            for chooser, one in zip(self._choosers, chosen, strict=True):
                chooser.record(one.weights)
        if self._believed is not self._problem:
            chosen = [self._believed.known(one.weights) for one in chosen]
        h = np.concatenate([one.weights for one in chosen], out=self._weights.reshape(-1)).reshape(self._scores.shape)
        h *= self._believed.shift
        r, v = readings - [one.mean for one in chosen], np.array([one.variance for one in chosen])
        self._scores += log_ratio(h, r[:, None], v[:, None])  # eq. 3
        self._n_told += 1
        self.members, self._rankings = self._rank(self._scores)

    def _labelled(self, error: ValueError | ArithmeticError, search: int) -> Exception:
        return type(error)(f"{self._labels[search]}, after {self._n_told} measurements: {error}")


class _Worlds:
    """What the loop asks of a world, for several at once."""

    def __init__(self, worlds: Sequence[Simulator], horizon: int) -> None:
        self._worlds = worlds
        self._noise = iter(np.stack([world.noise(horizon) for world in worlds], axis=1))

    def read(self, chosen: Sequence[Known], *, short: bool = True) -> Reading:  # noqa: ARG002
        levels = [world.level(one.weights) for world, one in zip(self._worlds, chosen, strict=True)]
        readings = np.array(levels) + next(self._noise) * np.sqrt([one.variance for one in chosen])
        return Reading(cast(Array, chosen), cast(float, readings))


class Rankers:
    """Rank every row of a matrix of scores, as its own ranker would."""

    def __init__(self, each: Sequence[Ranker], n: int) -> None:
        self.each, self._n = each, n
        self._rows = np.arange(len(each))

    def __call__(self, scores: Array) -> tuple[Index, list[Ranking]]:
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
        rankings = list(map(Ranking._make, zip(members, *columns, strict=True)))
        for k in (~plain).nonzero()[0].tolist():
            rankings[k] = self.each[k](scores[k], n)
            members[k] = rankings[k].members
        return members, rankings
