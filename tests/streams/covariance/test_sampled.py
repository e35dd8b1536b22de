"""An estimate is calibrated: designs made with it show as much noise as it says, on average over samples."""

from typing import Any

import numpy as np
import pytest

from eccaht import Problem, families, make_policy
from eccaht.base.arrays import Array
from eccaht.streams.covariance.sampled import inflation, sampled

K = 12
TRUTHS: dict[str, Array] = {
    "toeplitz": families.toeplitz(K, rho=0.8).dense(),
    "equicorrelation": families.equicorrelation(K, rho=0.9).dense(),
    "unlike units": families.toeplitz(K, rho=0.5).dense() * np.outer(*2 * [10.0 ** np.linspace(-3, 3, K)]),
}


def drawn(covariance: Array, m: int, seed: int, freedom: float | None = None) -> Array:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m, K)) @ np.linalg.cholesky(covariance).T
    return rows if freedom is None else rows * np.sqrt((freedom - 2.0) / rng.chisquare(freedom, (m, 1)))


def understated(truth: Array, estimate: Array) -> float:
    """The noise of pair designs S^-1 (e_i - e_j), in units of each stream's deviation, over what the estimate says."""
    unit = np.sqrt(truth.diagonal())
    P = np.linalg.inv(estimate / np.outer(unit, unit))
    Q = P @ (truth / np.outer(unit, unit)) @ P
    seen, said = (M.diagonal()[:, None] + M.diagonal() - 2.0 * M for M in (Q, P))
    return float((seen[~np.eye(K, dtype=bool)] / said[~np.eye(K, dtype=bool)]).mean())


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("m", [K + 5, 2 * K, 20 * K])
@pytest.mark.parametrize("freedom", [None, 5.0])
def test_designs_show_the_noise_that_it_says(name: str, m: int, freedom: float | None) -> None:
    truth = TRUTHS[name]
    found = [understated(truth, sampled(drawn(truth, m, seed, freedom)).covariance) for seed in range(30)]
    assert 0.8 < np.mean(found) < (1.3 if m < 2 * K else 1.12)


def test_missing_values_leave_it_calibrated() -> None:
    truth, found = TRUTHS["toeplitz"], []
    for seed in range(20):
        rows = drawn(truth, 5 * K, seed)
        rows[np.random.default_rng(seed).random(rows.shape) < 0.15] = np.nan
        estimate = sampled(rows)
        found.append(understated(truth, estimate.covariance))
        assert 0.8 * 5 * K < estimate.worth < 0.9 * 5 * K
    assert 0.8 < np.mean(found) < 1.1


def test_many_vectors_give_the_truth() -> None:
    rows = 3.0 + drawn(TRUTHS["toeplitz"], 20_000, 0)
    found = sampled(rows)
    np.testing.assert_allclose(found.covariance, TRUTHS["toeplitz"], atol=0.05)
    np.testing.assert_allclose(found.mean, rows.mean(axis=0))


def test_missing_values_do_not_move_the_mean() -> None:
    """Given what is there, not at random by itself: the first stream lacks where the second is high."""
    rows = drawn(TRUTHS["equicorrelation"], 4000, 1)
    rows[rows[:, 1] > 0.0, 0] = np.nan
    assert abs(sampled(rows).mean[0]) < 0.1 < abs(np.nanmean(rows[:, 0]))


def test_the_inflation_of_a_sample_covariance_is_that_of_wishart_matrices() -> None:
    m, found, least = 40, [], np.eye(K)[0]
    for seed in range(1500):
        estimate = np.cov(drawn(np.eye(K), m, seed).T)
        c = np.linalg.solve(estimate, least)
        found.append((c @ c) / (c @ estimate @ c))
    assert inflation(m, K) == pytest.approx(np.mean(found), rel=0.12)


def test_frames_give_the_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(drawn(TRUTHS["toeplitz"], 60, 0), columns=[f"s{k}" for k in range(K)])
    problem = Problem.from_samples(frame, shift=2.0, n_anomalies=1, budget=2.0)
    assert (problem.names, problem.estimated_from) == (tuple(frame.columns), 60)
    np.testing.assert_array_equal(problem.mean, sampled(frame.to_numpy()).mean)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(5), "rows of a table"),
        (np.zeros((40, 3)), "one value in all vectors"),
        (np.ones((4, 3)), "at least 10 vectors"),
        (np.full((40, 3), np.nan), "there is none"),
        (np.where(np.arange(3) == 1, np.nan, np.random.default_rng(0).random((40, 3))), "stream 1 has 0 readings"),
        (np.full((40, 3), np.inf), "non-finite"),
    ],
)
def test_bad_vectors_are_refused_in_one_line(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        Problem.from_samples(X, shift=1.0, n_anomalies=1, budget=1.0)
    assert "\n" not in str(error.value)


def test_what_is_estimated_is_not_given_too() -> None:
    with pytest.raises(ValueError, match="leave out mean"):
        Problem.from_samples(np.eye(20), shift=1.0, n_anomalies=1, budget=1.0, mean=0.0)


def test_with_fewer_vectors_than_streams_a_search_still_ends() -> None:
    truth = TRUTHS["toeplitz"]
    problem = Problem.from_samples(drawn(truth, K - 2, 3), shift=6.0, n_anomalies=1, budget=2.0)
    policy, rng = make_policy("joint", problem, seed=1), np.random.default_rng(2)
    while not policy.should_stop():
        c = policy.ask()
        policy.tell(c, 6.0 * c[4] + np.sqrt(c @ truth @ c) * rng.standard_normal())
    assert policy.decision.tolist() == [4]
