"""The state of a watch of a plant: it goes on bit for bit, and what no watch wrote is refused."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.state import built_plant, plant_state
from eccaht.streams import Alarm
from tests.checks.fields import same
from tests.plants.watch.plants import plant, readings, scaled

NUMBERS = ("time", "onset", "onset_interval", "decision", "sizes", "beliefs", "names")
START = np.datetime64("2024-05-01T00:00", "us")


def incident() -> np.ndarray:
    """A step of sensor 3 in windows 100 to 149, sensor 2 silent later, sensor 1 stuck at the end."""
    rows = readings(260, 8)
    rows[100:150, 3] += 14.0
    rows[170:190, 2] = np.nan
    rows[200:, 1] = rows[199, 1]
    return scaled(rows)


def numbers(alarm: Alarm | None) -> list[Any] | None:
    return None if alarm is None else [np.asarray(getattr(alarm, name)) for name in NUMBERS]


@pytest.mark.parametrize(("moment", "dated"), [(20, True), (101, False), (130, True), (155, False), (230, True)])
def test_a_watch_goes_on_bit_for_bit(moment: int, dated: bool) -> None:
    watch, rows = PlantWatch(plant()[0]), incident()
    second = np.timedelta64(round(watch.model.seconds * 1e6), "us")
    times = [START + t * second if dated else None for t in range(len(rows))]
    for row, time in zip(rows[:moment], times[:moment], strict=True):
        watch.take(row, time)
    loaded = built_plant(watch.model, deepcopy(plant_state(watch)))
    for row, time in zip(rows[moment:], times[moment:], strict=True):
        a, b = loaded.take(row, time), watch.take(row, time)
        assert loaded.evidence == watch.evidence
        for one, other in ((a, b), (loaded.alarm, watch.alarm), (loaded.past, watch.past)):
            np.testing.assert_equal(numbers(one), numbers(other))
    assert same(plant_state(loaded), plant_state(watch))
    assert watch.past is not None
    assert watch.past.names == ("c4",)
    assert watch.standing[1][0] == "stuck"


def test_what_cannot_be_watched_is_refused() -> None:
    watch = PlantWatch(plant()[0])
    watch.take(np.zeros(6), None)
    with pytest.raises(ValueError, match="with every window"):
        watch.take(np.zeros(6), START)
    with pytest.raises(ValueError, match="at least one window"):
        PlantWatch(plant()[0], false_alarm_every=0.2)
    with pytest.raises(ValueError, match="what is normal"):
        PlantWatch(replace(plant()[0], normal=None))


@pytest.mark.parametrize(
    "damage",
    [
        {"standing": [{"sensor": 0, "kind": "asleep", "since": 3}]},
        {"standing": [{"sensor": 77, "kind": "stuck", "since": 3}]},
        {"false_alarm_every": 0.0},
    ],
)
def test_a_damaged_state_is_refused(damage: dict[str, Any]) -> None:
    watch = PlantWatch(plant()[0])
    for row in incident()[:120]:
        watch.take(row, None)
    sound = plant_state(watch)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        built_plant(watch.model, deepcopy(sound) | damage)
    assert "\n" not in str(error.value)
    sound["state"]["follow"]["onset"] = 10**6
    with pytest.raises(ValueError, match="alarm is damaged"):
        built_plant(watch.model, sound)
