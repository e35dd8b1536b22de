"""Rarities are the counted shares of residuals as large, and grow without bound beyond them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.plants.model.detectors import POINTS, Tails


def test_rarities_are_counted_shares_up_to_the_edge() -> None:
    residuals = np.random.default_rng(0).standard_t(5, (20_000, 3)) * [1.0, 2.0, 0.1]
    tails = Tails.of(residuals)
    for share in (0.5, 0.2, 0.05, 0.02):
        sizes = np.quantile(np.abs(residuals), 1.0 - share, axis=0)
        assert_allclose(np.exp(-tails(sizes)), share, rtol=0.05)
    assert_allclose(np.exp(-tails(tails.edge)), 0.01, rtol=0.02)


@pytest.mark.parametrize("freedom", [3, 6])
def test_the_tail_beyond_is_that_of_new_residuals(freedom: int) -> None:
    rng = np.random.default_rng(1)
    tails = Tails.of(rng.standard_t(freedom, (50_000, 2)))
    beyond = np.mean(tails(rng.standard_t(freedom, (400_000, 2))) > np.log(1000.0))
    assert 0.5e-3 < beyond < 2e-3


def test_evidence_grows_without_bound_whatever_the_sign() -> None:
    tails = Tails.of(np.random.default_rng(2).standard_normal((2000, 1)))
    sizes = np.geomspace(1e-3, 1e9, 100)[:, None]
    rarities = tails(sizes)
    assert (np.diff(rarities, axis=0) >= 0).all()
    assert_allclose(tails(-sizes), rarities)
    assert rarities[-1] > 20.0 + rarities[50]


def test_each_sensor_is_counted_by_itself() -> None:
    rng = np.random.default_rng(3)
    calm = rng.standard_normal(5000)
    pump = np.where(np.arange(5000) % 50 == 0, 40.0, 0.01) * rng.standard_normal(5000)
    tails = Tails.of(np.column_stack([calm, calm[::-1], pump]))
    assert_allclose(tails(np.array([[2.0, 2.0, 40.0]]))[0, 0], Tails.of(calm[:, None])(np.array([[2.0]]))[0, 0])
    usual, rare = tails(np.array([[40.0, 40.0, 40.0]]))[0, [2, 0]]
    assert usual < 6.0 < 12.0 < rare


def test_a_floor_makes_small_deviations_usual_and_widening_too() -> None:
    residuals = 1e-6 * np.random.default_rng(4).standard_normal((1000, 2))
    tails = Tails.of(residuals, np.array([0.5, 0.0]))
    rarities = tails(np.array([[0.4, 0.4]]))[0]
    assert rarities[0] <= tails.base < rarities[1]
    assert_allclose(tails.widened(np.array([0.5, 0.5]))(np.array([[0.4, 0.4]]))[0] <= tails.base, True)
    assert (tails.widened(np.array([0.1, 3.0])).edge >= tails.edge).all()


def test_few_residuals_and_residuals_of_nothing_can_be_counted() -> None:
    for residuals in (np.zeros((6, 2)), np.ones((1, 2)), np.random.default_rng(5).standard_normal((12, 2))):
        assert np.isfinite(Tails.of(residuals)(np.array([[0.0, 1e6]]))).all()


def test_some_sensors() -> None:
    tails = Tails.of(np.random.default_rng(6).standard_normal((500, 4)))
    chosen = np.array([3, 1])
    x = np.array([[0.3, 5.0]])
    assert_allclose(tails.of_columns(chosen)(x), tails(np.array([[0.0, 5.0, 0.0, 0.3]]))[:, chosen])


GOOD = {"edge": np.ones(2), "shape": np.full(2, 3.0), "table": np.zeros((2, POINTS + 1)), "base": 4.0}
