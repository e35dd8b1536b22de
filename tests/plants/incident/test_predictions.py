"""What the others predict is a conditional expectation, and named sensors take no part in it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.base.arrays import Array
from eccaht.plants.incident.describe import Predictions
from tests.plants.incident.worlds import normal_of, quiet

K = 5
NAMED = pytest.mark.parametrize("named", [(), (1,), (0, 3), (3, 1, 4, 0)])


def windows_of(rows: int, seed: int, *, gaps: bool = False) -> Array:
    values = quiet(K, rows, seed)
    if gaps:
        values[np.random.default_rng(seed).random(values.shape) < 0.3] = np.nan
        values[0] = np.nan
    return values


def regression(R: Array, z: Array, sensor: int, named: tuple[int, ...]) -> tuple[float, float]:
    """What a sensor should read given those present in a window that are neither named nor itself; the error of it."""
    others = [k for k in np.flatnonzero(~np.isnan(z)) if k != sensor and k not in named]
    weights = np.linalg.solve(R[np.ix_(others, others)], R[others, sensor])
    return float(weights @ z[others]), float(np.sqrt(R[sensor, sensor] - R[sensor, others] @ weights))


@NAMED
@pytest.mark.parametrize("gaps", [False, True])
def test_predictions_are_regressions_on_those_present_and_not_named(named: tuple[int, ...], gaps: bool) -> None:
    normal, values = normal_of(K), windows_of(30, 7, gaps=gaps)
    predictions = Predictions.of(normal, values, named)
    R, z = np.asarray(np.linalg.inv(normal.others), dtype=np.float64), (values - normal.centre) / normal.scale
    for t in range(len(values)):
        for k in range(K):
            expected, error = regression(R, z[t], k, named)
            assert_allclose(predictions.expected[t, k], expected, atol=1e-9)
            assert_allclose(predictions.spread[t, k], error, rtol=1e-9)


@NAMED
def test_weights_are_those_of_the_regression(named: tuple[int, ...]) -> None:
    normal, values = normal_of(K), windows_of(20, 8)
    predictions = Predictions.of(normal, values, named)
    z = (values - normal.centre) / normal.scale
    for k in range(K):
        weights = predictions.weights(k)
        assert_allclose(z @ weights, predictions.expected[:, k], atol=1e-9)
        assert not weights[[k, *named]].any()
        strongest = predictions.strongest(k)
        assert [weight for _, weight in strongest] == [weights[j] for j, _ in strongest]
        assert not {j for j, _ in strongest} & {k, *named}


@NAMED
def test_readings_of_named_sensors_change_no_prediction(named: tuple[int, ...]) -> None:
    values = windows_of(20, 9, gaps=True)
    other = values.copy()
    other[:, list(named)] += 100.0
    other[5:9, list(named)] = np.nan
    plain, again = (Predictions.of(normal_of(K), each, named) for each in (values, other))
    assert_allclose(plain.expected, again.expected, atol=1e-12)
    assert_allclose(plain.spread, again.spread, rtol=1e-12)


def test_bands_hold_so_many_readings() -> None:
    normal, values = normal_of(K, memory=0.0), quiet(K, 4000, 1, memory=0.0)
    middle, low, high = Predictions.of(normal, values, ()).band(0)
    share = ((values[:, 0] > low) & (values[:, 0] < high)).mean()
    assert abs(share - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert ((low < middle) & (middle < high)).all()
