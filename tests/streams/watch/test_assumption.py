"""The check of the noise: exact likelihood ratios, rarely wrong, and it sees heavy tails and estimates."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_t, norm

from eccaht import Problem, Watch
from eccaht.base.arrays import Array
from eccaht.base.codec import restore, state_of
from eccaht.streams.watch.assumption import Assumption, Extent, log_ratios
from eccaht.streams.watch.sums import RecentSums
from tests.streams.watch.worlds import inverse, quiet, toeplitz

SIZE = 6
NOISE = toeplitz(SIZE, 0.5)


def windows_of(rows: Array) -> Extent:
    return RecentSums(NOISE, inverse(NOISE)).extent(rows)


def heavy(count: int, nu: float, seed: int = 0) -> Array:
    scales = np.sqrt((nu - 2.0) / np.random.default_rng(seed + 100).chisquare(nu, (count, 1)))
    return np.asarray(quiet(NOISE, count, seed=seed) * scales)


def test_extent_of_windows_with_silent_streams() -> None:
    rows = quiet(NOISE, 3)
    rows[1, [0, 3]], rows[2] = np.nan, np.nan
    found = windows_of(rows)
    for t, there in ((0, list(range(SIZE))), (1, [1, 2, 4, 5])):
        Q = inverse(NOISE[np.ix_(there, there)])
        x = rows[t, there]
        assert found.distances[t] == pytest.approx(x @ Q @ x)
        assert found.largest[t] == pytest.approx(np.abs(Q @ x / np.sqrt(Q.diagonal())).max())
    assert found.streams.tolist() == [SIZE, 4, 0]


def test_ratios_are_those_of_densities() -> None:
    """nu = 4 with the covariance of the problem; the first estimate, of 4 n windows, is t with 3 n degrees."""
    x = quiet(NOISE, 1)[0]
    distance = float(x @ inverse(NOISE) @ x)
    found = log_ratios(distance, 0.0, SIZE)
    plain = -0.5 * distance - 0.5 * np.linalg.slogdet(2 * np.pi * NOISE)[1]
    assert found[0] == pytest.approx(multivariate_t(shape=NOISE / 2.0, df=4).logpdf(x) - plain)
    assert found[3] == pytest.approx(multivariate_t(shape=NOISE * 4 / 3, df=3 * SIZE).logpdf(x) - plain)


@pytest.mark.parametrize("streams", [2, 6, 100])
def test_ratios_have_a_mean_of_at_most_one_under_the_assumption(streams: int) -> None:
    """By quadrature over d2; and over passing c or not, at most p = 0.01 of the time."""
    d2 = np.linspace(1e-9, chi2(streams).isf(1e-13), 10_001)
    by_distance = np.array([np.exp(log_ratios(d, 0.0, streams)[:6]) for d in d2.tolist()])
    mean = np.trapezoid(by_distance * chi2(streams).pdf(d2)[:, None], d2, axis=0)
    assert (mean < 1.0 + 1e-3).all()
    assert (mean > 0.9).all()
    passed, stayed = (np.exp(log_ratios(1.0, largest, streams)[6:]) for largest in (50.0, 0.0))
    np.testing.assert_allclose(0.01 * passed + 0.99 * stayed, 1.0)
    c = next(z for z in np.arange(2.0, 8.0, 1e-3) if log_ratios(1.0, z, streams)[6] > 0)
    assert 2.0 * streams * norm.sf(c) == pytest.approx(0.01, rel=0.02)


def fails(rows: Array) -> bool:
    check = Assumption()
    check.take(windows_of(rows))
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
    check.take(windows_of(rows))
    assert check.fails
    check.take_back(windows_of(rows[50:]))
    assert not check.fails


def test_state_is_kept() -> None:
    first, second = Assumption(), Assumption()
    first.take(windows_of(quiet(NOISE, 30)))
    restore(second, deepcopy(state_of(first)), {})
    for check in (first, second):
        check.take(windows_of(quiet(NOISE, 30, seed=1)))
    np.testing.assert_array_equal(state_of(first)["logs"], state_of(second)["logs"])
    assert state_of(first)["taken"] == state_of(second)["taken"] == 60
