"""What is said of each sensor: sizes with intervals that hold them, and nothing learnt from the named ones."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eccaht.arrays import Array
from eccaht.data.windows import Windows
from eccaht.incident.answer import Kind
from eccaht.incident.describe import Case, _size, courses, evidence_course, rankings, suspect
from eccaht.incident.judge import Judge
from eccaht.incident.onset import Onset
from eccaht.incident.quiet import Quiet
from eccaht.incident.usual import simulated
from eccaht.model.normal import Normal
from tests.incident.worlds import normal_of, quiet_worlds

K, T, START, STOP = 5, 160, 100, 140


@lru_cache(maxsize=1)
def world() -> tuple[Normal, Quiet]:
    normal = normal_of(K)
    return normal, quiet_worlds(normal, worlds=1)


def case_of(values: Array, named: tuple[int, ...], normal: Normal | None = None) -> Case:
    """A judged stretch in which these sensors are named, in raw units that are twice the robust ones."""
    plain, quiet = world()
    judge = Judge(plain if normal is None else normal, quiet)
    names = tuple(f"S{k}" for k in range(K))
    starts = np.datetime64("2024-01-01", "us") + np.arange(T) * np.timedelta64(60, "s")
    model: Any = SimpleNamespace(names=names, center=np.full(K, 10.0), scale=np.full(K, 2.0))
    judgement = replace(judge(values, np.zeros(T), START, STOP), named=named, standing={})
    windows = Windows(starts=starts, values=values, seconds=60.0, names=names)
    return Case(model, windows, judge, judgement, Onset(START, START, START), START, STOP)


def quiet_values(seed: int = 0) -> Array:
    return simulated(world()[0], T, seed)


def test_deviations_of_sensors_that_mostly_stand_still_are_measured_by_their_spread() -> None:
    normal, values = world()[0], quiet_values()
    knots, spread = normal.knots.copy(), normal.spread.copy()
    knots[:, 3] = np.geomspace(1e-9, 1e-8, len(knots))
    spread[3] = 0.5
    status = replace(normal, knots=knots, spread=spread)
    values[:, 3] = 0.0
    values[START:STOP, 3] = 1.0
    case = case_of(values, (3,), status)
    assert_allclose(suspect(case, 3, 0.9).reason.z_alone, 2.0)
    assert dict(rankings(case)["z_local"])["S3"] == pytest.approx(2.0)


def test_the_size_of_a_sensor_that_is_not_named_is_its_mean_whatever_its_course() -> None:
    values = quiet_values()
    values[START:STOP, 1] += 6.0 * np.random.default_rng(1).standard_normal(STOP - START)
    noisy, left = suspect(case_of(values, (1,)), 1, 0.9), suspect(case_of(values, ()), 1, 0.1)
    assert noisy.kind == left.kind == "noise"
    case = case_of(values, ())
    middle = case.predictions.deviations(1)[0][case.since]
    residual = values[START:STOP, 1] - middle
    assert_allclose(left.size, residual.mean())
    assert noisy.size > 4.0
    for each in (noisy, left):
        assert_allclose(each.size_raw, 2.0 * each.size)
        assert each.size_raw_interval.low < each.size_raw < each.size_raw_interval.high
    assert left.size_raw_interval.low < 0.0 < left.size_raw_interval.high
    assert noisy.size_raw_interval.low >= 0.0


@pytest.mark.parametrize("kind", ["step", "drift", "noise"])
@pytest.mark.parametrize("length", [40, 160])
def test_intervals_hold_the_size_as_often_as_they_say(kind: Kind, length: int) -> None:
    rng, runs, held = np.random.default_rng(2), 600, 0
    course = {"step": np.full(length, 3.0), "drift": 3.0 * np.arange(1, length + 1) / length, "noise": np.zeros(length)}
    spread = 3.0 if kind == "noise" else 0.7
    for _ in range(runs):
        residual = course[kind] + spread * rng.standard_normal(length)
        residual[rng.random(length) < 0.2] = np.nan
        _, interval = _size(residual, kind, 0.7, 1.0)
        held += interval.low <= 3.0 <= interval.high
    assert abs(held / runs - 0.95) < 4.5 * np.sqrt(0.05 * 0.95 / runs)


def test_one_window_is_not_certain_of_a_size() -> None:
    size, interval = _size(np.array([4.0]), "step", 0.5, 1.0)
    assert size == 4.0
    assert_allclose((interval.low, interval.high), (4.0 - 1.96 * 0.5, 4.0 + 1.96 * 0.5))
    size, interval = _size(np.full(3, np.nan), "step", 0.5, 1.0)
    assert np.isnan([size, interval.low, interval.high]).all()


def test_readings_of_named_sensors_say_nothing_about_the_others() -> None:
    values = quiet_values()
    values[START + 3 : START + 20, 0] = np.nan
    other = values.copy()
    other[START:STOP, [2, 4]] += 50.0
    plain, moved = (case_of(each, (2, 4)) for each in (values, other))
    for k in (0, 1, 3):
        assert_allclose(suspect(plain, k, 0.5).reason.expected, suspect(moved, k, 0.5).reason.expected)
    for one, again in zip(courses(plain, ["S0", "S2"]), courses(moved, ["S0", "S2"]), strict=True):
        assert_allclose(one.expected, again.expected)
        assert_allclose(one.high - one.low, again.high - again.low)
    gap = courses(plain, ["S1"])[0]
    width = gap.high - gap.low
    silent = np.isnan(values[plain.shown, 0])
    assert width[silent].mean() > width[~silent].mean()  # fewer sensors say less


def test_evidence_adds_up_from_the_onset_on() -> None:
    values = quiet_values()
    values[START:STOP, 2] += 6.0
    case = case_of(values, (2,))
    course = evidence_course(case)
    before = case.since.start
    assert_array_equal(course[:before], 0.0)
    assert (np.diff(course[before:]) > 0.0).mean() > 0.9
    assert_array_equal(evidence_course(case_of(values, ())), 0.0)
