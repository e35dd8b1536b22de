"""Kinds of trouble that are found and named, and of normal operation that raise no alarm."""

from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from eccaht.plants.watch.plant import PlantWatch
from eccaht.streams.watch.alarm import Alarm
from tests.plants.watch.plants import SENSORS, plant, readings, scaled

ONSET = 100
STEPS = np.linspace(0.5, 1.5, SENSORS)  # how far a change of the whole plant moves each sensor
TEN_MINUTES, A_DAY = np.timedelta64(600, "s"), 144  # windows


def _watched(values: Array, model: Model, times: NDArray[Any] | None = None) -> tuple[PlantWatch, list[Alarm]]:
    watch = PlantWatch(model)
    given = [None] * len(values) if times is None else times
    return watch, [alarm for x, time in zip(values, given, strict=True) if (alarm := watch.take(x, time)) is not None]


def _of_plant(values: Array) -> tuple[PlantWatch, list[Alarm]]:
    return _watched(values, plant()[0])


@pytest.mark.parametrize(
    "seed", [20, pytest.param(21, marks=pytest.mark.slow), pytest.param(22, marks=pytest.mark.slow)]
)
def test_a_replayed_sensor_is_named_where_sensors_share_their_variance(seed: int) -> None:
    """Its readings are as usual by themselves: those of another time."""
    values = scaled(readings(400, seed))
    values[ONSET:, 3] = scaled(readings(400, seed + 100))[ONSET:, 3]
    watch = PlantWatch(plant()[0], false_alarm_every=1000)
    alarms = [alarm for x in values if (alarm := watch.take(x, None)) is not None and alarm.time >= ONSET]
    assert alarms
    assert alarms[0].decision.tolist() == [3]


@pytest.mark.parametrize(
    "seed", [20, pytest.param(22, marks=pytest.mark.slow), pytest.param(23, marks=pytest.mark.slow)]
)
def test_a_slow_drift_of_one_sensor_is_named_as_one(seed: int) -> None:
    values = scaled(readings(360, seed))
    values[ONSET:, 3] += 0.02 * np.arange(len(values) - ONSET)
    watch, alarms = _of_plant(values)
    assert len(alarms) == 1  # small at first, so that the alarm may begin with a neighbour
    assert ONSET <= alarms[0].time <= ONSET + 120
    assert watch.alarm is not None
    assert watch.alarm.names[0] == watch.model.names[3]
    assert watch.alarm.kinds[0] in ("drift", "step")  # of a course that is steady enough for a change


@lru_cache(maxsize=1)
def _wandering() -> tuple[Model, Array]:
    """A plant all of whose levels wander, and windows to come."""
    steps = np.random.default_rng([0, 9]).standard_normal((2600, SENSORS))
    rows = readings(2600, 0) + 0.18 * np.cumsum(steps, axis=0)
    model = calibrate(rows[:2000], window="1rows")
    return model, np.asarray((rows[2000:] - model.center) / model.scale)


def test_levels_that_wander_as_in_the_history_are_followed_without_alarm() -> None:
    model, values = _wandering()
    assert len(_watched(values, model)[1]) <= 1  # a random walk leaves its history in the end


def test_levels_that_wander_do_not_hide_a_fault() -> None:
    model, values = _wandering()
    broken = values[:400].copy()
    broken[300:, 2] += 8.0
    watch, alarms = _watched(broken, model)
    assert [alarm.decision.tolist() for alarm in alarms] == [[2]]
    assert 300 <= alarms[0].time <= 305
    assert watch.alarm is not None  # the level has not learnt it


def test_a_daily_cycle_raises_no_alarm() -> None:
    days, known = 12, 10
    cycle = np.sin(2 * np.pi * np.arange(days * A_DAY) / A_DAY)[:, None]
    rows = readings(days * A_DAY, 1) + 6.0 * cycle * STEPS
    times = np.datetime64("2024-01-01", "us") + np.arange(len(rows)) * TEN_MINUTES
    history = {f"s{k}": rows[: known * A_DAY, k] for k in range(SENSORS)}
    table = pl.DataFrame({"time": times[: known * A_DAY], **history})
    model = calibrate(table, window="10min")
    new = slice(known * A_DAY, None)
    assert not _watched((rows[new] - model.center) / model.scale, model, times[new])[1]


def test_a_change_of_regime_that_the_history_contains_raises_no_alarm() -> None:
    regime = np.repeat(np.random.default_rng([4, 3]).integers(0, 2, 31), 100)[:, None]
    rows = readings(3100, 4) + 8.0 * regime * STEPS
    model = calibrate(rows[:2500], window="1rows")
    assert len(np.unique(regime[2500:])) == 2
    assert not _watched((rows[2500:] - model.center) / model.scale, model)[1]
