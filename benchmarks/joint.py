"""Part 5: what exact inference costs a step, and saves in measurements: joint and joint-pair beside ecc-aht."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.jobs import Job, Row, seconds
from benchmarks.tables import Column, Table, milliseconds, times
from eccaht import Problem, Simulator, families, make_policy
from eccaht.streams.covariance import Covariance
from eccaht.streams.policies import Policy

POLICIES = ("ecc-aht", "joint-pair", "joint")
NOISES: dict[str, Callable[[int], Covariance]] = {
    "toeplitz": lambda K: families.toeplitz(K, 0.8),
    "rbf": lambda K: families.rbf(K, rho=0.8),
    "kronecker": lambda K: families.kronecker(0.8, (K // 8, 8)),
    "equicorrelation": lambda K: families.equicorrelation(K, 0.8),
    "identity": families.identity,
}
SEARCHES, QUICK_SEARCHES = 6, 1
MOST = 100  # steps of a search


def jobs(quick: bool) -> list[Job]:
    """K=128, n=5 for all noises, and K=1000, n=10 on toeplitz."""
    settings = [(noise, 128, 5) for noise in NOISES]
    if not quick:
        settings.append(("toeplitz", 1000, 10))
    count = QUICK_SEARCHES if quick else SEARCHES
    return [Job(f"joint, {noise}, K = {K}", partial(_compare, noise, K, n, MOST, count)) for noise, K, n in settings]


def _compare(noise: str, K: int, n: int, most: int, searches: int) -> list[Row]:
    """The policies take turns."""
    problem = Problem(NOISES[noise](K), shift=3.0, n_anomalies=n, budget=5.0)
    turns: dict[str, list[list[float]]] = {name: [] for name in POLICIES}
    for seed in range(searches + 1):
        for name in POLICIES:
            taken = _search(make_policy(name, problem, seed=seed), Simulator(problem, seed=seed), most)
            if seed:  # the first one warms up
                turns[name].append(taken)
    setting = {"noise": noise, "streams": K, "anomalies": n}
    return [setting | {"policy": name} | _row(turns[name], turns[POLICIES[0]]) for name in POLICIES]


def _search(policy: Policy, world: Simulator, most: int) -> list[float]:
    """The time of each step until the policy stops."""

    def step() -> None:
        c = policy.ask()
        policy.tell(c, world.measure(c))
        ended.append(policy.should_stop())

    ended: list[bool] = []
    taken: list[float] = []
    while len(taken) < most and not any(ended):
        taken.append(seconds(step))
    return taken


def _row(turns: list[list[float]], base: list[list[float]]) -> Row:
    """A load on the machine that comes and goes hits both sides of a round."""
    rounds = zip(turns, base, strict=True)
    return {
        "mean_s": float(np.mean(np.concatenate(turns))),
        "ratio": float(np.median([np.mean(mine) / np.mean(theirs) for mine, theirs in rounds])),
        "steps": sum(map(len, turns)),
    }


def tables(rows: list[Row]) -> list[Table]:
    """One line a policy and problem."""
    columns = (
        Column("noise", "noise", right=False),
        Column("streams", "K"),
        Column("anomalies", "n"),
        Column("policy", "policy", right=False),
        Column("mean_s", "ms a step", milliseconds),
        Column("ratio", "over ecc-aht", times),
        Column("steps", "steps"),
    )
    notes = ("A step is ask, measure, tell and should_stop; searches end there, or after 100 steps.",)
    return [Table("joint", "Exact inference: time of a step", columns, rows, notes)]
