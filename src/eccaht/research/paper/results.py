"""Results of an experiment in memory, and the numbers that its tables, figures and verdicts share.

Two experiments test the paper's theorems about the gap rule, which no figure shows: how often it stops with a wrong
set (Theorem 4.2), and how its stopping time grows as alpha falls, beside 1/Gamma* (Theorem 4.3).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import Arrivals, arrivals, bca_interval, clopper_pearson, estimate, f1_score
from eccaht.research.experiments.comparison import TARGET, curve_steps, interval_columns, summary
from eccaht.research.experiments.tables import Table, from_rows
from eccaht.research.paper.experiment import Cell, Experiment
from eccaht.streams import Gap, Problem, Simulator, make_policy, pair_design, steps
from eccaht.streams.limits.mixture import best_action
from eccaht.streams.posterior import SufficientStatistics


@dataclass(frozen=True)
class Results:
    """All cells of one experiment: the hits after every measurement, (runs, horizon), or its columns, one row a run."""

    experiment: Experiment
    seed: int
    cells: Mapping[Cell, NDArray[Any]]

    def f1(self, setting: int, policy: str) -> Array:
        n = self.experiment.settings[setting].n_anomalies
        return f1_score(self.cells[setting, policy], n, n)

    @property
    def runs(self) -> int:
        """How often each cell was run; 0 where nothing runs."""
        return len(next(iter(self.cells.values()), ()))

    @cached_property
    def arrivals(self) -> dict[Cell, Arrivals]:
        """Times and final F1 of each run of a comparison, used by all tables, figures and verdicts."""
        return {cell: arrivals(self.f1(*cell), TARGET) for cell in self.experiment.cells}

    def times(self, policy: str, setting: int = 0, *, for_good: bool = False) -> tuple[Array, NDArray[np.bool_]]:
        """Measurements to F1 >= 0.95, one a run, and which runs were cut off: at the horizon."""
        found = self.arrivals[setting, policy]
        reached = found.for_good if for_good else found.first
        cut_off = np.array([time is None for time in reached])
        return np.array([time or self.experiment.horizon for time in reached], dtype=float), cut_off

    def sweep(self, policy: str, settings: Iterable[int], *, for_good: bool = False) -> tuple[Array, NDArray[np.bool_]]:
        """The same for several settings, (runs, settings)."""
        times, cut_off = zip(*(self.times(policy, int(k), for_good=for_good) for k in settings), strict=True)
        return np.stack(times, axis=1), np.stack(cut_off, axis=1)

    def bootstrap(self) -> np.random.Generator:
        """A fresh generator: every number uses the same resamples and depends on no other."""
        return rng_for(self.seed, "bootstrap")


def unlimited_budget(problem: Problem) -> float:
    """The smallest budget at which the L1 limit binds for no pair of streams."""
    free = problem.replace(budget=1e9)
    needed, (shift, K) = 0.0, (problem.shift, problem.size)
    for i in range(K - 1):
        for j in range(i + 1, K):
            weights = pair_design(free, i, j).weights
            needed = max(needed, 1e9 / float(shift[i] * weights[i] - shift[j] * weights[j]))
    return needed


def summary_table(results: Results) -> Table:
    """One row for each setting and policy."""
    return from_rows([_summary(results, *cell) for cell in results.experiment.cells])


def _summary(results: Results, k: int, policy: str) -> dict[str, Any]:
    setting, horizon = results.experiment.settings[k], results.experiment.horizon
    first, for_good, final = summary(results.arrivals[k, policy], horizon, results.seed)
    return {
        "setting": k,
        "label": setting.label,
        "x": None if np.isnan(setting.x) else setting.x,
        "policy": policy,
        **interval_columns("first", first, None),
        "first_censored": first.censored,
        **interval_columns("good", for_good, None),
        "good_censored": for_good.censored,
        **interval_columns("final_f1", final, None),
        "runs": results.runs,
        "horizon": horizon,
    }


def curve_table(results: Results) -> Table:
    """Mean F1 and its interval at some of the measurements, for each setting and policy."""
    steps = curve_steps(results.experiment.horizon)
    rows = []
    for k, policy in results.experiment.cells:
        f1 = results.f1(k, policy)[:, steps - 1]
        ends = bca_interval(f1, rng=results.bootstrap()).tolist() if results.runs > 1 else [[None] * len(steps)] * 2
        columns = zip(steps.tolist(), f1.mean(axis=0).tolist(), *ends, strict=True)
        rows += [(k, policy, *row) for row in columns]
    names = ("setting", "policy", "step", "mean", "low", "high")
    return from_rows([dict(zip(names, row, strict=True)) for row in rows])


def rank_table(results: Results) -> Table:
    return from_rows(
        [{"family": setting.label, **setting.ranks()._asdict()} for setting in results.experiment.settings]
    )


def error_table(results: Results) -> Table:
    rows = []
    for k, policy in results.experiment.cells:
        setting = results.experiment.settings[k]
        hits, measurements, _ = results.cells[k, policy].T
        wrong, runs = int((hits < setting.n_anomalies).sum()), len(hits)
        low, high = clopper_pearson(wrong, runs)
        row = {"setting": setting.label, "alpha": results.experiment.policy_options[policy]["alpha"], "runs": runs}
        row |= {"wrong": wrong, "share": wrong / runs, "share_low": low, "share_high": high}
        rows.append(row | {"mean_measurements": float(measurements.mean())})
    return from_rows(rows)


def stopped_search(problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]) -> Array:
    """Search until the rule stops: the anomalous streams in the final set, the measurements, and how many nats more
    likely the true set is by the exact likelihood.
    """
    world, evidence = Simulator(problem, seed=seed, names=[name]), SufficientStatistics(problem)
    policy = make_policy(name, problem, seed=seed, **options)
    for step in steps(policy, world, horizon):
        evidence.add(step.weights, step.reading)
    true, announced = evidence.log_likelihood(np.array([world.anomalies, policy.decision]))
    return np.array([np.isin(policy.decision, world.anomalies).sum(), policy.n_readings, true - announced])


def stopping_times(problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]) -> Array:
    """Measurements until the gap rule is met at the larger and at the smaller alpha, and Gamma* of the true set.

    A search that the horizon cuts off leaves NaN. Gamma* is the best single measurement with all anomalous streams on
    one side of the others (docs/explanation/limits.md), a proven lower bound.
    """
    world = Simulator(problem, seed=seed, names=[name])
    policy = make_policy(name, problem, seed=seed, stopping=None)
    search, times = steps(policy, world, horizon, obey_stopping=False), []
    for alpha in options["alphas"]:
        rule = Gap(alpha, rivals=problem.known_number * (problem.size - problem.known_number))
        while not rule.met(policy.lead, policy.n_readings):
            if next(search, None) is None:
                return np.full(3, np.nan)
        times.append(policy.n_readings)
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


def column_table(results: Results) -> Table:
    """The mean of each column in each setting over the runs in which it was seen."""
    rows: list[dict[str, Any]] = []
    for (k, _), found in results.cells.items():
        seen = [column[~np.isnan(column)] for column in found.T]
        means = (float(column.mean()) if column.size else None for column in seen)
        named = zip(results.experiment.columns, means, strict=True)
        rows.append({"setting": results.experiment.settings[k].label, "runs": results.runs, **dict(named)})
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
