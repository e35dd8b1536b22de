"""The yardstick measures what quiet stretches show: alarms are as rare as promised in worlds that fit the model."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from eccaht.incident.quiet import LENGTHS, PASSES, Quiet, by_chance, longest_repeats, quiet_of, sample_quiet
from eccaht.incident.seen import Seen
from eccaht.incident.usual import simulated
from eccaht.incident.views import Evidence, Stretch
from eccaht.model.normal import Normal
from tests.incident.worlds import normal_of, quiet_worlds

WORLDS = {"gaussian": normal_of(4), "heavy tails and memory": normal_of(4, tails=5.0, memory=0.5)}


@pytest.fixture(scope="module", params=list(WORLDS))
def world(request: pytest.FixtureRequest) -> tuple[Normal, Quiet]:
    normal = WORLDS[request.param]
    return normal, quiet_worlds(normal)


@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_quiet_stretches_pass_the_threshold_as_often_as_promised(world: tuple[Normal, Quiet], alpha: float) -> None:
    normal, quiet = world
    yardstick, n = quiet.yardstick(20), 300
    values = simulated(normal, n * 30 + 10, seed=77)
    evidences = [
        Evidence.of(normal, Stretch(values, np.zeros(len(values)), start, start + 20), yardstick.inflation)
        for start in range(10, n * 30, 30)
    ]
    passed = int((yardstick.statistic(Seen.of(evidences)) > yardstick.threshold(alpha)).sum())
    # the threshold was itself counted, on 300 stretches: both counts are chance
    counted = round(alpha * 300)
    assert stats.fisher_exact([[passed, n - passed], [counted, 300 - counted]]).pvalue > 0.005


def test_thresholds_rise_as_alarms_get_rarer(world: tuple[Normal, Quiet]) -> None:
    yardstick = world[1].yardstick(20)
    thresholds = [yardstick.threshold(alpha) for alpha in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-6)]
    assert (np.diff(thresholds) >= 0.0).all()
    # beyond what was counted, the statistic is e times as rare a unit further: it is a logarithm of a share
    assert_allclose(yardstick.threshold(1e-3) - yardstick.threshold(1e-3 * math.e), 1.0)


@pytest.mark.parametrize("phi", [0.0, 0.6])
def test_sums_vary_more_by_their_memory(phi: float) -> None:
    normal, length = normal_of(4, memory=phi), 20
    values = simulated(normal, 6010)
    stretches = [Stretch(values, np.zeros(6010), start, start + length) for start in range(10, 6010, length)]
    views = [Evidence.of(normal, stretch) for stretch in stretches]
    measured = np.mean([view.sums**2 / view.total.diagonal() for view in views], axis=0)
    lags = np.arange(1, length)
    expected = 1.0 + 2.0 * ((1.0 - lags / length) * phi**lags).sum()
    assert_allclose(measured.mean(), expected, rtol=4 * np.sqrt(2.0 / (4 * len(stretches))))


def test_inflation_is_never_below_that_of_independent_windows(world: tuple[Normal, Quiet]) -> None:
    assert (world[1].inflation >= 1.0).all()


def test_what_was_counted_at_a_length_is_what_is_usual_there(world: tuple[Normal, Quiet]) -> None:
    quiet = world[1]
    for place, length in enumerate(quiet.lengths.astype(int).tolist()):
        yardstick = quiet.yardstick(length)
        for name in ("bars", "tails", "power", "largest", "usual", "inflation", "alarms"):
            assert_allclose(getattr(yardstick, name), getattr(quiet, name)[place])
    low, between, high = (quiet.yardstick(length).power for length in (20, 28, 40))
    assert (between >= np.minimum(low, high)).all()
    assert (between <= np.maximum(low, high)).all()


def test_bars_are_passed_as_often_as_they_say() -> None:
    normal = normal_of(4)
    values = simulated(normal, 1500)
    sample = sample_quiet(normal, values, np.zeros(1500))
    quiet = quiet_of([sample], longest_repeats(values))
    seen, inflation = sample[20], quiet.yardstick(20).inflation
    own, free, step = quiet.bars[LENGTHS.index(20)]
    for gains, bars in ((seen.own, own), (seen.step(inflation), step)):
        assert_allclose((gains > bars[:, None, None]).mean(axis=(1, 2)), PASSES, atol=0.003)
    passed = (seen.free > free[:, None, None]).mean(axis=(1, 2))
    assert (passed <= np.array(PASSES) + 0.003).all()  # less often where R is too wide


def test_a_free_course_gains_by_chance_what_chi_squares_do() -> None:
    rng = np.random.default_rng(0)
    gains = 0.5 * ((rng.standard_normal((100_000, 10)) ** 2).sum(axis=1) - 10)
    assert_allclose((gains > by_chance(10)[:, None]).mean(axis=1), PASSES, rtol=0.1)


def test_stretches_seen_together_show_what_each_shows_alone() -> None:
    normal = normal_of(5)
    values = simulated(normal, 400)
    values[100:130, 1] = np.nan
    views = [
        Evidence.of(normal, Stretch(values, np.zeros(400), start, start + 20), np.linspace(1.0, 3.0, 5))
        for start in (60, 95, 105, 200, 300)
    ]
    seen = Seen.together([Seen.of(views[:2]), Seen.of(views[2:])])
    assert_allclose(seen.step(np.linspace(1.0, 3.0, 5)), [view.step() for view in views], rtol=1e-9, atol=1e-9)
    assert_allclose(seen.free, [view.free() for view in views])
    assert [len(half) for half in seen.halves()] == [2, 3]


def test_repeats_are_the_longest_runs_of_one_value() -> None:
    values = np.random.default_rng(0).integers(0, 2, (200, 5)).astype(float)
    values[:, 4] = 7.0
    expected = [max(len(list(run)) for _, run in groupby(column)) for column in values.T]
    assert_array_equal(longest_repeats(values), expected)
    values[50:150:2, 4] = np.nan  # silence is no repetition
    assert longest_repeats(values)[4] == 51


def test_a_short_history_measures_short_stretches_and_none_is_refused() -> None:
    normal = normal_of(3)
    values = simulated(normal, 60)
    quiet = quiet_of([sample_quiet(normal, values, np.zeros(60))], longest_repeats(values))
    assert set(quiet.lengths) < set(LENGTHS)
    with pytest.raises(ValueError, match="too few quiet windows"):
        quiet_of([sample_quiet(normal, values[:12], np.zeros(12))], longest_repeats(values))


@pytest.mark.parametrize(
    ("name", "value"),
    [("bars", np.nan), ("power", 0.0), ("tails", -1.0), ("inflation", np.inf), ("still", 0.0), ("lengths", 3.0)],
)
def test_damaged_yardsticks_are_refused(world: tuple[Normal, Quiet], name: str, value: float) -> None:
    quiet: Any = world[1]
    with pytest.raises(ValueError, match="quiet stretches must"):
        replace(quiet, **{name: np.full_like(getattr(quiet, name), value)})
    with pytest.raises(ValueError, match="quiet stretches must"):
        replace(quiet, **{name: getattr(quiet, name)[:-1]})
