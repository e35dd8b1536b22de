"""Are the stopping rules of a problem as often wrong as they say? Simulated searches, counted."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, as_count, as_number, check_alpha, inner
from eccaht.base.randomness import check_seed, rng_for
from eccaht.base.statistics import (
    Delay,
    Estimate,
    chance_of_as_many,
    clopper_pearson,
    delay,
    estimate,
    reached_for_good,
)
from eccaht.research.experiments.comparison import labelled
from eccaht.research.experiments.workers import run_batches
from eccaht.streams import (
    Gap,
    LikelihoodRatio,
    Policy,
    PosteriorProbability,
    Problem,
    Simulator,
    estimated_shifts,
    make_policy,
    steps,
)
from eccaht.streams.covariance.sampled import FEWEST
from eccaht.streams.run.world import Reading
from eccaht.streams.stopping import UnionBound

RULES = ("posterior", "glr", "union", "own", "gap")
LEVEL = 0.95  # of every interval
SIGNIFICANCE = 0.01  # of the test whether errors are compatible with alpha
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Rule = PosteriorProbability | LikelihoodRatio | UnionBound | Gap


class Truth(NamedTuple):
    """What simulated searches look for, where the problem leaves it open; None: drawn from its prior.

    number: of anomalous streams.
    sizes: least and largest shift; those of unknown size are uniform between, with the sign of the prior's mean, or
        any where that is 0.
    vectors: mean and covariance of the problem are true, and each search is given what it estimates from so many
        vectors of its own; None: the searches know them.
    tails: degrees of freedom of t noise, in the vectors and in the readings.
    """

    number: int | None = None
    sizes: tuple[float, float] | None = None
    vectors: int | None = None
    tails: float | None = None


class Stop(NamedTuple):
    """Where a rule ended a search.

    named, covered: streams of unknown shift in the set, if it was right, and how many intervals held the true shift.
    """

    n_measurements: int
    right: bool
    named: int = 0
    covered: int = 0


class CountedSearch(NamedTuple):
    """One simulated search: where each rule ended it (None: not within the horizon).

    right_for_good: measurements after which the set was right until the search ended; None if it was wrong then.
    """

    stops: tuple[Stop | None, ...]
    n_measurements: int
    right_for_good: int | None


@dataclass(frozen=True)
class ErrorCounts:
    alphas: tuple[float, ...]  # from the largest to the smallest
    horizon: int
    seed: int
    searches: tuple[CountedSearch, ...]


class _Coverage(NamedTuple):
    """How often the intervals of the shifts held the true shift, over the searches that ended with the right set.

    interval: of the share, as if the streams of a search were independent.
    """

    named: int
    covered: int
    interval: tuple[float, float]

    @property
    def share(self) -> float:
        """Covered intervals among all."""
        return self.covered / self.named


class Level(NamedTuple):
    """What was counted at one alpha.

    errors: wrong sets among the searches that stopped; share, interval (two-sided), at_most (one-sided upper bound),
        chance (of as many errors or more if alpha were the error) and compatible (that chance is 1 % or more) are of
        these, and None if no search stopped.
    measurements: until the stop; a search that never stopped enters the mean at the horizon.
    quantiles: of the same, at QUANTILES; None where the search in question never stopped.
    """

    alpha: float
    runs: int
    stopped: int
    errors: int
    share: float | None
    interval: tuple[float, float] | None
    at_most: float | None
    chance: float | None
    compatible: bool | None
    measurements: Delay
    quantiles: tuple[int | None, ...]
    coverage: _Coverage | None

    @property
    def never_stopped(self) -> int:
        return self.runs - self.stopped


def count_errors(
    problem: Problem,
    *,
    policy: str = "joint",
    stopping: str = "posterior",
    alphas: Sequence[float] = (0.05, 0.01),
    runs: int = 200,
    horizon: int = 1000,
    seed: int = 0,
    truth: Truth = Truth(),  # noqa: B008 (it cannot be changed)
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> ErrorCounts:
    """Simulate `runs` searches; set, number and shifts are drawn from the prior, or as `truth` says.

    A search goes on until the rule is met at every alpha or `horizon` measurements were made. The rules do not affect
    it: each stops where a search with that alpha alone would have. Nothing depends on `jobs`. `progress(n)` is called
    with the number of searches finished since the last call.

    >>> from eccaht import families
    >>> problem = Problem(families.identity(8), shift=6.0, n_anomalies=1, budget=1.0)
    >>> [level.errors for level in summarise(count_errors(problem, runs=5))]
    [0, 0]
    """
    for what, number in {"runs": runs, "horizon": horizon, "jobs": jobs}.items():
        as_count(number, what, least=1)
    (seed,) = check_seed(seed)
    _check_truth(truth, problem)
    plan = _Plan(problem, policy, stopping, check_alphas(alphas), horizon, seed, truth)
    _rules(plan, _policy(plan, 0))  # refuses rules that do not apply before the work starts
    finished = run_batches(_search, plan, range(runs), jobs, progress)
    return ErrorCounts(plan.alphas, horizon, seed, tuple(finished[run] for run in range(runs)))


def check_alphas(alphas: Sequence[float]) -> tuple[float, ...]:
    """Return error levels from the largest to the smallest."""
    levels = sorted(map(check_alpha, alphas), reverse=True)
    if not levels:
        raise ValueError("no alpha to look at: give at least one")
    for first, second in pairwise(levels):
        if first == second:
            raise ValueError(f"alpha {first:g} is given twice: give each once")
    return tuple(levels)


class _Plan(NamedTuple):
    problem: Problem
    policy: str
    stopping: str
    alphas: tuple[float, ...]
    horizon: int
    seed: int
    truth: Truth


def _check_truth(truth: Truth, problem: Problem) -> None:
    least, most = problem.sizes
    if truth.number is not None and not least <= as_count(truth.number, "the true number", least=0) <= most:
        raise ValueError(f"the true number of anomalies must be from {least} to {most}, not {truth.number}")
    if truth.sizes is not None:
        if not problem.unknown_shift:
            raise ValueError("true sizes are for shifts of unknown size: these are known")
        if not 0.0 <= truth.sizes[0] <= truth.sizes[1] < np.inf:
            raise ValueError(f"true sizes must be two numbers from 0 on, the smaller first, not {truth.sizes}")
    if truth.vectors is not None:
        as_count(truth.vectors, "the number of vectors", least=FEWEST)
    if truth.tails is not None and as_number(truth.tails, "tails") <= 2.0:
        raise ValueError(f"tails are degrees of freedom above 2, where noise has a covariance, not {truth.tails!r}")


class _HeavyTailed(Simulator):
    """Readings of t noise of the same variance."""

    tails = math.inf

    def read(self, c: Array) -> Reading:
        """One reading, farther from its mean or nearer to it than a Gaussian one."""
        reading, mean = super().read(c), inner(c, self._means)
        return reading._replace(value=mean + (reading.value - mean) * float(_far(self._noise, self.tails, 1)[0]))


def _far(rng: np.random.Generator, tails: float, count: int) -> Array:
    """What makes Gaussian noise t noise of the same variance."""
    return np.asarray(np.sqrt((tails - 2.0) / rng.chisquare(tails, count)))


def _world(plan: _Plan, run: int) -> Simulator:
    problem, (number, sizes, _, tails) = plan.problem, plan.truth
    seed, anomalies, shifts = (plan.seed, run), None, None
    if number is not None:
        anomalies = rng_for(seed, "truth").choice(problem.size, number, replace=False)
    if sizes is not None:
        anomalies = Simulator(problem, seed=seed, anomalies=anomalies).anomalies
        rng, shifts = rng_for(seed, "true sizes"), problem.shift[anomalies]
        drawn, sign = rng.uniform(*sizes, shifts.size), np.where(rng.random(shifts.size) < 0.5, -1.0, 1.0)
        sign = np.where(shifts == 0.0, sign, np.sign(shifts))
        shifts = np.where(problem.shift_spread[anomalies] > 0.0, sign * drawn, shifts)
    if tails is None:
        return Simulator(problem, seed=seed, anomalies=anomalies, shifts=shifts, names=[plan.policy])
    world = _HeavyTailed(problem, seed=seed, anomalies=anomalies, shifts=shifts, names=[plan.policy])
    world.tails = tails
    return world


def _given(plan: _Plan, run: int) -> Problem:
    """The problem as a search knows it."""
    problem, vectors, tails = plan.problem, plan.truth.vectors, plan.truth.tails
    if vectors is None:
        return problem
    rng = rng_for((plan.seed, run), "vectors")
    X = problem.covariance.sample(rng, vectors)
    if tails is not None:
        X *= _far(rng, tails, vectors)[:, None]
    return problem.estimated(problem.mean + X)


def _policy(plan: _Plan, run: int) -> Policy:
    seed = plan.seed, run
    return make_policy(plan.policy, _given(plan, run), seed=seed, stopping=plan.stopping, alpha=plan.alphas[-1])


def _rules(plan: _Plan, policy: Policy) -> list[Rule]:
    rule = policy.stopping
    if not isinstance(rule, Rule):
        raise ValueError(f"stopping={plan.stopping!r} has no error level to check: use {', '.join(RULES)}")
    return [replace(rule, alpha=alpha) for alpha in plan.alphas]


def _search(plan: _Plan, run: int) -> CountedSearch:
    policy, world = _policy(plan, run), _world(plan, run)
    rules, stops, right = _rules(plan, policy), list[Stop](), list[bool]()
    with labelled(plan.policy, lambda: f"{plan.policy}, run {run}, after {policy.n_readings} measurements"):
        for _ in steps(policy, world, plan.horizon, obey_stopping=False):
            right.append(np.array_equal(policy.decision, world.anomalies))
            # a search that meets a rule meets it at every larger alpha, so the stopped alphas come first
            while len(stops) < len(rules) and rules[len(stops)].met(policy.lead, policy.n_readings):
                stops.append(_stop(policy, world, right=right[-1]))
            if len(stops) == len(rules):
                break
    never = [None] * (len(rules) - len(stops))
    return CountedSearch((*stops, *never), len(right), reached_for_good(right))


def _stop(policy: Policy, world: Simulator, *, right: bool) -> Stop:
    problem = policy.problem
    shifts = estimated_shifts(policy, LEVEL) if right and problem.unknown_shift else None
    if shifts is None:
        return Stop(policy.n_readings, right)
    open_ones = problem.shift_spread[world.anomalies] > 0.0
    covered = (shifts.low <= world.shifts) & (world.shifts <= shifts.high) & open_ones
    return Stop(policy.n_readings, right, int(open_ones.sum()), int(covered.sum()))


def summarise(records: ErrorCounts) -> list[Level]:
    """Return one row an alpha, from the largest to the smallest."""
    return [_level(records, place) for place in range(len(records.alphas))]


def right_for_good(records: ErrorCounts) -> Estimate | None:
    """Measurements after which the set was right for good: mean over the searches that ended with a right one.

    For good is as far as a search went, up to its stop at the smallest alpha.
    """
    times = [search.right_for_good for search in records.searches if search.right_for_good is not None]
    return estimate(times, rng=rng_for(records.seed, "bootstrap")) if times else None


def _level(records: ErrorCounts, place: int) -> Level:
    alpha, stops = records.alphas[place], [search.stops[place] for search in records.searches]
    ended = [stop for stop in stops if stop is not None]
    errors, stopped = sum(not stop.right for stop in ended), len(ended)
    times = [None if stop is None else stop.n_measurements for stop in stops]
    chance = chance_of_as_many(errors, stopped, alpha) if ended else None
    return Level(
        alpha=alpha,
        runs=len(stops),
        stopped=stopped,
        errors=errors,
        share=errors / stopped if ended else None,
        interval=clopper_pearson(errors, stopped, level=LEVEL) if ended else None,
        at_most=clopper_pearson(errors, stopped, level=LEVEL, side="upper")[1] if ended else None,
        chance=chance,
        compatible=None if chance is None else chance >= SIGNIFICANCE,
        measurements=delay(times, records.horizon, rng=rng_for(records.seed, "bootstrap")),
        quantiles=_quantiles(times),
        coverage=_coverage(ended),
    )


def _quantiles(times: Sequence[int | None]) -> tuple[int | None, ...]:
    """The least times by which these shares of the searches had stopped."""
    late = [np.inf if time is None else float(time) for time in times]
    found = np.quantile(late, QUANTILES, method="inverted_cdf").tolist()
    return tuple(int(time) if np.isfinite(time) else None for time in found)


def _coverage(stops: Sequence[Stop]) -> _Coverage | None:
    named, covered = sum(stop.named for stop in stops), sum(stop.covered for stop in stops)
    return _Coverage(named, covered, clopper_pearson(covered, named, level=LEVEL)) if named else None
