"""The simulator draws from the distribution of docs/explanation/search.md."""

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from eccaht import Problem, Simulator, families
from eccaht.streams.measurements import Readout

PROBLEM = Problem(families.toeplitz(6, 0.7), shift=[1.0, -2.0, 3.0, 1.0, 1.0, 1.0], n_anomalies=2, budget=1.0, mean=0.5)


def test_readings_are_normal_with_the_stated_moments() -> None:
    c = np.array([0.3, -0.4, 0.2, 0.0, 0.0, 0.1])
    world = Simulator(PROBLEM, anomalies=[1, 2], seed=3)
    readings = np.array([world.measure(c) for _ in range(4000)])
    mean = 0.5 * c.sum() + 0.8 + 0.6
    sd = np.sqrt(c @ PROBLEM.covariance.dense() @ c)
    assert kstest((readings - mean) / sd, "norm").pvalue > 0.001


def test_whole_vectors_have_mean_and_covariance() -> None:
    drawn = Simulator(PROBLEM, anomalies=[1, 2], seed=4).sample(50_000)
    expected = np.full(6, 0.5) + np.array([0.0, -2.0, 3.0, 0.0, 0.0, 0.0])
    assert np.all(np.abs(drawn.mean(0) - expected) < 5 / np.sqrt(50_000))
    assert np.all(np.abs(np.cov(drawn.T) - PROBLEM.covariance.dense()) < 0.04)


def test_readings_of_one_moment_share_its_noise_and_have_readout_noise_of_their_own() -> None:
    problem = Problem(PROBLEM.covariance, shift=PROBLEM.shift, n_anomalies=2, mean=0.5, measurements=Readout(1.0, 0.6))
    C = np.array([[0.3, -0.4, 0.2, 0.0, 0.0, 0.1], [0.0, 0.5, 0.0, 0.0, -0.5, 0.0]])
    world = Simulator(problem, anomalies=[1, 2], seed=5)
    drawn = np.array([world.measure_many(C) for _ in range(20_000)])
    expected = C @ (0.5 + np.array([0.0, -2.0, 3.0, 0.0, 0.0, 0.0]))
    covariance = C @ problem.covariance.dense() @ C.T + 0.36 * np.eye(2)
    assert np.all(np.abs(drawn.mean(0) - expected) < 5 * np.sqrt(covariance.diagonal() / 20_000))
    assert np.all(np.abs(np.cov(drawn.T) - covariance) < 0.03)


def test_sets_are_uniform() -> None:
    counts = np.zeros((6, 6))
    for seed in range(3000):
        i, j = Simulator(PROBLEM, seed=seed).anomalies
        counts[i, j] += 1
    assert chisquare(counts[np.triu_indices(6, 1)]).pvalue > 0.001


def test_the_set_depends_on_the_seed_and_the_noise_also_on_the_names() -> None:
    c = np.eye(6)[0]
    one, same, other = (Simulator(PROBLEM, seed=7, names=names) for names in (["a"], ["a"], ["b"]))
    assert np.array_equal(one.anomalies, other.anomalies)
    first = one.measure(c)
    assert first == same.measure(c)
    assert first != other.measure(c)


@pytest.mark.parametrize("anomalies", [[1], [1, 1], [1, 6], [-1, 2], [1, 2, 3], [0.5, 1]])
def test_an_impossible_set_is_refused(anomalies: list[int]) -> None:
    with pytest.raises(ValueError, match=r"anomalous stream|anomalies must be"):
        Simulator(PROBLEM, anomalies=anomalies)


@pytest.mark.parametrize("c", [np.ones(5), np.full(6, np.nan), "c"])
def test_a_bad_measurement_is_refused(c: object) -> None:
    with pytest.raises(ValueError, match="measurement"):
        Simulator(PROBLEM).measure(c)  # type: ignore[arg-type]
