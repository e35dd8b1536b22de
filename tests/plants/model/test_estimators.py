"""Each estimator against its formula, or against what it must recover."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import OAS, LedoitWolf, MinCovDet

from eccaht.base.arrays import Array
from eccaht.plants.model.estimators import ESTIMATORS, estimate
from eccaht.streams.covariance import Dense, LowRankPlusDiagonal


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


@pytest.mark.parametrize(("name", "kind"), [("ledoit-wolf", LedoitWolf), ("oas", OAS), ("min-cov-det", MinCovDet)])
def test_against_scikit_learn(name: str, kind: type) -> None:
    x = windows(100, 4)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    options = {"random_state": 0} if kind is MinCovDet else {}
    expected = kind(**options).fit(z).covariance_ * np.outer(x.std(axis=0), x.std(axis=0))
    assert estimate(x, name)[1].dense() == pytest.approx(expected)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_changing_units_changes_units(name: str) -> None:
    """Also why shrinkage works on correlations: no sensor is buried by the variance of another."""
    x, units = windows(300, 4), np.array([1e-3, 1.0, 50.0, 2.0])
    plain, scaled = (estimate(values, name, 0.0)[1].dense() for values in (x, x * units))
    assert scaled == pytest.approx(plain * np.outer(units, units), rel=1e-4)


def test_graphical_lasso_finds_which_sensors_are_tied() -> None:
    """In a chain only neighbours are tied given the others."""
    rng = np.random.default_rng(1)
    precision = np.eye(6) + np.diag([-0.45] * 5, 1) + np.diag([-0.45] * 5, -1)
    x = rng.multivariate_normal(np.zeros(6), np.linalg.inv(precision), 4000)
    found = np.linalg.inv(estimate(x, "graphical-lasso")[1].dense())
    partial = -found / np.sqrt(np.outer(found.diagonal(), found.diagonal()))
    tied = np.abs(np.subtract.outer(range(6), range(6))) == 1
    assert partial[tied].min() > 0.2
    assert np.abs(partial[np.abs(np.subtract.outer(range(6), range(6))) > 1]).max() < 0.05


def test_min_cov_det_ignores_a_few_wild_windows() -> None:
    x = np.random.default_rng(2).standard_normal((300, 3))
    wild = x.copy()
    wild[:15] = 1000.0
    assert estimate(wild, "min-cov-det")[1].dense() == pytest.approx(np.eye(3), abs=0.4)
    assert estimate(wild, "empirical")[1].dense()[0, 0] > 1000


def test_factor_recovers_a_factor_model_and_keeps_its_form() -> None:
    rng = np.random.default_rng(3)
    loads, noise = rng.standard_normal((12, 3)), rng.uniform(0.3, 1.0, 12)
    x = rng.standard_normal((20_000, 3)) @ loads.T + np.sqrt(noise) * rng.standard_normal((20_000, 12))
    S = estimate(x, "factor")[1]
    assert isinstance(S, LowRankPlusDiagonal)
    assert S.parameters()["factors"].shape == (12, 3)
    truth = loads @ loads.T + np.diag(noise)
    size = np.sqrt(np.outer(truth.diagonal(), truth.diagonal()))
    assert S.dense() / size == pytest.approx(truth / size, abs=0.04)


def test_two_sensors_and_duplicates() -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((200, 2))
    for name in ESTIMATORS:
        assert estimate(x, name)[1].size == 2
    twice = np.column_stack([x, x[:, 0]])
    assert isinstance(estimate(twice)[1], Dense)
    assert estimate(twice, "factor")[1].size == 3
    with pytest.raises(ValueError, match=r"not positive definite.*ridge of at least"):
        estimate(twice, "empirical", 0.0)


@pytest.mark.parametrize(
    ("values", "name", "words"),
    [
        (windows(9), "ledoit-wolf", "9 windows are too few"),
        (windows(20, 25), "empirical", "20 windows are too few for empirical with 25 sensors, which needs 26"),
        (windows(20, 12), "min-cov-det", "needs 26"),
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
