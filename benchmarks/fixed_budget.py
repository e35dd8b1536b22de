"""`python -m benchmarks.fixed_budget`: is the confidence after a fixed number of readings the share of right sets?

Prints the table of docs/measured/searches.md.
"""

from __future__ import annotations

import numpy as np

from eccaht import Problem, Simulator, families, make_policy, search
from eccaht.base.statistics import clopper_pearson

RUNS = 400
PROBLEMS = {
    "toeplitz 0.8, K = 32, n = 2": Problem(families.toeplitz(32, 0.8), shift=2.0, n_anomalies=2, budget=4.0),
    "toeplitz 0.6, K = 60, n = 4": Problem(families.toeplitz(60, 0.6), shift=2.0, n_anomalies=4, budget=5.0),
}
READINGS = {
    "joint": (5, 10, 20, 40),
    "ecc-aht": (5, 10, 20, 40),
    "od-linbai": (20, 40, 80, 160),
    "round-robin": (20, 40, 80, 160),
}


def cell(problem: Problem, policy: str, readings: int) -> str:
    """Right sets with an interval, and the mean confidence."""
    right, told = 0, []
    for seed in range(RUNS):
        world = Simulator(problem, seed=seed)
        options = {"readings": readings} if policy == "od-linbai" else {}
        found = search(make_policy(policy, problem, seed=seed, stopping=readings, **options), world.measure)
        right += np.array_equal(found.anomalies, world.anomalies)
        assert found.confidence is not None
        told.append(found.confidence.probability)
    low, high = clopper_pearson(right, RUNS)
    return f"{100 * right / RUNS:.1f} [{100 * low:.1f}, {100 * high:.1f}] / {100 * np.mean(told):.1f}"


def main() -> None:
    """One line a problem and policy."""
    for name, problem in PROBLEMS.items():
        for policy, readings in READINGS.items():
            cells = [f"{count}: {cell(problem, policy, count)}" for count in readings]
            print(f"| {name} | `{policy}` |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
