"""Sample counts of the published implementation."""

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, make_policy
from eccaht.base.statistics import f1_score, first_reached
from eccaht.streams.covariance import Covariance
from eccaht.streams.run.loop import steps


@pytest.mark.parametrize(
    ("covariance", "published"), [(families.identity(100), 48.0), (families.toeplitz(100, 0.5), 40.0)]
)
def test_measurements_to_the_right_set(covariance: Covariance, published: float) -> None:
    """fig5a and fig5b: K=100, n=3, shift 5, B=4; mean of 20 runs against a published mean of 10 runs."""
    problem = Problem(covariance, shift=5.0, n_anomalies=3, budget=4.0)
    times = []
    for seed in range(20):
        policy, world = make_policy("ecc-aht", problem, seed=seed, stopping=None), Simulator(problem, seed=seed)
        hits = [np.isin(policy.decision, world.anomalies).sum() for _ in steps(policy, world, 500)]
        times.append(first_reached(f1_score(hits, 3, 3)) or 500)
    error = np.std(times, ddof=1) * np.sqrt(1 / 20 + 1 / 10)
    assert abs(np.mean(times) - published) < 3 * error
    assert abs(np.mean(times) - published) < 0.5 * published
