"""What the others predict is a conditional expectation, scores and deviations are each other's inverse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eccaht.incident.kinds import kind_of
from eccaht.incident.predictions import Prediction, residuals
from eccaht.model.normal import Normal
from tests.incident.worlds import evidence_of, normal_of

K = 5


def uneven() -> Normal:
    """Sensors with tails of their own."""
    rng = np.random.default_rng(4)
    return replace(normal_of(K), knots=np.cumsum(rng.exponential(size=(12, K)) ** 2 + 1e-6, axis=0))


def test_scores_and_deviations_are_inverse_far_beyond_the_history_too() -> None:
    normal = uneven()
    scores = 6.0 * np.random.default_rng(0).standard_normal((500, K))
    scores[0] = 0.0
    scores[1, 2] = np.nan
    deviations = normal.deviations_of(scores)
    assert_allclose(normal.scores(deviations), scores, rtol=1e-9, atol=1e-12)
    assert_allclose(normal.deviations_of(normal.scores(deviations)), deviations, rtol=1e-9)
    assert_array_equal(np.sign(deviations), np.sign(scores))
    for k in range(K):
        assert_array_equal(normal.deviation_of(k, scores[:, k]), deviations[:, k])


def test_scores_grow_by_the_logarithm_beyond_the_largest_knot() -> None:
    normal = uneven()
    far, farther = (normal.scores(times * normal.knots[-1:]) for times in (10.0, 100.0))
    assert (farther - far > 0.0).all()
    assert_allclose(farther - far, np.broadcast_to((farther - far)[0, 0], (1, K)))
    assert_allclose(normal.scores(1000.0 * normal.knots[-1:]) - farther, farther - far)


@pytest.mark.parametrize("named", [(), (1,), (0, 3), (0, 1, 3, 4)])
def test_predictions_are_conditional_expectations(named: tuple[int, ...]) -> None:
    normal = normal_of(K)
    kept = [k for k in range(K) if k == 2 or k not in named]
    Q = np.linalg.inv(normal.scatter[np.ix_(kept, kept)])  # regression by the precision of those that take part
    own = kept.index(2)
    expected = np.zeros(K)
    expected[kept] = -Q[own] / Q[own, own]
    expected[2] = 0.0
    prediction = Prediction.of(normal, 2, named)
    assert_allclose(prediction.weights, expected, atol=1e-12)
    assert_allclose(prediction.spread, Q[own, own] ** -0.5)
    assert not set(prediction.strongest()) & {2, *named}


def test_bands_hold_so_many_readings() -> None:
    normal = normal_of(K)
    scores = np.random.default_rng(1).multivariate_normal(np.zeros(K), normal.scatter, 4000)
    prediction = Prediction.of(normal, 0, ())
    middle, low, high = prediction.deviations(normal, prediction.scores(scores))
    read = normal.deviation_of(0, scores[:, 0])
    assert abs(((read > low) & (read < high)).mean() - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert ((low < middle) & (middle < high)).all()


def test_a_shift_is_what_remains_of_a_sensor() -> None:
    normal = normal_of(K)
    scores = np.random.default_rng(2).multivariate_normal(np.zeros(K), normal.scatter, 200)
    shifted = scores.copy()
    shifted[:, 1] += 2.0
    prediction = Prediction.of(normal, 1, (1,))
    plain, more = (residuals(evidence_of(normal, each), prediction) for each in (scores, shifted))
    assert_allclose(more - plain, 2.0)


# -- kinds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("length", [20, 60, 200])
@pytest.mark.parametrize("seed", range(3))
def test_kinds_are_told_by_their_course(sign: float, length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = 0.3 * rng.standard_normal(length)
    walk = 3.0 * np.sin(np.linspace(0.0, 12.0, length) + seed)
    assert kind_of(sign * 3.0 + noise) == "step"
    assert kind_of(sign * np.linspace(0.0, 4.0, length) + noise) == "drift"
    assert kind_of(sign * 20.0 * noise) == "noise"
    assert kind_of(walk + noise) == "free"
    gaps = sign * 3.0 + noise
    gaps[::4] = np.nan
    assert kind_of(gaps) == "step"


def test_too_little_to_tell_is_a_step() -> None:
    assert kind_of(np.array([1.0, -1.0, 1.0, -1.0])) == kind_of(np.zeros(30)) == kind_of(np.full(30, np.nan)) == "step"
