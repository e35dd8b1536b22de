"""What the paper's two theorems say of the gap rule, and no figure shows.

How often it stops with a wrong set, and how its stopping time grows as alpha falls, beside 1/Gamma*.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.statistics import clopper_pearson, estimate
from eccaht.research.experiments.tables import Table, from_rows
from eccaht.research.paper.results import Results
from eccaht.streams.limits.action import best_action
from eccaht.streams.policies import make_policy
from eccaht.streams.problem import Problem
from eccaht.streams.run.loop import identify, steps
from eccaht.streams.run.simulator import Simulator
from eccaht.streams.stopping import Gap


def announce(
    problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]
) -> NDArray[np.int32]:
    """Search until the rule stops: the number of anomalous streams in the final set, and the measurements it took."""
    policy = make_policy(name, problem, seed=seed, **options)
    world = Simulator(problem, seed=seed, names=[name])
    found = identify(policy, world.measure, horizon)
    return np.array([np.isin(found.anomalies, world.anomalies).sum(), found.n_measurements], dtype=np.int32)


def error_table(results: Results) -> Table:
    """The share of wrong sets in each setting, with its Clopper-Pearson interval."""
    rows = []
    for k, policy in results.experiment.cells:
        setting = results.experiment.settings[k]
        hits, measurements = results.cells[k, policy].T
        wrong, runs = int((hits < setting.n_anomalies).sum()), len(hits)
        low, high = clopper_pearson(wrong, runs)
        row = {"setting": setting.label, "alpha": results.experiment.policy_options[policy]["alpha"], "runs": runs}
        row |= {"wrong": wrong, "share": wrong / runs, "share_low": low, "share_high": high}
        rows.append(row | {"mean_measurements": float(measurements.mean())})
    return from_rows(rows)


def stopping_times(problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]) -> Array:
    """Measurements until the gap rule is met at the larger and at the smaller alpha, and Gamma* of the true set.

    A search that the horizon cuts off leaves NaN. Gamma* is the best single measurement with all anomalous streams on
    one side of the others (docs/limits.md), a proven lower bound.
    """
    world = Simulator(problem, seed=seed, names=[name])
    policy = make_policy(name, problem, seed=seed, stopping=None)
    search, times = steps(policy, world, horizon, obey_stopping=False), []
    for alpha in options["alphas"]:
        rule = Gap(alpha, rivals=problem.known_number * (problem.size - problem.known_number))
        while not rule.met(policy.lead, policy.n_told):
            if next(search, None) is None:
                return np.full(3, np.nan)
        times.append(policy.n_told)
    return np.array([*times, best_action(problem, world.anomalies, limited=True).rate])


def slopes(results: Results, setting: int) -> tuple[Array, int]:
    """Measurements for each nat of log(1/alpha), times Gamma* of the true set, one a run; 1 is what the theorem says.

    The second number counts the runs without a slope because the horizon cut them off.
    """
    (policy,) = results.experiment.policies
    largest, smallest = results.experiment.policy_options[policy]["alphas"]
    found = results.cells[setting, policy]
    first, last, rate = found[~np.isnan(found[:, 0])].T
    return (last - first) / math.log(largest / smallest) * rate, results.runs - len(rate)


def slope_table(results: Results) -> Table:
    """The geometric mean of the slopes of each setting, with its interval."""
    rows: list[dict[str, Any]] = []
    for k, setting in enumerate(results.experiment.settings):
        sample, lost = slopes(results, k)
        logs: list[float | None] = [None] * 3
        if sample.size:
            mean, interval = estimate(np.log(sample), rng=results.bootstrap())
            logs = [mean, *(interval or (None, None))]
        low_to_high = (None if x is None else float(np.exp(x)) for x in logs)
        named = dict(zip(("slope", "slope_low", "slope_high"), low_to_high, strict=True))
        rows.append({"setting": setting.label, "runs": results.runs, "not_stopped": lost, **named})
    return from_rows(rows)


def run_table(results: Results, **same: Any) -> Table:
    """One row a search; `same` are columns that are the same in each."""
    columns = results.experiment.columns
    rows = [
        {"setting": k, "run": run, **dict(zip(columns, found, strict=True)), **same}
        for (k, _), cell in results.cells.items()
        for run, found in enumerate(cell.tolist())
    ]
    return from_rows(rows)
