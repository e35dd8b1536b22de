"""How often the gap rule announces a wrong set: a count that the paper does not show and its theorem needs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eccaht import __version__
from eccaht.experiments.tables import save_table
from eccaht.paper.results import Results
from eccaht.paper.spec import Experiment, Setting
from eccaht.policies import make_policy
from eccaht.run.loop import identify
from eccaht.run.simulator import Simulator

ALPHA, LONGEST, RUNS, SEED = 0.05, 1000, 200, 0
POLICY = "ecc-aht"
EXPERIMENT = Experiment(
    "stopping",
    "Wrong sets announced by the gap rule at alpha = 0.05",
    "table",
    (
        Setting("independent streams", "identity", {"K": 100}, 3, 5.0, 4.0),
        Setting("toeplitz 0.5", "toeplitz", {"K": 100, "rho": 0.5}, 3, 5.0, 4.0),
        Setting("toeplitz 0.8", "toeplitz", {"K": 100, "rho": 0.8}, 3, 5.0, 4.0),
    ),
    (POLICY,),
    1,
)


def stopping_errors(runs: int, seed: int) -> list[list[tuple[int, int]]]:
    """For each setting and run: how many of the announced streams are anomalous, after how many measurements."""
    with threadpool_limits(1):
        return [[_announced(setting, (seed, run)) for run in range(runs)] for setting in EXPERIMENT.settings]


def load_or_count(directory: Path, runs: int = RUNS, seed: int = SEED) -> Results:
    """Return the counts kept in directory/stopping, counted now if they are not there or from another version."""
    file = directory / "stopping" / "runs.csv"
    wanted = [(str(k), str(run)) for k in range(len(EXPERIMENT.settings)) for run in range(runs)]
    try:
        with file.open(newline="") as lines:
            kept = list(csv.DictReader(lines))
        same = all((row["seed"], row["version"]) == (str(seed), __version__) for row in kept)
        if not same or [(row["setting"], row["run"]) for row in kept] != wanted:
            raise ValueError("other runs")
        hits = np.array([int(row["hits"]) for row in kept]).reshape(-1, runs)
    except (OSError, ValueError, KeyError):
        counts = np.array(stopping_errors(runs, seed))
        _save(counts, file.parent, seed)
        hits = counts[..., 0]
    cells = {(k, POLICY): found.astype(np.int32)[:, None] for k, found in enumerate(hits)}
    return Results(EXPERIMENT, seed, cells)


def _announced(setting: Setting, seed: tuple[int, int]) -> tuple[int, int]:
    problem = setting.problem()
    policy = make_policy(POLICY, problem, seed=seed, stopping="gap", alpha=ALPHA)
    world = Simulator(problem, seed=seed, names=[POLICY])
    found = identify(policy, world.measure, LONGEST)
    return int(np.isin(found.anomalies, world.anomalies).sum()), found.n_measurements


def _save(counts: np.ndarray, directory: Path, seed: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    settings, runs = counts.shape[:2]
    labels, need = ([getattr(s, name) for s in EXPERIMENT.settings] for name in ("label", "n_anomalies"))
    wrong = (counts[..., 0] < np.array(need)[:, None]).sum(axis=1)
    ends = np.array([binomtest(int(w), runs).proportion_ci(0.95, method="exact") for w in wrong])
    summary = {"setting": np.array(labels), "alpha": np.full(settings, ALPHA), "runs": np.full(settings, runs)}
    summary |= {"wrong": wrong, "share": wrong / runs, "share_low": ends[:, 0], "share_high": ends[:, 1]}
    save_table(summary | {"mean_measurements": counts[..., 1].mean(axis=1)}, directory / "summary.csv")
    setting, run = np.indices((settings, runs))
    table = {"setting": setting, "run": run, "hits": counts[..., 0], "measurements": counts[..., 1]}
    table |= {"seed": np.full_like(run, seed), "version": np.full(run.shape, __version__)}
    save_table({name: column.ravel() for name, column in table.items()}, directory / "runs.csv")
