"""What the others predict is a conditional expectation, scores and deviations are each other's inverse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eccaht.arrays import Array
from eccaht.incident.predictions import Predictions
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


def regression(R: Array, scores: Array, sensor: int, named: tuple[int, ...]) -> tuple[float, float]:
    """What a sensor should score given those present in a window that are neither named nor itself; the error of it."""
    others = [k for k in np.flatnonzero(~np.isnan(scores)) if k != sensor and k not in named]
    weights = np.linalg.solve(R[np.ix_(others, others)], R[others, sensor])
    return float(weights @ scores[others]), float(np.sqrt(R[sensor, sensor] - R[sensor, others] @ weights))


NAMED = pytest.mark.parametrize("named", [(), (1,), (0, 3), (3, 1, 4, 0)])


@NAMED
@pytest.mark.parametrize("gaps", [False, True])
def test_predictions_are_regressions_on_those_present_and_not_named(named: tuple[int, ...], gaps: bool) -> None:
    normal, rng = normal_of(K), np.random.default_rng(7)
    scores = rng.standard_normal((30, K))
    if gaps:
        scores[rng.random(scores.shape) < 0.3] = np.nan
        scores[0] = np.nan
    predictions = Predictions.of(evidence_of(normal, scores), named)
    for t in range(len(scores)):
        for k in range(K):
            expected, error = regression(normal.scatter, scores[t], k, named)
            assert_allclose(predictions.expected[t, k], expected, atol=1e-10)
            assert_allclose(predictions.spread[t, k], error, rtol=1e-9)


@NAMED
def test_weights_are_those_of_the_regression(named: tuple[int, ...]) -> None:
    normal, scores = normal_of(K), np.random.default_rng(8).standard_normal((20, K))
    predictions = Predictions.of(evidence_of(normal, scores), named)
    for k in range(K):
        weights = predictions.weights(k)
        assert_allclose(scores @ weights, predictions.expected[:, k], atol=1e-10)
        assert not weights[[k, *named]].any()
        strongest = predictions.strongest(k)
        assert [weight for _, weight in strongest] == [weights[j] for j, _ in strongest]
        assert not {j for j, _ in strongest} & {k, *named}


@NAMED
def test_readings_of_named_sensors_change_no_prediction(named: tuple[int, ...]) -> None:
    normal, rng = normal_of(K), np.random.default_rng(9)
    scores = rng.standard_normal((20, K))
    scores[rng.random(scores.shape) < 0.3] = np.nan
    other = scores.copy()
    other[:, list(named)] += 100.0
    other[5:9, list(named)] = np.nan
    plain, again = (Predictions.of(evidence_of(normal, each), named) for each in (scores, other))
    assert_allclose(plain.expected, again.expected, atol=1e-12)
    assert_allclose(plain.spread, again.spread, rtol=1e-12)


def test_without_correlation_nothing_is_predicted() -> None:
    normal, scores = normal_of(K), np.random.default_rng(3).standard_normal((20, K))
    predictions = Predictions.of(evidence_of(normal, scores, correlation=False), (1,))
    assert_allclose(predictions.expected, 0.0, atol=1e-12)
    assert_allclose(predictions.spread, np.tile(np.sqrt(normal.scatter.diagonal()), (20, 1)))
    assert all(not predictions.strongest(k) for k in range(K))


def test_bands_hold_so_many_readings() -> None:
    normal = normal_of(K)
    scores = np.random.default_rng(1).multivariate_normal(np.zeros(K), normal.scatter, 4000)
    middle, low, high = Predictions.of(evidence_of(normal, scores), ()).deviations(0)
    read = normal.deviation_of(0, scores[:, 0])
    assert abs(((read > low) & (read < high)).mean() - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert ((low < middle) & (middle < high)).all()
