"""How often the gap rule announces a wrong set: a count that the paper does not show and its theorem needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht import __version__
from eccaht.experiments.tables import Table, from_rows
from eccaht.paper.results import Results
from eccaht.policies import make_policy
from eccaht.problem import Problem
from eccaht.run.loop import identify
from eccaht.run.simulator import Simulator
from eccaht.statistics import clopper_pearson


def announce(
    problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]
) -> NDArray[np.int32]:
    """Search until the rule stops: the anomalous streams in the set it announces, and the measurements it took."""
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
        told = {"setting": setting.label, "alpha": results.experiment.policy_options[policy]["alpha"], "runs": runs}
        told |= {"wrong": wrong, "share": wrong / runs, "share_low": low, "share_high": high}
        rows.append(told | {"mean_measurements": float(measurements.mean())})
    return from_rows(rows)


def announcement_table(results: Results) -> Table:
    """One row a search."""
    rows = [
        {"setting": k, "run": run, "hits": hits, "measurements": n, "seed": results.seed, "version": __version__}
        for (k, _), found in results.cells.items()
        for run, (hits, n) in enumerate(found.tolist())
    ]
    return from_rows(rows)
