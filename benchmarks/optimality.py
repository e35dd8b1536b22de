"""How near searches come to the best there is, on problems small enough to know it (docs/explanation/limits.md)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.best_search import OptimalSearch, fewest_readings, optimal_searches
from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.research.experiments.workers import run_batches
from eccaht.streams import Covariance, Problem, Simulator, families, make_policy, steps
from eccaht.streams.sets import SetPrior

POLICIES = ("joint", "exact")
_LONGEST = 10_000  # readings of a search
_RESAMPLES = 4000
_TIMES = 5  # as many searches by the values as of each policy: they are cheap


class SmallProblem(NamedTuple):
    """A problem, what it is, the intervals of the grid, the penalties of a wrong set, and searches of each policy.

    part: solved instead where the whole has too many sets. A search that is given a random part of the sets with the
    true one among them can do no worse, so the best search of the part bounds that of the whole.
    """

    problem: Problem
    title: str
    intervals: int
    penalties: tuple[float, ...]
    searches: int
    part: Problem | None = None


def _problem(covariance: Covariance, n_anomalies: int = 1, shift: float = 1.0) -> Problem:
    return Problem(covariance, shift=shift, n_anomalies=n_anomalies, budget=1000.0)  # a budget that binds nowhere


def cases() -> dict[str, SmallProblem]:
    one, alike = families.identity, families.equicorrelation
    two, three, four = _problem(one(2)), _problem(families.toeplitz(3, 0.5)), _problem(one(4))
    pairs, six, eight = _problem(one(4), 2, 2.0), _problem(alike(6, 0.5)), _problem(alike(8, 0.5))
    many = (25.0, 40.0, 65.0)
    return {
        "two": SmallProblem(two, "K = 2, identity, shift 1", 80, (20.0, 30.0, 45.0, 70.0, 100.0), 4000),
        "three": SmallProblem(three, "K = 3, toeplitz 0.5, shift 1", 40, (20.0, 35.0, 60.0, 100.0), 4000),
        "four": SmallProblem(four, "K = 4, identity, shift 1", 24, (30.0, 50.0, 75.0, 110.0), 4000),
        "pairs": SmallProblem(pairs, "K = 4, n = 2, identity, shift 2", 8, (15.0, 30.0, 60.0), 2000),
        "six": SmallProblem(six, "K = 6, equicorrelation 0.5, shift 1", 9, many, 1000),
        "eight": SmallProblem(eight, "K = 8, equicorrelation 0.5, shift 1", 9, many, 1000, six),
    }


def jobs(quick: bool) -> list[Job]:
    return [Job(name, partial(measure, name, 50 if quick else case.searches)) for name, case in cases().items()]


def measure(name: str, runs: int) -> list[Row]:
    """Solve for the best search of a problem and simulate searches of each policy with its default rule."""
    case = cases()[name]
    best = list(optimal_searches(case.part or case.problem, case.penalties, intervals=case.intervals))
    attained = [_attained(search, name, runs) for search in best if case.part is None]
    values = {search.penalty: search.value for search in best}
    return [
        {"problem": f"{name}: {case.title}", **_beside(name, policy, runs, values, attained)} for policy in POLICIES
    ]


def _attained(search: OptimalSearch, name: str, runs: int) -> tuple[float, float]:
    """Error and readings of searches that follow the computed values."""
    readings, doubts = search.simulate(rng_for(0, "optimal", name), _TIMES * runs)
    return float(doubts.mean()), float(readings.mean())


def _beside(name: str, policy: str, runs: int, values: dict[float, float], attained: list[tuple[float, float]]) -> Row:
    """A policy beside the best search with the same probability of error, with a bootstrap over its searches."""
    problem = cases()[name].problem
    finished = run_batches(_search, (problem, policy), range(runs), 1)
    searches = np.array([finished[run] for run in range(runs)], dtype=float)
    readings, error = (float(mean) for mean in searches[:, :2].mean(axis=0))
    rng = rng_for(0, "bootstrap", name)
    drawn = np.array([searches[rng.integers(runs, size=runs), :2].mean(axis=0) for _ in range(_RESAMPLES)])
    low, high = np.quantile([taken / fewest_readings(values, wrong) for taken, wrong in drawn], [0.025, 0.975])
    least, between = fewest_readings(values, error), np.array(sorted(attained)).reshape(-1, 2)
    reached = (
        float(np.interp(error, between[:, 0], between[:, 1], left=np.nan, right=np.nan)) if len(between) else np.nan
    )
    return {
        "policy": policy,
        "searches": runs,
        "readings": readings,
        "error": error,
        "wrong": int(searches[:, 2].sum()),
        "best": f"at least {least:.2f}" if np.isnan(reached) else f"{least:.2f} to {reached:.2f}",
        "ratio": f"{readings / least:.2f} [{low:.2f}, {high:.2f}]",
    }


def _search(plan: tuple[Problem, str], run: int) -> tuple[int, float, bool]:
    """Readings of a search, the probability that the set it names is wrong given all of them, and whether it was."""
    problem, name = plan
    world, policy = Simulator(problem, seed=(0, run)), make_policy(name, problem, seed=(0, run))
    sets = SetPrior(problem.size, problem.known_number, problem.known_number).all_sets()
    log_likelihood: Array = np.zeros(len(sets))
    for step in steps(policy, world, _LONGEST):
        c = step.weights
        means = (problem.shift * c)[sets].sum(axis=1) + problem.mean_reading(c)
        log_likelihood -= 0.5 * (step.reading - means) ** 2 / problem.noise_variance(c)
    chances = np.exp(log_likelihood - log_likelihood.max())
    chances /= chances.sum()
    decision = np.sort(policy.decision)
    doubt = 1.0 - float(chances[(sets == decision).all(axis=1)][0])
    return policy.n_readings, doubt, not np.array_equal(decision, np.sort(world.anomalies))


def tables(rows: list[Row]) -> list[Table]:
    columns = (
        Column("problem", "problem", right=False),
        Column("policy", "policy", right=False),
        Column("searches", "N"),
        Column("readings", "readings", "{:.2f}".format),
        Column("error", "error", "{:.3f}".format),
        Column("wrong", "wrong"),
        Column("best", "best at that error", right=False),
        Column("ratio", "ratio", right=False),
    )
    return [Table("optimality", "How near to the best search", columns, rows)]
