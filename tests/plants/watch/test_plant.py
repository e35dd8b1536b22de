"""The watcher of models names what is wrong, and only that."""

import numpy as np
import pytest

import eccaht
from eccaht.plants.watch.plant import PlantWatch
from eccaht.streams.watch.alarm import Alarm
from tests.plants.incident.plants import pump_house
from tests.plants.watch.plants import plant, readings, scaled

ONSET = 100


def _watched(values: np.ndarray, times: np.ndarray | None = None) -> tuple[PlantWatch, list[Alarm]]:
    watch = PlantWatch(plant()[0])
    given = [None] * len(values) if times is None else times
    return watch, [alarm for x, time in zip(values, given, strict=True) if (alarm := watch.take(x, time)) is not None]


def test_a_quiet_plant_hardly_raises_an_alarm() -> None:
    alarms = [alarm for seed in range(1, 5) for alarm in _watched(scaled(readings(300, seed)))[1]]
    assert len(alarms) <= 2  # 0.24 are expected, of which three or more come once in 500 times


def test_a_step_of_one_sensor_is_named_with_its_onset() -> None:
    values = scaled(readings(160, 12))
    values[ONSET:, 3] += 6.0
    watch, alarms = _watched(values)
    assert len(alarms) == 1
    assert ONSET <= alarms[0].time <= ONSET + 5
    assert alarms[0].onset == ONSET
    assert alarms[0].decision[0] == 3
    assert watch.state == "changed"
    assert watch.alarm is not None
    assert watch.alarm.decision.tolist() == [3]
    assert watch.alarm.kinds == ("step",)
    assert watch.alarm.sizes[0] == pytest.approx(6.0, abs=1.0)


def test_an_alarm_is_over_when_readings_are_normal_again_and_the_next_one_is_found() -> None:
    values = scaled(readings(400, 3))
    values[ONSET : ONSET + 50, 0] += 8.0
    values[300:, 5] += 8.0
    watch, alarms = _watched(values)
    assert [alarm.decision.tolist() for alarm in alarms] == [[0], [5]]
    assert watch.past is not None
    assert watch.past.over is not None
    assert ONSET + 50 <= watch.past.over < 300


@pytest.mark.parametrize("how", ["silent", "absent"])
def test_a_missing_hour_raises_no_alarm(how: str) -> None:
    values = scaled(readings(300, 6))
    seconds = plant()[0].seconds
    times = np.datetime64("1970-01-01", "us") + np.arange(300) * np.timedelta64(int(seconds * 1e6), "us")
    if how == "silent":
        values[ONSET : ONSET + 60] = np.nan
    else:
        values, times = np.delete(values, slice(ONSET, ONSET + 60), axis=0), np.delete(times, slice(ONSET, ONSET + 60))
    watch, alarms = _watched(values, times)
    assert not alarms
    assert watch.time == 300


def test_windows_that_come_twice_count_once() -> None:
    values = scaled(readings(20, 7))
    times = np.datetime64("1970-01-01", "us") + np.arange(20) * np.timedelta64(1, "s")
    watch, _ = _watched(np.repeat(values, 2, axis=0), np.repeat(times, 2))
    assert watch.time == 20
    assert watch.n_late == 20


def test_a_sensor_beyond_everything_in_the_history_is_out_of_range_until_it_is_back() -> None:
    values = scaled(readings(200, 4))
    values[ONSET : ONSET + 40, 2] += 1000.0
    watch, alarms = _watched(values)
    assert ONSET <= alarms[0].time <= ONSET + 4
    assert alarms[0].decision.tolist() == [2]
    assert not watch.standing
    assert watch.state != "alarm"
    stood = PlantWatch(plant()[0])
    for x in values[: ONSET + 20]:
        stood.take(x, None)
    assert stood.standing[2][0] == "range"
    assert stood.state == "alarm"


def test_readings_that_are_rounded_more_than_the_history_are_found_out() -> None:
    values = readings(200, 9)
    model = plant()[0]
    watch = PlantWatch(model)
    for x in np.round(values):
        watch.take((x - model.center) / model.scale, None)
    assert any("rounded more than the history" in text for text in watch.cautions)


def test_a_pump_that_is_off_all_weekend_is_stuck_only_if_the_others_contradict_it() -> None:
    model = eccaht.calibrate(pump_house(0, 20), drills=0)
    for stopped, contradicted in ((pump_house(1, 7, (4, 5)), False), (pump_house(1, 7), True)):
        if contradicted:
            stopped[3 * 144 :, 1] = 0.0
        watch, stuck = PlantWatch(model), set()
        for x in model.prepare(stopped).values:
            watch.take(x, None)
            stuck |= {k for k, (kind, _) in watch.standing.items() if kind == "stuck"}
        assert stuck == ({1} if contradicted else set())
