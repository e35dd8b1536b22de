"""Evidence: ratios are those of densities, and the sum is a martingale whatever is read."""

import math
from copy import deepcopy

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t, norm, t

from eccaht import Problem, UnknownShift, Watch
from eccaht.base.arrays import Array
from eccaht.measurements import AtMost
from eccaht.streams.watch.evidence import Evidence, Noise
from eccaht.streams.watch.readings import Readings
from tests.streams.watch.worlds import quiet, toeplitz

SIZE = 5
NOISE = toeplitz(SIZE, 0.6)
C = np.array([[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, -0.5, 2.0, 0.0, 0.3]])
COVARIANCE = C @ NOISE @ C.T
PROBLEM = Problem(NOISE, shift=1.0, n_anomalies=(1, 3), budget=1.0)


def whitened() -> tuple[Array, Array, Array]:
    """Readings y of C, in units of their noise, and their weights."""
    y = np.array([0.7, -1.1])
    noise = Readings(PROBLEM).whitened(C)
    return y, noise.root @ y, noise.weights


@pytest.mark.parametrize("degrees", [None, 5.0])
def test_of_one_stream_and_of_a_guess_are_ratios_of_densities(degrees: float | None) -> None:
    y, w, W = whitened()
    shifts = np.array([[1.0] * SIZE, [-0.5] * SIZE])
    noise = Noise(degrees)

    def density(mean: Array, spread: Array) -> float:
        if degrees is None:
            return float(multivariate_normal(mean, spread).logpdf(y))
        return float(multivariate_t(mean, spread * (degrees - 2.0) / degrees, degrees).logpdf(y))

    plain = density(np.zeros(2), COVARIANCE)
    found = noise.single(w, W, (W**2).sum(axis=0), shifts)
    expected = [[density(C[:, k] * d, COVARIANCE) - plain for k, d in enumerate(row)] for row in shifts.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    mean, variance = np.array([0.2, 0.0, 1.0, -0.3, 0.0]), np.array([0.5, 0.0, 0.1, 2.0, 0.0])
    expected_of_guess = density(C @ mean, COVARIANCE + (C * variance) @ C.T) - plain
    assert noise.several(w, W, mean, variance) == pytest.approx(expected_of_guess, rel=1e-9)


def test_of_streams_with_tails_of_their_own_are_ratios_of_products() -> None:
    _, w, W = whitened()
    mean, unit = np.array([0.2, 0.0, 1.0, -0.3, 0.0]), t(5.0, scale=np.sqrt(3.0 / 5.0))
    noise = Noise(5.0, apart=True)
    assert noise.several(w, W, mean, np.ones(SIZE)) == pytest.approx((unit.logpdf(w - W @ mean) - unit.logpdf(w)).sum())
    found = noise.single(w, W, (W**2).sum(axis=0), np.full((1, SIZE), 2.0))
    np.testing.assert_allclose(found[0], (unit.logpdf(w[:, None] - 2.0 * W) - unit.logpdf(w)[:, None]).sum(axis=0))


@pytest.mark.parametrize("shift", [0.6, UnknownShift(0.5)])
def test_the_sum_grows_by_one_a_step_whatever_is_asked_for(shift: float | UnknownShift) -> None:
    problem = PROBLEM.replace(shift=shift, measurements=AtMost(1))
    fresh, values = Watch(problem, readings=2, false_alarm_every=1e9), []
    assert fresh.evidence < 0.0  # works out the threshold, once
    for rows in quiet(NOISE, 3, 400, seed=5).transpose(1, 0, 2):
        watch, found = deepcopy(fresh), []
        for x in rows:
            watch.tell(watch.ask(), watch.ask() @ x)
            found.append(math.exp(watch._evidence.log))
        values.append(found)
    mean, error = np.mean(values, axis=0), np.std(values, axis=0) / math.sqrt(len(values))
    assert (np.abs(mean - [1.0, 2.0, 3.0]) < 4.0 * error).all()


@pytest.mark.parametrize("shift", [1.0, 4.0])
def test_false_alarms_are_as_rare_as_asked_for(shift: float) -> None:
    """150 expected at a mean time of 30, 75 at twice that; counts are Poisson."""
    problem, alarms = PROBLEM.replace(measurements=AtMost(1), shift=shift), 0
    fresh = Watch(problem, readings=2, false_alarm_every=30.0)
    assert fresh.evidence < 0.0  # works out the threshold, once
    watch = deepcopy(fresh)
    for x in quiet(NOISE, 4500, seed=3):
        if watch.tell(watch.ask(), watch.ask() @ x) is not None:
            alarms, watch = alarms + 1, deepcopy(fresh)
    assert 75 - 4 * 9 < alarms < 150 + 4 * 12


def test_expected_shifts_of_independent_streams() -> None:
    """After one reading the odds of each stream are the prior odds times its likelihood ratio."""
    evidence = Evidence(Problem(np.eye(3), shift=2.0, n_anomalies=(1, 2), budget=1.0))
    x = np.array([0.0, 1.0, 3.0])
    evidence.update(np.eye(3), x, np.ones(3))
    ratio = 1.0 + np.exp(norm(2.0).logpdf(x) - norm.logpdf(x))
    chance, mean, variance = evidence.expected(0.1)
    np.testing.assert_allclose(chance, 0.1 * ratio / (1.0 + 0.1 * ratio))
    np.testing.assert_allclose(mean, 2.0 * chance)
    np.testing.assert_allclose(variance, 4.0 * chance * (1.0 - chance))
