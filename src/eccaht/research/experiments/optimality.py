"""How near searches come to the best there is, on problems small enough to know it (docs/explanation/optimality.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, as_count
from eccaht.base.presentation.text import unknown
from eccaht.base.randomness import rng_for
from eccaht.research.experiments.workers import run_batches
from eccaht.streams import Covariance, Problem, Simulator, families, make_policy, steps
from eccaht.streams.limits import OptimalSearch, fewest_readings, optimal_searches
from eccaht.streams.sets import SetPrior

POLICIES = ("joint", "exact")
_LONGEST = 10_000  # readings of a search
_RESAMPLES = 4000
_TIMES = 5  # as many searches by the values as of each policy: they are cheap


class SmallProblem(NamedTuple):
    """A problem, what it is, the grids from coarse to fine, and the penalties of a wrong set.

    part: solved instead where the whole has too many sets. A search that is given a random part of the sets with the
    true one among them can do no worse, so the best search of the part bounds that of the whole.
    """

    problem: Problem
    title: str
    intervals: tuple[int, ...]
    penalties: tuple[float, ...]
    part: Problem | None = None


def _problem(covariance: Covariance, n_anomalies: int = 1, shift: float = 1.0) -> Problem:
    return Problem(covariance, shift=shift, n_anomalies=n_anomalies, budget=1000.0)  # a budget that binds nowhere


def _cases() -> dict[str, SmallProblem]:
    one, alike = families.identity, families.equicorrelation
    six = _problem(alike(6, 0.5))
    penalties = {"few": (20.0, 30.0, 45.0, 70.0, 100.0), "many": (25.0, 40.0, 65.0)}
    return {
        "two": SmallProblem(_problem(one(2)), "K = 2, identity, shift 1", (20, 40, 80), penalties["few"]),
        "three": SmallProblem(
            _problem(families.toeplitz(3, 0.5)), "K = 3, toeplitz 0.5, shift 1", (10, 20, 40), (20.0, 35.0, 60.0, 100.0)
        ),
        "four": SmallProblem(_problem(one(4)), "K = 4, identity, shift 1", (8, 16, 24), (30.0, 50.0, 75.0, 110.0)),
        "pairs": SmallProblem(
            _problem(one(4), 2, 2.0), "K = 4, n = 2, identity, shift 2", (4, 6, 8), (15.0, 30.0, 60.0)
        ),
        "six": SmallProblem(six, "K = 6, equicorrelation 0.5, shift 1", (4, 6, 9), penalties["many"]),
        "eight": SmallProblem(
            _problem(alike(8, 0.5)), "K = 8, equicorrelation 0.5, shift 1", (4, 6, 9), penalties["many"], six
        ),
    }


CASES = tuple(_cases())


class Searches(NamedTuple):
    """Readings of each search and how probable it was, given all readings, that the set it named is wrong."""

    readings: Array
    doubts: Array
    wrong: int


class Beside(NamedTuple):
    """A policy beside the best search with the same probability of error.

    least: lower bound of what that takes. attained: what searches by its values took, interpolated between penalties;
    nan beyond them and where only a part of the sets was solved. ratio: readings over `least`, with a 95 % interval of
    a bootstrap over the searches.
    """

    policy: str
    runs: int
    readings: float
    error: float
    wrong: int
    least: float
    attained: float
    ratio: float
    interval: tuple[float, float]


class Optimality(NamedTuple):
    """One problem: values by penalty for each grid, searches by the values of the finest, and policies beside them."""

    name: str
    title: str
    values: dict[int, dict[float, float]]
    attained: dict[float, tuple[float, float]]  # by penalty: mean readings and error
    costs: dict[float, tuple[float, float]]  # by penalty: mean of readings + penalty error, and its standard error
    beside: tuple[Beside, ...]


def case(name: str) -> SmallProblem:
    """Return one of the problems by its name."""
    if name not in CASES:
        raise unknown(name, CASES, "problem")
    return _cases()[name]


def measure_optimality(
    name: str,
    *,
    runs: int = 2000,
    seed: int = 0,
    jobs: int = 1,
    grids: int = 3,
    progress: Callable[[int], object] = lambda _: None,
) -> Optimality:
    """Solve for the best search of a problem and simulate `runs` searches of each policy at alpha 0.05.

    grids: how many of the three grids, from the coarsest; their values show what the grid costs.
    progress: called with 1 after each grid and each policy.
    """
    found, runs = case(name), as_count(runs, "runs", least=2)
    values: dict[int, dict[float, float]] = {}
    best: list[OptimalSearch] = []
    for intervals in found.intervals[: as_count(grids, "grids", least=1)]:
        best = list(optimal_searches(found.part or found.problem, found.penalties, intervals=intervals))
        values[intervals] = {search.penalty: search.value for search in best}
        progress(1)
    attained, costs = {}, {}
    for search in best if found.part is None else ():
        readings, doubts = search.simulate(rng_for(seed, "optimal", name), _TIMES * runs)
        paid = readings + search.penalty * doubts
        attained[search.penalty] = float(readings.mean()), float(doubts.mean())
        costs[search.penalty] = float(paid.mean()), float(paid.std(ddof=1) / paid.size**0.5)
    beside = []
    for policy in POLICIES:
        searches = simulated(found.problem, policy, runs=runs, seed=seed, jobs=jobs)
        values_of_finest = next(reversed(values.values()))
        beside.append(_beside(policy, searches, values_of_finest, attained, rng_for(seed, "bootstrap", name)))
        progress(1)
    return Optimality(name, found.title, values, attained, costs, tuple(beside))


def simulated(problem: Problem, policy: str, *, runs: int, seed: int, jobs: int = 1) -> Searches:
    """Simulate searches of a policy with its default rule; sets are drawn uniformly."""
    finished = run_batches(_search, (problem, policy, seed), range(runs), jobs, lambda _: None)
    readings, doubts, wrong = np.array([finished[run] for run in range(runs)], dtype=float).T
    return Searches(readings, doubts, int(wrong.sum()))


def _search(plan: tuple[Problem, str, int], run: int) -> tuple[int, float, bool]:
    problem, name, seed = plan
    world, policy = Simulator(problem, seed=(seed, run)), make_policy(name, problem, seed=(seed, run))
    sets = SetPrior(problem.size, problem.known_number, problem.known_number).all_sets()
    log_likelihood, taken = np.zeros(len(sets)), 0
    for step in steps(policy, world, _LONGEST):
        c = step.weights
        means = (problem.shift * c)[sets].sum(axis=1) + problem.mean_reading(c)
        log_likelihood -= 0.5 * (step.reading - means) ** 2 / problem.noise_variance(c)
        taken = step.number
    chances = np.exp(log_likelihood - log_likelihood.max())
    chances /= chances.sum()
    decision = np.sort(policy.decision)
    doubt = 1.0 - float(chances[(sets == decision).all(axis=1)][0])
    return taken, doubt, not np.array_equal(decision, np.sort(world.anomalies))


def _beside(
    policy: str,
    searches: Searches,
    values: dict[float, float],
    attained: dict[float, tuple[float, float]],
    rng: np.random.Generator,
) -> Beside:
    readings, error = float(searches.readings.mean()), float(searches.doubts.mean())
    runs, pairs = len(searches.readings), np.column_stack(searches[:2])
    drawn = np.array([pairs[rng.integers(runs, size=runs)].mean(axis=0) for _ in range(_RESAMPLES)])
    ratios = [taken / fewest_readings(values, wrong) for taken, wrong in drawn]
    least = fewest_readings(values, error)
    low, high = np.quantile(ratios, [0.025, 0.975])
    between = np.array(sorted((wrong, taken) for taken, wrong in attained.values())).reshape(-1, 2)
    reached = (
        float(np.interp(error, between[:, 0], between[:, 1], left=np.nan, right=np.nan)) if len(between) else np.nan
    )
    interval = float(low), float(high)
    return Beside(policy, runs, readings, error, searches.wrong, least, reached, readings / least, interval)
