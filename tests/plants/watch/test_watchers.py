"""Events from the watcher of a plant's model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eccaht.plants.data.windows import Sample
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session
from eccaht.plants.watch.watchers import WatchedPlant
from tests.plants.watch.plants import plant, readings, scaled

START = np.datetime64("1970-01-05T00:00:00", "us")


def test_a_plant_is_reported_by_the_same_events(tmp_path: Path) -> None:
    model = plant()[0]
    values = scaled(readings(420, 3))
    values[100:150, 0] += 8.0
    values[250:300, 2] = np.nan
    session = Session(model, WatchedPlant(PlantWatch(model)))
    second = np.timedelta64(round(model.seconds * 1e6), "us")
    events = []
    for t, row in enumerate(values):
        events += session.take(Sample(START + t * second, row), model.clock)
    reported = [(event.event, event.sensors, event.onset) for event in events]
    assert [event for event, *_ in reported] == ["alarm", "over", "silent", "speaking"]
    assert [sensors for _, sensors, _ in reported] == [("c1",), ("c1",), ("c3",), ("c3",)]
    assert reported[2][2] == model.clock.exact(START + 250 * second)
    assert events[0].sizes[0] == pytest.approx(8.0 * model.scale[0], rel=0.3)
    session.save(tmp_path / "state")
    loaded = Session.load(tmp_path / "state", model, WatchedPlant.restored)
    assert loaded.watcher.evidence == session.watcher.evidence
    assert (loaded.position, loaded.number) == (session.position, session.number)
