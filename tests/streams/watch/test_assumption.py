"""The check of the noise: exact likelihood ratios, rarely wrong, and it sees heavy tails and estimates."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.stats import multivariate_t, norm, t

from eccaht import Problem, Watch
from eccaht.base.arrays import Array
from eccaht.base.codec import restore, state_of
from eccaht.streams.watch.assumption import Assumption, log_ratios
from tests.streams.watch.worlds import quiet, toeplitz

SIZE = 6
NOISE = toeplitz(SIZE, 0.5)


def readings_of(rows: Array) -> Array:
    """In units of their noise."""
    return np.asarray(rows @ np.linalg.inv(np.linalg.cholesky(NOISE)).T)


def heavy(count: int, nu: float, seed: int = 0) -> Array:
    scales = np.sqrt((nu - 2.0) / np.random.default_rng(seed + 100).chisquare(nu, (count, 1)))
    return np.asarray(quiet(NOISE, count, seed=seed) * scales)


def test_ratios_are_those_of_densities() -> None:
    """Alternatives: t noise of whole steps, and of each reading, and larger variances."""
    w, found = np.array([0.5, -2.0, 1.0]), log_ratios(np.array([0.5, -2.0, 1.0]))
    plain = norm.logpdf(w).sum()
    assert found[0] == pytest.approx(multivariate_t(shape=np.eye(3) / 2.0, df=4).logpdf(w) - plain)
    assert found[3] == pytest.approx(t(4.0, scale=0.5**0.5).logpdf(w).sum() - plain)
    assert found[6] == pytest.approx(norm(0.0, 1.1**0.5).logpdf(w).sum() - plain)
    np.testing.assert_array_equal(log_ratios(np.zeros(0)), np.zeros(8))


def take(check: Assumption, rows: Array) -> None:
    for w in readings_of(rows):
        check.take(w)


def fails(rows: Array) -> bool:
    check = Assumption()
    take(check, rows)
    return check.fails


def test_gaussian_windows_pass_and_heavy_ones_fail() -> None:
    assert not any(fails(quiet(NOISE, 500, seed=seed)) for seed in range(20))
    assert all(fails(heavy(300, 5.0, seed)) for seed in range(20))
    assert fails(1.2 * quiet(NOISE, 500))  # a covariance that is too small
    assert fails(np.concatenate([quiet(NOISE, 1000), heavy(200, 5.0)]))  # heavy later


@pytest.mark.slow
def test_gaussian_windows_pass_for_long() -> None:
    """A caution is wrong in 1 of 1,000 watches at most; more than 3 of 400 would have a probability below 0.001."""
    assert sum(fails(quiet(NOISE, 5000, seed=seed)) for seed in range(400)) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_watches_of_heavy_noise_say_so(apart: bool) -> None:
    """Though windows of false alarms, the farthest ones, do not count."""
    size, said = 30, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scales = rng.chisquare(5, (500, size if apart else 1))
        watch = Watch(Problem(np.eye(size), shift=1.0, n_anomalies=1, budget=1.0), false_alarm_every=500)
        for row in rng.standard_normal((500, size)) * np.sqrt(3.0 / scales):
            watch.update(row)
        said += bool(watch.cautions)
    assert said >= 19


def test_what_belongs_to_a_fault_is_taken_back() -> None:
    rows, check = quiet(NOISE, 60), Assumption()
    rows[50:, 2] += 8.0
    take(check, rows)
    assert check.fails
    check.take_back(list(readings_of(rows[50:])))
    assert not check.fails


def test_state_is_kept() -> None:
    first, second = Assumption(), Assumption()
    take(first, quiet(NOISE, 30))
    restore(second, deepcopy(state_of(first)), {})
    for check in (first, second):
        take(check, quiet(NOISE, 30, seed=1))
    np.testing.assert_array_equal(state_of(first)["logs"], state_of(second)["logs"])
    assert state_of(first)["taken"] == state_of(second)["taken"] == 60
