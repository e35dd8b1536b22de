"""The error of an estimated mean is the same in all readings: likelihoods must be those of all readings together."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, load_policy, make_policy, policy_names
from eccaht.base.arrays import Array
from eccaht.streams.posterior import (
    EmpiricalMeans,
    PseudoLikelihood,
    SufficientStatistics,
    likelihood_of,
    statistics as module,
)

K, M = 5, 9
RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((K, K))
S = ROOT @ ROOT.T + np.eye(K)
PROBLEM = Problem(
    S, shift=RNG.uniform(1, 3, K), n_anomalies=2, budget=3.0, mean=RNG.random(K), estimated_from=M, calibrated=True
)


class Readings:
    """Weights, readings, and the covariance of all of them: each moment has noise of its own, all share the mean's."""

    def __init__(self, *moments: int, seed: int = 1) -> None:
        rng, count = np.random.default_rng(seed), sum(moments)
        self.C, self.y = rng.standard_normal((count, K)), 3.0 * rng.standard_normal(count)
        self.moment = np.repeat(np.arange(len(moments)), moments)

    @property
    def covariance(self) -> Array:
        own = self.C @ S @ self.C.T
        return np.where(self.moment[:, None] == self.moment, own, 0.0) + own / M

    def log_density(self, shifts: Array) -> float:
        left = self.y - self.C @ (PROBLEM.mean + shifts)
        return float(-0.5 * left @ np.linalg.solve(self.covariance, left))

    def told(self, belief: Any) -> None:
        for moment in range(self.moment[-1] + 1):
            here = self.moment == moment
            if here.sum() == 1:
                belief[0](self.C[here][0], self.y[here].item())
            else:
                belief[1](self.C[here], self.y[here])


@pytest.mark.parametrize("matrix", [True, False])
def test_sets_have_the_likelihood_of_all_readings_together(matrix: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = Readings(1, 1, 3, 1, 2, 1) if matrix else Readings(1, 1, 1)
    if not matrix:
        monkeypatch.setattr(module, "_MATRIX", 1)
    evidence = SufficientStatistics(PROBLEM)
    readings.told((evidence.add, evidence.add_together))
    assert evidence.has_matrix == matrix
    sets = np.array(list(combinations(range(K), 2)))
    shifts = [PROBLEM.shift * np.isin(np.arange(K), row) for row in sets]
    expected = [readings.log_density(x) - readings.log_density(np.zeros(K)) for x in shifts]
    np.testing.assert_allclose(evidence.log_likelihood(sets), expected, atol=1e-10)
    assert evidence.misfit == pytest.approx(-2.0 * readings.log_density(np.zeros(K)))


def test_vectors_count_like_readings_of_single_streams() -> None:
    evidence, apart = SufficientStatistics(PROBLEM), SufficientStatistics(PROBLEM)
    x = np.array([1.0, 4.0, np.nan, -2.0, 0.5])
    evidence.add_vector(x)
    apart.add_together(np.eye(K)[~np.isnan(x)], x[~np.isnan(x)])
    np.testing.assert_allclose(evidence.linear, apart.linear)
    assert evidence.matrix is not None
    assert apart.matrix is not None
    np.testing.assert_allclose(evidence.matrix, apart.matrix, atol=1e-12)
    assert (evidence.n_readings, evidence.n_vectors) == (4, 1)


def test_each_stream_alone_has_its_likelihood_of_all_readings_together() -> None:
    readings, belief, means = Readings(1, 2, 1, 1), PseudoLikelihood(PROBLEM), EmpiricalMeans(PROBLEM)
    start = belief.scores.copy()
    readings.told((belief.update, belief.update_together))
    readings.told((means.update, means.update_together))
    G, left = readings.covariance, readings.y - readings.C @ PROBLEM.mean
    nothing = readings.log_density(np.zeros(K))
    for k in range(K):
        alone = readings.log_density(PROBLEM.shift * (np.arange(K) == k))
        assert belief.scores[k] - start[k] == pytest.approx(alone - nothing)
        weights = np.linalg.solve(G, readings.C[:, k])
        assert means.scores[k] == pytest.approx(weights @ left / (weights @ readings.C[:, k]) / PROBLEM.shift[k])


def test_the_fit_of_the_truth_is_uniform() -> None:
    """With the sample variance of Gaussian vectors and one measurement, read again and again, it is exactly so."""
    rng, found = np.random.default_rng(3), []
    for _ in range(2000):
        X = rng.standard_normal((6, 2))
        options: dict[str, Any] = {"estimated_from": 6, "calibrated": True, "mean": X.mean(axis=0)}
        problem = Problem(np.cov(X.T), shift=2.0, n_anomalies=1, budget=1.0, **options)
        evidence = SufficientStatistics(problem)
        for y in 2.0 + rng.standard_normal(4):
            evidence.add(np.array([1.0, 0.0]), y)
        found.append(likelihood_of(evidence).fit(np.array([0])).chance)
    shares = np.searchsorted(np.sort(found), [0.1, 0.25, 0.5, 0.75, 0.9]) / len(found)
    np.testing.assert_allclose(shares, [0.1, 0.25, 0.5, 0.75, 0.9], atol=0.035)


def test_a_simulated_mean_is_off_as_an_estimated_one_is() -> None:
    exact = PROBLEM.replace(estimated_from=None)
    c, moved = np.array([1.0, -1.0, 0.5, 0.0, 0.0]), []
    for seed in range(1500):
        readings = [Simulator(each, seed=seed, anomalies=[0, 1]).measure(c) for each in (PROBLEM, exact)]
        moved.append(readings[0] - readings[1])
    assert np.var(moved) == pytest.approx(c @ S @ c / M, rel=0.12)


@pytest.mark.parametrize("name", [name for name in policy_names() if name not in ("hds", "oracle-design")])
def test_every_policy_takes_it_and_goes_on_from_a_file_bit_for_bit(name: str, tmp_path: Path) -> None:
    X = np.random.default_rng(4).standard_normal((20, 8))
    problem = Problem.from_samples(X, shift=2.0, n_anomalies=2, budget=4.0)
    policy, world = make_policy(name, problem, seed=1, stopping=None), Simulator(problem, seed=2)
    for _ in range(6):
        c = policy.ask()
        policy.tell(c, world.measure(c))
    policy.save(tmp_path / "policy")
    loaded = load_policy(tmp_path / "policy")
    for _ in range(4):
        c = policy.ask()
        np.testing.assert_array_equal(loaded.ask(), c)
        y = world.measure(c)
        policy.tell(c, y)
        loaded.tell(c, y)
    np.testing.assert_array_equal(loaded.scores, policy.scores)
