"""Each estimator against its formula, or against what it must recover."""

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.plants.model.estimators import ESTIMATORS, estimate
from eccaht.streams.covariance import Dense


def windows(T: int = 400, K: int = 6, seed: int = 0) -> Array:
    """Two common causes, noise, and scales that differ by a factor of a thousand."""
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((T, 2)) @ rng.standard_normal((2, K)) + 0.7 * rng.standard_normal((T, K))
    return mixed * 10.0 ** np.linspace(-2, 1, K) + np.arange(K)


def test_empirical_is_the_paper_s() -> None:
    x = windows()
    mean, S = estimate(x, "empirical")
    centred = x - x.sum(axis=0) / 400
    assert mean == pytest.approx(x.sum(axis=0) / 400)
    assert S.dense() == pytest.approx(centred.T @ centred / 399 + 1e-6 * np.eye(6))
    assert estimate(x, "empirical", 0.5)[1].dense() == pytest.approx(centred.T @ centred / 399 + 0.5 * np.eye(6))


def test_ledoit_wolf_by_its_formula() -> None:
    """Shrinkage of the correlations towards the identity, by the weight that minimises the expected error."""
    x = windows(60)
    spread = x.std(axis=0)
    z = (x - x.mean(axis=0)) / spread
    T, K = z.shape
    S = z.T @ z / T
    distance = np.sum((S - np.eye(K)) ** 2)
    noise = sum(np.sum((np.outer(row, row) - S) ** 2) for row in z) / T**2
    weight = min(noise, distance) / distance
    expected = ((1 - weight) * S + weight * np.eye(K)) * np.outer(spread, spread)
    assert 0.01 < weight < 0.5
    assert estimate(x)[1].dense() == pytest.approx(expected)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_changing_units_changes_units(name: str) -> None:
    """Also why shrinkage works on correlations: no sensor is buried by the variance of another."""
    x, units = windows(300, 4), np.array([1e-3, 1.0, 50.0, 2.0])
    plain, scaled = (estimate(values, name, 0.0)[1].dense() for values in (x, x * units))
    assert scaled == pytest.approx(plain * np.outer(units, units), rel=1e-4)


def test_two_sensors_and_duplicates() -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((200, 2))
    for name in ESTIMATORS:
        assert estimate(x, name)[1].size == 2
    twice = np.column_stack([x, x[:, 0]])
    assert isinstance(estimate(twice)[1], Dense)
    with pytest.raises(ValueError, match=r"not positive definite.*ridge of at least"):
        estimate(twice, "empirical", 0.0)


@pytest.mark.parametrize(
    ("values", "name", "words"),
    [
        (windows(9), "ledoit-wolf", "too few"),
        (windows(20, 25), "empirical", "needs 26"),
        (windows(), "ledoit", "did you mean 'ledoit-wolf'"),
        (np.ones((50, 2)), "ledoit-wolf", "do not vary"),
    ],
)
def test_what_cannot_be_estimated_is_refused(values: Array, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        estimate(values, name)


@pytest.mark.parametrize("ridge", [-1.0, float("nan"), "x"])
def test_odd_ridges(ridge: float) -> None:
    with pytest.raises(ValueError, match="ridge"):
        estimate(windows(), "empirical", ridge)
