"""What docs/how-to/instruments.md cites: readings that a design for readout noise saves, and errors under constraints.

`python -m tests.streams.measurements.test_counted` prints the numbers of the page.
"""

import sys
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from eccaht import Problem, Simulator, families, make_policy, search
from eccaht.base.arrays import Array
from eccaht.streams.measurements import AtMost, Budget, Constraint, Levels, NonNegative, Readout

PAIRS, SEARCHES, ALPHA = {"joint": 60, "ecc-aht": 400}, 400, 0.05
RULES: dict[str, Constraint] = {
    "NonNegative()": NonNegative(),
    "AtMost(3)": AtMost(3),
    "Levels([-1, 0, 1])": Levels([-1, 0, 1]),
}


def readings(name: str, seed: int, **options: Any) -> tuple[int, bool]:
    """Readings until the policy stops, and whether it is right."""
    problem = Problem(families.toeplitz(100, 0.8), shift=3.0, n_anomalies=3, **options)
    world = Simulator(problem, seed=seed)
    result = search(make_policy(name, problem, seed=seed), world.measure, max_measurements=2000)
    return result.n_measurements, np.array_equal(result.anomalies, world.anomalies)


def paired(name: str, noise: float, runs: int) -> Array:
    """Readings with the paper's budget and with the design for the readout noise, same seeds, (runs, 2)."""
    return np.array(
        [
            (
                readings(name, seed, measurements=Budget(1.0), readout_noise=noise)[0],
                readings(name, seed, measurements=Readout(1.0, noise))[0],
            )
            for seed in range(runs)
        ],
        dtype=float,
    )


def errors(within: Constraint, searches: int) -> tuple[int, float]:
    """Wrong sets among so many searches that joint ended by its posterior, and the mean number of readings."""
    problem = Problem(families.toeplitz(24, 0.8), shift=3.0, n_anomalies=3, measurements=within)
    wrong, total = 0, 0
    for seed in range(searches):
        world = Simulator(problem, seed=seed)
        result = search(make_policy("joint", problem, seed=seed, alpha=ALPHA), world.measure, max_measurements=1000)
        wrong += not np.array_equal(result.anomalies, world.anomalies)
        total += result.n_measurements
    return wrong, total / searches


def saved(counts: Array) -> tuple[float, float]:
    """Mean readings saved and the half width of its 95 % interval."""
    difference = counts[:, 0] - counts[:, 1]
    return float(difference.mean()), 1.96 * float(difference.std(ddof=1)) / float(np.sqrt(len(difference)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_the_design_for_readout_noise_saves_readings(name: str) -> None:
    mean, half = saved(paired(name, 0.3, PAIRS[name]))
    assert mean - half > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_errors_under_constraints_are_compatible_with_alpha(name: str) -> None:
    wrong, _ = errors(RULES[name], SEARCHES)
    assert binomtest(wrong, SEARCHES, ALPHA, alternative="greater").pvalue > 0.01


if __name__ == "__main__":
    for what in sys.argv[1:] or [*PAIRS, *RULES]:
        if what in RULES:
            wrong, mean = errors(RULES[what], SEARCHES)
            interval = binomtest(wrong, SEARCHES).proportion_ci(0.95, "exact")
            print(what, wrong, f"{interval.low:.4f} {interval.high:.4f}", f"{mean:.1f} readings", flush=True)
            continue
        counts = paired(what, 0.3, PAIRS[what])
        print(what, counts.mean(axis=0), "saved {:.1f} +- {:.1f}".format(*saved(counts)), flush=True)
