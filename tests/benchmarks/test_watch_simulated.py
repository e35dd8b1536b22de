"""Thresholds, counts and delays of simulated watching, against known distributions and published figures."""

import numpy as np
import pytest
from benchmarks.watch_rules import RULES, Mewma
from benchmarks.watch_simulated import (
    WORLDS,
    Counted,
    calibrate,
    count,
    draw_shifts,
    first_alarms,
    make_world,
    paths,
)
from numpy.testing import assert_allclose
from scipy.stats import chi2

from eccaht.base.randomness import rng_for

EVERY = 5000


def test_t2_has_the_threshold_of_its_distribution() -> None:
    """Windows are independent, so that the time to an alarm is geometric."""
    world = make_world("toeplitz 0.8", 5)
    statistics = paths(Mewma(world.given), world, 2000, 100, rng_for(0, "quiet"))
    threshold = calibrate(statistics, 100.0)
    assert chi2.sf(threshold, 5) == pytest.approx(0.01, rel=0.1)
    counted = count(paths(Mewma(world.given), world, 2000, 100, rng_for(1, "quiet")), threshold)
    assert counted.interval[0] < 1 / chi2.sf(threshold[0], 5) < counted.interval[1]


def test_several_statistics_alarm_equally_often() -> None:
    statistics = rng_for(0, "three").exponential((1.0, 2.0, 5.0), size=(500, 200, 3))
    thresholds = calibrate(statistics, 50.0)
    assert count(statistics, thresholds).mean_time == pytest.approx(50.0, rel=0.02)
    # each is beyond its threshold in a share p of the windows, 1 - (1 - p)^3 = 1/50
    assert_allclose(np.exp(-thresholds / (1.0, 2.0, 5.0)), 1 - (1 - 1 / 50) ** (1 / 3), rtol=0.15)


def test_counted_stops_at_the_first_alarm() -> None:
    statistics = np.array([[0.0, 2.0, 2.0], [0.0, 0.0, 0.0]])[:, :, None]
    assert count(statistics, np.array([2.0])) == Counted(1, 5)


def test_the_interval_of_no_alarm_has_no_end() -> None:
    low, high = Counted(0, 1000).interval
    assert low == pytest.approx(1000 / -np.log(0.025))
    assert high == np.inf


def test_first_alarms_of_t2_are_geometric() -> None:
    world = make_world("independent", 4)
    shifts = draw_shifts(4000, 4, 2, 1.0, rng_for(0, "streams"))
    assert_allclose(shifts.sum(axis=1), 2.0)
    assert_allclose(shifts.mean(axis=0), 0.5, atol=0.05)
    threshold = chi2.isf(0.02, 4)
    rule, shifts = Mewma(world.given), np.zeros((4000, 4))
    times = first_alarms(rule, world, shifts, np.array([threshold]), 400, rng_for(0, "noise"))
    assert times.mean() == pytest.approx(50.0, rel=0.06)
    never = first_alarms(Mewma(world.given), world, np.zeros((3, 4)), np.array([1e9]), 5, rng_for(0, "noise"))
    assert never.tolist() == [6, 6, 6]


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_have_unit_variances_and_draw_their_covariance(name: str) -> None:
    world = make_world(name, 10)
    assert_allclose(np.diag(world.covariance), 1.0)
    x = world.draw(40_000, rng_for(0, name))
    assert_allclose(x.T @ x / len(x), world.covariance, atol=0.05)
    assert np.allclose(world.given, world.covariance) == (name != "estimated")
    with pytest.raises(ValueError, match="choose one of"):
        make_world("none")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("Xie-Siegmund, rising", {1: 30.6, 3: 13.8, 10: 5.5, 30: 2.6}),
        ("largest GLR, rising", {1: 25.9, 3: 17.1, 10: 11.4, 30: 9.0}),
    ],
)
def test_delays_of_200_runs_with_the_full_window_are_reproduced(name: str, published: dict[int, float]) -> None:
    """K = 100 independent streams, shift 1; both sides have the errors of 200 runs, thresholds one of some 2 %."""
    world = make_world("independent")
    rule = RULES[name](world.given)
    thresholds = calibrate(paths(rule, world, 100, EVERY, rng_for(0, "quiet")), EVERY)
    for shifted, delay in published.items():
        shifts = draw_shifts(200, 100, shifted, 1.0, rng_for(0, "streams"))
        times = first_alarms(rule, world, shifts, thresholds, 1000, rng_for(0, f"{shifted}"))
        error = np.hypot(np.sqrt(2 / 200) * times.std(), 0.02 * delay + 0.05)
        assert abs(times.mean() - delay) < 3 * error
