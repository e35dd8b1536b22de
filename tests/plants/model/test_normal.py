"""Residuals are those of a regression on all others now and all sensors before; what is silent is integrated out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.plants.incident.alarms import run_engine
from eccaht.plants.model.fitting import fit_normal, longest_repeats
from eccaht.plants.model.residuals import Normal, before_of
from eccaht.plants.tuning import TUNING
from tests.plants.incident.worlds import normal_of, quiet


@pytest.fixture(scope="module")
def normal() -> Normal:
    return normal_of(5)


def test_residuals_are_those_of_an_explicit_regression(normal: Normal) -> None:
    K, covariance = 5, np.linalg.inv(normal.precision)
    x = quiet(5, 50, seed=3)
    shown = normal.residuals(x[1:], x[:-1])
    y = np.hstack([normal.scaled(x[1:]), normal.scaled(x[:-1])])
    for k in range(K):
        others = np.delete(np.arange(2 * K), k)
        weights = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, k])
        left = covariance[k, k] - covariance[k, others] @ weights
        assert_allclose(shown.r[:, k], (y[:, k] - y[:, others] @ weights) / np.sqrt(left), atol=1e-9)
        assert_allclose(normal.unit[k], np.sqrt(left))


def test_distances_are_those_of_the_window_and_of_what_the_one_before_leaves_open(normal: Normal) -> None:
    covariance = np.linalg.inv(normal.precision)
    now, cross, before = covariance[:5, :5], covariance[:5, 5:], covariance[5:, 5:]
    x = quiet(5, 20, seed=4)
    z, z_before = normal.scaled(x[1:]), normal.scaled(x[:-1])
    left = z - z_before @ np.linalg.solve(before, cross.T)
    open_ = now - cross @ np.linalg.solve(before, cross.T)
    expected = np.sqrt(np.einsum("tk,tk->t", left @ np.linalg.inv(open_), left))
    shown = normal.residuals(x[1:], x[:-1])
    assert_allclose(np.linalg.norm(shown.innovation, axis=1), expected, rtol=1e-9)
    alone = np.sqrt(np.einsum("tk,tk->t", z @ np.linalg.inv(now), z))
    assert_allclose(np.linalg.norm(shown.departure, axis=1), alone, rtol=1e-9)


def test_residuals_of_normal_windows_have_unit_variance(normal: Normal) -> None:
    x = quiet(5, 20_000, seed=5)
    assert_allclose(normal.residuals(x[1:], x[:-1]).r.std(axis=0), 1.0, atol=0.05)


def test_a_silent_sensor_leaves_the_residuals_of_the_others_without_it(normal: Normal) -> None:
    x = quiet(5, 30, seed=6)
    gone = x.copy()
    gone[:, 2] = np.nan
    shown = normal.residuals(gone[1:], gone[:-1])
    chosen = np.array([0, 1, 3, 4])
    alone = normal.of(chosen).residuals(x[1:, chosen], x[:-1, chosen])
    # both have the same numerator and differ by the unit: what is left open given sensor 2, and without it
    units = normal.of(chosen).unit / normal.unit[chosen]
    assert_allclose(shown.r[:, chosen] * units, alone.r, atol=1e-9)
    mine, other = (np.linalg.norm(each.innovation, axis=1) for each in (shown, alone))
    assert_allclose(mine, other, rtol=0.01)
    assert_allclose(shown.r[:, 2], 0.0, atol=1e-9)


def test_the_model_of_some_sensors_is_the_marginal(normal: Normal) -> None:
    chosen = np.array([3, 0])
    both = np.array([3, 0, 8, 5])
    part = normal.of(chosen)
    assert_allclose(np.linalg.inv(part.precision), np.linalg.inv(normal.precision)[np.ix_(both, both)], atol=1e-9)
    assert part.size == 2
    assert part.local is not None
    assert normal.local is not None
    scores = np.linalg.inv(normal.local.others)[np.ix_(chosen, chosen)]
    assert_allclose(np.linalg.inv(part.local.others), scores, atol=1e-9)
    assert np.array_equal(part.peaks.heights, normal.peaks.heights)


def test_without_a_window_before_the_others_alone_predict(normal: Normal) -> None:
    x = quiet(5, 10, seed=7)
    shown = normal.residuals(x, np.full_like(x, np.nan))
    expected = normal.scaled(x) @ normal.others * normal.unit
    assert_allclose(shown.r, expected, atol=1e-9)


def test_rounding_makes_larger_residuals_usual(normal: Normal) -> None:
    steps = np.array([0.5, 0.0, 0.0, 0.0, 0.0])
    wide = normal.rounded(steps)
    assert wide.unit[0] > normal.unit[0]
    assert (wide.unit >= normal.unit - 1e-12).all()
    assert (wide.tails.edge >= normal.tails.edge).all()
    x = quiet(5, 4000, seed=8)
    coarse = x.copy()
    coarse[:, 0] = np.round(x[:, 0] / steps[0]) * steps[0]
    for windows in (x, coarse):
        shown = wide.residuals(windows[1:], windows[:-1])
        assert (wide.tails(shown.r)[:, 0] > np.log(1000.0)).mean() < 3e-3


def test_rarities_of_windows_that_the_fit_has_not_seen_are_what_they_say(normal: Normal) -> None:
    x = quiet(5, 40_000, seed=9)
    e = normal.tails(normal.residuals(x[1:], x[:-1]).r)
    for share in (0.1, 0.01):
        assert_allclose((e > -np.log(share)).mean(axis=0), share, rtol=0.5)


@pytest.mark.parametrize("windows", [12, 40, 100, 300])
def test_short_histories_are_fitted(windows: int) -> None:
    found = fit_normal(quiet(6, windows))
    assert np.isfinite(found.peaks.limits(3.0 * windows)[0]).all()
    assert found.local is not None
    assert np.isfinite(found.residuals(np.full((1, 6), 5.0), np.zeros((1, 6))).r).all()


def test_a_sensor_that_stands_still_in_half_of_the_history_is_fitted() -> None:
    x = quiet(5, 600, seed=10)
    x[:300, 1] = 0.25  # still in the first half
    x[300:, 3] = -1.0  # and another one in the second
    found = fit_normal(x)
    assert (found.scale < 10.0).all()
    assert found.repeats[1] == found.repeats[3] == 300
    y = quiet(5, 100, seed=11)
    assert np.isfinite(found.tails(found.residuals(y[1:], y[:-1]).r)).all()


def test_what_a_sensor_did_in_one_fifth_of_the_history_alone_is_no_alarm() -> None:
    x = quiet(5, 600, seed=10)
    x[:, 1] = 0.0
    x[420:423, 1] = 1.0  # no fit to the other fifths knows what that means
    found, y = fit_normal(x), quiet(5, 60, seed=11)
    y[:, 1] = 0.0
    y[30:33, 1] = 1.0
    assert run_engine(found, y, every=1800.0).alarms == []
    y[30:33, 1] = 20.0
    assert [begun for begun, _, _ in run_engine(found, y, every=1800.0).alarms] == [30]


def test_windows_before_and_gaps() -> None:
    x = np.arange(8.0).reshape(4, 2)
    before = before_of(x, np.array([True, False, True]))
    assert np.isnan(before[[0, 2]]).all()
    assert_allclose(before[[1, 3]], x[[0, 2]])
    assert_allclose(before_of(x, first=np.array([7.0, 8.0]))[0], [7.0, 8.0])


def test_the_longest_repeat_is_counted_by_sensor() -> None:
    x = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [2.0, 4.0]])
    assert_allclose(longest_repeats(x), [3.0, 1.0])


def test_a_history_without_two_windows_in_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="no two windows that follow each other"):
        fit_normal(quiet(3, 40), np.zeros(39, dtype=bool))


def test_deviations_are_clipped_far_away(normal: Normal) -> None:
    assert np.abs(normal.scaled(np.full((1, 5), 1e9))).max() == TUNING.farthest_spreads
