"""Algorithms for identification in linear bandits beside `joint` and `ecc-aht`: readings at one error level, and rates.

No part of the default run: 100 searches a cell take twenty minutes on one core. docs/measured/rivals.md has the tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.jobs import Job, Row, seconds
from benchmarks.tables import Column, Table, three_digits
from eccaht import Problem, Simulator, families, make_policy
from eccaht.base.arrays import Array
from eccaht.streams.covariance import LowRankPlusDiagonal
from eccaht.streams.limits import gamma_star
from eccaht.streams.measurements import Unlimited
from eccaht.streams.policies import Policy
from eccaht.streams.stopping import StoppingRule, UnionBound, stopping_rule

RUNS, OWN_RUNS, RATE_RUNS, QUICK_RUNS = 100, 20, 60, 2
ALPHA, RULES = 0.05, ("posterior", "glr")
HORIZON, OWN_HORIZON = 1000, 4000
NEAR = tuple(10.0**-power for power in range(2, 13, 2))  # alphas of the rates
FAR = tuple(10.0**-power for power in range(12, 33, 5))


class Rival(NamedTuple):
    """A policy with its options, and what the tables call it."""

    label: str
    policy: str
    options: dict[str, Any]


RIVALS = (
    Rival("joint", "joint", {}),
    Rival("ecc-aht", "ecc-aht", {}),
    Rival("track-and-stop", "track-and-stop", {"lazy": 1.0}),
    Rival("track-and-stop, unforced", "track-and-stop", {"lazy": 1.0, "exploration": 0.0}),
    Rival("frank-wolfe", "frank-wolfe", {}),
    Rival("frank-wolfe, unforced", "frank-wolfe", {"exploration": False}),
    Rival("lingame", "lingame", {}),
    Rival("lingape", "lingape", {}),
    Rival("rage", "rage", {}),
)
OWN = tuple(rival for rival in RIVALS if rival.policy not in ("joint", "ecc-aht"))
# Tests of many hypotheses with controlled readings, on the first problems only: designs for every set take long. They
# need a budget, and have one that never binds.
CONTROLLED = (
    Rival("chernoff", "chernoff", {}),
    Rival("controlled-sensing", "controlled-sensing", {}),
    Rival("extrinsic-jensen-shannon", "extrinsic-jensen-shannon", {}),
)
# The last is given the true set and measures the best mix for it from the start.
RATED = (
    *(RIVALS[2], RIVALS[6], RIVALS[4]),
    *CONTROLLED,
    RIVALS[8],
    Rival("rage, article", "rage", {"phases": "article"}),
    Rival("oracle-design", "oracle-design", {}),
)


def _free(covariance: Any, shift: float, n: int | tuple[int, int] = 2) -> Problem:
    """Without the limit on |c|_1 per unit of contrast, which the algorithms' articles do not know."""
    return Problem(covariance, shift=shift, n_anomalies=n, measurements=Unlimited(5.0))


def _matern() -> Array:
    """Matern 3/2, length 1.5, on a grid of 6 by 6."""
    grid = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    d = math.sqrt(3.0) / 1.5 * np.sqrt(((grid[:, None] - grid) ** 2).sum(axis=2))
    return np.asarray((1.0 + d) * np.exp(-d))


def _factors() -> LowRankPlusDiagonal:
    """Three common causes of 40 streams, unit variances."""
    loads = np.random.default_rng(40).standard_normal((40, 3))
    loads *= np.sqrt(0.7 / (loads**2).sum(axis=1))[:, None]
    return LowRankPlusDiagonal(loads, np.full(40, 0.3))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "revision: identity, K = 20, n = 2": lambda: _free(families.identity(20), 1.0),
    "revision: equicorrelation 0.9": lambda: _free(families.equicorrelation(20, 0.9), 1.0),
    "revision: toeplitz 0.5": lambda: _free(families.toeplitz(20, 0.5), 1.0),
    "revision: toeplitz 0.9": lambda: _free(families.toeplitz(20, 0.9), 1.0),
    "paper, smaller: kronecker 0.8, K = 32, n = 2": lambda: _free(families.kronecker(0.8, (4, 8)), 1.0),
    "paper, smaller: block 0.8, K = 32, n = 2": lambda: _free(families.block(32, 0.8), 1.0),
    "paper: toeplitz 0.8, K = 128, n = 5, B = 5": lambda: Problem(
        families.toeplitz(128, 0.8), shift=3.0, n_anomalies=5, budget=5.0
    ),
    "Matern grid, K = 36, n = 2": lambda: _free(_matern(), 0.8),
    "three factors, K = 40, n = 2": lambda: _free(_factors(), 1.0),
    "number open, toeplitz 0.6, K = 16, n = 0 to 3": lambda: _free(families.toeplitz(16, 0.6), 1.5, (0, 3)),
}
RATES: dict[str, tuple[Callable[[], Problem], list[int]]] = {
    "toeplitz 0.6, K = 5, n = 2": (
        lambda: Problem(families.toeplitz(5, 0.6), shift=0.4, n_anomalies=2, budget=20.0),
        [1, 3],
    ),
    "toeplitz 0.8, K = 6, n = 2": (
        lambda: Problem(families.toeplitz(6, 0.8), shift=0.4, n_anomalies=2, budget=20.0),
        [1, 2],
    ),
    "toeplitz 0.8, K = 6, n = 3": (
        lambda: Problem(families.toeplitz(6, 0.8), shift=0.4, n_anomalies=3, budget=20.0),
        [0, 1, 2],
    ),
}


def jobs(quick: bool) -> list[Job]:
    """One job a cell."""
    runs, own, rates = (QUICK_RUNS,) * 3 if quick else (RUNS, OWN_RUNS, RATE_RUNS)
    shared = [
        Job(f"{rival.label}, {problem}", partial(_shared, rival, problem, runs))
        for problem in PROBLEMS
        for rival in RIVALS
    ]
    alone = [
        Job(f"own rule, {rival.label}, {problem}", partial(_own, rival, problem, own))
        for problem in list(PROBLEMS)[:4]
        for rival in OWN
    ]
    grown = [
        Job(f"rate, {rival.label}, {problem}", partial(_rate, rival, problem, rates))
        for problem in RATES
        for rival in RATED
    ]
    controlled = [
        Job(f"controlled, {rival.label}, {problem}", partial(_shared, rival, problem, runs, budget=1000.0))
        for problem in list(PROBLEMS)[:4]
        for rival in CONTROLLED
    ]
    return shared + alone + grown + controlled


# -- one error level -----------------------------------------------------------------------------------


def _shared(rival: Rival, name: str, runs: int, budget: float | None = None) -> list[Row]:
    """Searches that the same two valid rules stop, whatever chooses the measurements."""
    problem, found, taken = PROBLEMS[name](), [], 0.0
    problem = problem if budget is None else problem.replace(budget=budget)
    common: Row = {"kind": "shared", "problem": name, "rival": rival.label}
    try:
        make_policy(rival.policy, problem, stopping=None, **rival.options)
    except ValueError as error:
        return [common | {"refused": str(error).split(": use")[0]}]
    for run in range(runs):
        taken += seconds(lambda run=run: found.append(stops(rival, problem, run)))  # type: ignore[misc]
    row: Row = common | {"runs": runs, "ms": 1e3 * taken / sum(max(s.readings for s in stop) for stop in found)}
    for place, rule in enumerate(RULES):
        readings = np.array([stop[place].readings for stop in found], dtype=float)
        row |= {
            rule: float(readings.mean()),
            f"{rule}_error": float(1.96 * readings.std(ddof=1) / math.sqrt(runs)),
            f"{rule}_wrong": sum(not stop[place].right for stop in found),
            f"{rule}_censored": sum(stop[place].readings >= HORIZON for stop in found),
        }
    return [row]


class Stop(NamedTuple):
    """Where a rule ended a search; at the horizon if it did not."""

    readings: int
    right: bool


def stops(rival: Rival, problem: Problem, run: int) -> list[Stop]:
    """Where each of the rules ends one search.

    A policy without a posterior of sets is stopped by that of `joint`, which is given the same readings.
    """
    policy = make_policy(rival.policy, problem, seed=run, stopping=None, **rival.options)
    judge = policy if policy.can.posterior else make_policy("joint", problem, seed=run, stopping=None)
    belief, world = judge.inside[0], Simulator(problem, seed=run, names=[rival.label])
    rules = {rule: stopping_rule(rule, ALPHA, problem, can=judge.can, belief=belief) for rule in RULES}
    ended: dict[str, Stop] = {}
    while len(ended) < len(rules) and policy.n_readings < HORIZON:
        c = policy.ask()
        y = world.measure(c)
        for each in {id(policy): policy, id(judge): judge}.values():
            each.tell(c, y)
        for rule in rules.keys() - ended.keys():
            if rules[rule].met(judge.lead, judge.n_readings):
                ended[rule] = Stop(judge.n_readings, np.array_equal(judge.decision, world.anomalies))
    cut = Stop(HORIZON, np.array_equal(judge.decision, world.anomalies))
    return [ended.get(rule, cut) for rule in RULES]


def _own(rival: Rival, name: str, runs: int) -> list[Row]:
    """Searches that end by the rule of the algorithm's own source."""
    problem, found = PROBLEMS[name](), []
    for run in range(runs):
        policy = make_policy(rival.policy, problem, seed=run, stopping="own", alpha=ALPHA, **rival.options)
        world = Simulator(problem, seed=run, names=[rival.label])
        _search(policy, world, policy.stopping, OWN_HORIZON)
        found.append(Stop(policy.n_readings, np.array_equal(policy.decision, world.anomalies)))
    readings = np.array([stop.readings for stop in found], dtype=float)
    return [
        {
            "kind": "own",
            "problem": name,
            "rival": rival.label,
            "runs": runs,
            "readings": float(readings.mean()),
            "error": float(1.96 * readings.std(ddof=1) / math.sqrt(runs)),
            "wrong": sum(not stop.right for stop in found),
            "censored": int((readings >= OWN_HORIZON).sum()),
        }
    ]


def _search(policy: Policy, world: Simulator, rule: StoppingRule, horizon: int) -> None:
    while policy.n_readings < horizon and not rule.met(policy.lead, policy.n_readings):
        c = policy.ask()
        policy.tell(c, world.measure(c))


# -- rates ---------------------------------------------------------------------------------------------


def _rate(rival: Rival, name: str, runs: int) -> list[Row]:
    """The slopes of readings over log(1/alpha), beside 1 / Gamma*."""
    make, truth = RATES[name]
    problem = make()
    slopes = np.array([_slopes(rival, problem, truth, run) for run in range(runs)])
    least = 1.0 / gamma_star(problem, truth, mix=True).lower
    row: Row = {"kind": "rate", "problem": name, "rival": rival.label, "runs": runs, "theory": least}
    for key, each in zip(("near", "far"), slopes.T, strict=True):
        error = 1.96 * each.std(ddof=1) / math.sqrt(runs)
        row |= {key: float(each.mean()) / least, f"{key}_error": float(error) / least}
    return [row]


def _slopes(rival: Rival, problem: Problem, truth: list[int], run: int) -> list[float]:
    """By least squares over either range of alphas, of one search that goes on until the smallest one."""
    options = {"anomalies": truth} if rival.policy == "oracle-design" else rival.options
    policy = make_policy(rival.policy, problem, seed=run, stopping=None, **options)
    belief: Any = policy.inside[0]
    world, times = Simulator(problem, seed=run, anomalies=truth), dict[float, int]()
    for alpha in (*NEAR, *FAR[1:]):
        _search(policy, world, UnionBound(alpha, belief), 100_000)
        times[alpha] = policy.n_readings
    return [float(np.polyfit(-np.log(some), [times[a] for a in some], 1)[0]) for some in (NEAR, FAR)]


# -- tables --------------------------------------------------------------------------------------------


def tables(rows: list[Row]) -> list[Table]:
    """Readings at one error level, by own rules, and rates."""
    shared = [row for row in rows if row["kind"] == "shared"]
    first = (Column("problem", "problem", right=False), Column("rival", "policy", right=False), Column("runs", "runs"))
    columns = [*first]
    for rule in RULES:
        columns += [
            Column(rule, f"`{rule}`", three_digits),
            Column(f"{rule}_error", "±", three_digits),
            Column(f"{rule}_wrong", "wrong"),
        ]
    columns += [Column("ms", "ms a reading", three_digits), Column("refused", "why not", right=False)]
    notes = (
        f"alpha = {ALPHA}; ± is half of a 95 % interval. Searches end after {HORIZON:,} readings.",
        "unforced: without the forced exploration of the article.",
        "`track-and-stop` renews its design whenever the leader changes (lazy=1).",
    )
    own = (
        *first,
        Column("readings", "readings", three_digits),
        Column("error", "±", three_digits),
        Column("wrong", "wrong"),
        Column("censored", f"not over after {OWN_HORIZON:,}"),
    )
    rates = (
        *first,
        Column("theory", "1 / Gamma*", three_digits),
        Column("near", "slope over it, 1e-2 to 1e-12", three_digits),
        Column("near_error", "±", three_digits),
        Column("far", "1e-12 to 1e-32", three_digits),
        Column("far_error", "±", three_digits),
    )
    return [
        Table("identification", "Readings until the stop, the same rules for all", columns, shared, notes),
        Table("identification-own", "Readings by own rules", own, [row for row in rows if row["kind"] == "own"]),
        Table("identification-rates", "Rates", rates, [row for row in rows if row["kind"] == "rate"]),
    ]
