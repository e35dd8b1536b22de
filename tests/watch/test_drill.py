"""Drills of a watch are what a watch does that sees the same windows from the first on."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from eccaht.arrays import Array, Index
from eccaht.data.windows import Windows
from eccaht.incident.drilling import Ground
from eccaht.incident.faults import KINDS, Fault
from eccaht.randomness import rng_for
from eccaht.watch.drill import (
    WatchDrill,
    WatchDrilled,
    drill_watch,
    fork,
    named_by,
    stretch_of,
    total,
)
from eccaht.watch.drill_confidence import SETTLED, NamedSet, set_belief
from eccaht.watch.plant import PlantWatch
from tests.watch.plants import SENSORS, plant, readings

QUIET, SHORT, RUNS, EVERY = 260, 125, 7, 400
DISTURBED = slice(150, 160)  # windows in which somebody forgot that they were not quiet


def _new_watch() -> PlantWatch:
    model, _, rule = plant()
    return PlantWatch(model, rule, false_alarm_every=EVERY)


@lru_cache(maxsize=1)
def _quiet() -> Windows:
    rows = readings(QUIET, 11)
    rows[DISTURBED, 4] += 30.0
    return plant()[0].prepare(rows)


def _short() -> Windows:
    return _quiet()._pick(slice(0, SHORT), slice(None))


@lru_cache(maxsize=1)
def _drilled() -> WatchDrilled:
    return drill_watch(_new_watch(), _quiet(), runs=RUNS)


def test_alarms_in_quiet_windows_are_those_of_a_watch() -> None:
    watch, windows, times, on = _new_watch(), _quiet(), [], []
    for x, start in zip(windows.values, windows.starts, strict=True):
        before = watch.alarm
        watch.update(x, start)
        on.append(before is not None)
        if before is None and watch.alarm is not None:
            times.append(start)
    plain = _drilled().plain
    assert [alarm.time for alarm in plain.alarms if alarm.basis == "evidence"] == times
    assert windows.starts[DISTURBED.start] in times
    assert plain.windows - plain.free == sum(on)


@pytest.mark.parametrize("number", range(RUNS))
def test_each_fault_is_watched_as_if_from_the_first_window_on(number: int) -> None:
    windows, stretch = _quiet(), _drilled().stretch
    rng, watch = rng_for(0, "watch drill", str(number)), _new_watch()
    onset = int(rng.integers(watch.normal.width, QUIET - stretch + 1))
    for t in range(QUIET):
        if t >= onset and watch.alarm is None:
            break
        watch.update(windows.values[t], windows.starts[t])
    ground = Ground(windows.values, np.setdiff1d(Ground.of(windows.values).alive, list(watch.standing)))
    found = ground.faulty(KINDS[number % 6], t, t + stretch, rng)
    assert found is not None
    fault, shown = found
    drill = next(drill for drill in _drilled().plain.drills if drill.onset == t and drill.kind == fault.kind)
    assert (drill.sensors, drill.size) == (fault.sensors, fault.size)
    first = None
    for age in range(1, stretch + 1):
        alarm = watch.update(shown[t + age - 1], windows.starts[t + age - 1])
        if alarm is not None and first is None:
            first = age
            assert drill.raised is not None
            assert set(alarm.decision.tolist()) == set(drill.raised.sensors)
        named = {*watch.standing, *(() if watch.alarm is None else watch.alarm.decision.tolist())}
        if named & set(fault.sensors):
            assert drill.found_after == age
            break
    else:
        assert drill.found_after is None
    assert drill.raised_after == first


def test_no_fault_begins_while_an_alarm_is_on() -> None:
    watch, windows, on = _new_watch(), _quiet(), set()
    for t in range(QUIET):
        if watch.alarm is not None:
            on.add(t)
        watch.update(windows.values[t], windows.starts[t])
    assert on
    assert not on & {drill.onset for drill in _drilled().plain.drills}


def test_a_huge_fault_is_found_at_once_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def huge(rng: np.random.Generator, _: str, alive: Index, number: int) -> Fault:
        assert number >= 1
        return Fault("step", (int(rng.choice(alive)),), 50.0)

    monkeypatch.setattr("eccaht.incident.drilling.draw_fault", huge)
    drilled = drill_watch(_new_watch(), _short(), runs=4)
    assert drilled.plain.drills
    for drill in drilled.plain.drills:
        assert drill.raised is not None
        assert (drill.raised_after, drill.found_after) == (1, 1)
        assert drill.raised.sensors == drill.sensors
        assert drill.raised.basis == "evidence"


def test_the_watch_and_the_windows_stay_as_they_are() -> None:
    watch, windows = _new_watch(), _short()
    before = windows.values.copy()
    drill_watch(watch, windows, runs=1)
    assert watch.time == 0
    assert watch.alarm is None
    np.testing.assert_array_equal(windows.values, before)


def test_a_seed_gives_the_same_drills_and_another_one_others() -> None:
    first, again, other = (drill_watch(_new_watch(), _short(), runs=2, seed=seed) for seed in (3, 3, 4))
    assert repr(first) == repr(again)
    assert repr(first) != repr(other)


def test_steps_in_wandering_windows_are_those_of_the_others() -> None:
    drilled = _drilled()
    plain = {(drill.sensors, drill.size) for drill in drilled.plain.drills if drill.kind == "step"}
    assert {drill.kind for drill in drilled.wandering.drills} == {"step"}
    assert {(drill.sensors, drill.size) for drill in drilled.wandering.drills} <= plain
    assert drilled.wander > 0.0


def test_progress_ends_at_the_total() -> None:
    done: list[int] = []
    drill_watch(_new_watch(), _short(), runs=7, progress=done.append)
    assert sum(done) == total(SHORT, plant()[0].normal.width, 7)  # type: ignore[union-attr]


def test_a_copy_goes_on_by_itself() -> None:
    watch, windows = _new_watch(), _quiet()
    for x in windows.values[:100]:
        watch.update(x)
    copy, direct = fork(watch), _new_watch()
    for x in windows.values[:100]:
        direct.update(x)
    for x in windows.values[100:140]:
        copy.update(x + 1.0)
    for x in windows.values[100:140]:
        watch.update(x)
        direct.update(x)
    assert copy.evidence != watch.evidence
    assert watch.evidence == direct.evidence


def test_the_belief_in_a_set_is_that_of_independent_sensors() -> None:
    watch, x = _new_watch(), np.zeros(SENSORS)
    for row in _quiet().values[:100]:
        watch.update(row)
    x[2] = 40.0
    alarm = watch.update(_quiet().values[100] + x)
    assert alarm is not None
    expected = 1.0
    for k, belief in enumerate(alarm.beliefs.tolist()):
        expected *= belief if k in alarm.decision else 1.0 - belief
    assert set_belief(alarm.beliefs, alarm.decision) == pytest.approx(expected)
    named = named_by(watch, set())
    assert named == NamedSet(
        tuple(alarm.decision.tolist()), alarm.kinds, "evidence", set_belief(alarm.beliefs, alarm.decision)
    )


def test_sensors_that_stood_still_before_are_no_news() -> None:
    watch = _new_watch()
    values: Array = np.array(_quiet().values[:60])
    values[30:, 1] = np.nan
    for row in values:
        watch.update(row)
    assert set(watch.standing) == {1}
    assert named_by(watch, {1}) is None
    named = named_by(watch, set())
    assert named is not None
    assert named[:3] == ((1,), ("silent",), "silent")
    assert np.isnan(named.belief)


@pytest.mark.parametrize(("windows", "stretch"), [(120, 20), (239, 20), (240, 60), (659, 60), (660, 200), (10**5, 200)])
def test_a_fault_is_watched_for_as_long_as_the_data_allow(windows: int, stretch: int) -> None:
    assert stretch_of(windows, 60) == stretch


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"windows": lambda w: w._pick(slice(0, 100), slice(None))}, "need 120 quiet windows, and there are 100"),
        ({"windows": lambda w: w.of(w.names[::-1])}, "of the model's sensors"),
        ({"runs": 0}, "runs"),
        ({"runs": 5001}, "at most 5000 faults"),
        ({"seen": 1}, "must not have seen any window"),
    ],
)
def test_what_cannot_be_drilled_is_refused(change: dict[str, Any], message: str) -> None:
    watch = _new_watch()
    for x in _quiet().values[: change.get("seen", 0)]:
        watch.update(x)
    windows = change.get("windows", lambda w: w)(_quiet())
    with pytest.raises(ValueError, match=message) as error:
        drill_watch(watch, windows, runs=change.get("runs", 2))
    assert "\n" not in str(error.value)


def test_a_set_settles_so_many_windows_after_the_alarm() -> None:
    for drill in _drilled().plain.drills:
        assert isinstance(drill, WatchDrill)
        last = None if drill.raised_after is None else drill.raised_after + SETTLED
        assert (drill.settled is not None) == (last is not None and last <= _drilled().stretch)
