"""A plant of the service reports what the replay of a recording of the same rows reports."""

import asyncio
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import microseconds
from eccaht.plants.data.source import Arrays
from eccaht.plants.intake import Rows
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session
from eccaht.service.runtime import past
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.past import RECENT, sensor_rows
from eccaht.service.runtime.views import PlantView, severity, severity_now
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store
from eccaht.service.store.history import Span
from tests.service import plants
from tests.service.stores import emptied
from tests.service.test_exactly_once import abandoned, kept

SETPOINT, OTHER = "setpoint", "valve"
NAMES = (*plants.NAMES, SETPOINT, OTHER)
WINDOWS, EVERY = 60, 2000.0
Times = NDArray[np.datetime64]


def columns(values: Array) -> Array:
    """Readings to two decimals, and two columns that stay as they are."""
    return np.column_stack([np.round(values, 2), np.full(len(values), 7.5), np.full(len(values), 3.0)])


@lru_cache(maxsize=1)
def model() -> Model:
    rows = plants.WINDOWS * plants.ROWS
    times = plants.START - rows * plants.STEP + np.arange(rows) * plants.STEP
    return calibrate(Arrays(columns(plants.readings(rows, 0)), times, NAMES, zone="UTC"), window="2s")


def replayed(times: Times, values: Array) -> tuple[Array, list[Event]]:
    """The windows and events of the library, without the last window, of which the service waits for more."""
    found, data = model(), Arrays(values, times, NAMES, zone="UTC")
    windows = found.prepare(data)
    session, events = Session(PlantWatch(found, false_alarm_every=EVERY)), list[Event]()
    for sample in list(windows.samples())[:-1]:
        events += session.take(sample, found.clock)
    return windows.values[:-1], events


def served(store: Store, parts: list[Rows], lateness: float = 0.0, *, killed: bool = False) -> PlantView:
    """The plant after these rows; killed: the service is killed and started again after each part."""

    async def run() -> PlantView:
        engine = Runtime(store, Settings())
        await engine.start()
        digest, _ = await engine.add_model(model().to_bytes(), "plant.model", "test")
        await engine.put_plant("p", digest, PlantOptions(false_alarms=f"1/{EVERY:g}w", lateness=lateness), "test")
        for part in parts:
            taken = await engine.submit("p", part, source="test")
            assert taken.unknown == ()
            if killed:
                await abandoned(engine)
                engine = Runtime(store, Settings())
                await engine.start()
        view = engine.view("p")
        await engine.stop()
        return view

    return asyncio.run(run())


def split(times: Times, values: Array, size: int = 7) -> list[Rows]:
    return [Rows(times[k : k + size], NAMES, values[k : k + size]) for k in range(0, len(times), size)]


def test_readings_are_rounded_as_the_history_was(store: Store) -> None:
    times, values = plants.recording(WINDOWS)
    fine = columns(values)
    fine[:, :-2] = values
    windows, _ = replayed(times, fine)
    served(store, split(times, fine))
    stored = np.array([np.frombuffer(row[1], "<f8") for row in kept(store)[0]])
    np.testing.assert_allclose(stored, windows, rtol=1e-12, atol=1e-12)
    rounded, _ = replayed(times, columns(values))
    np.testing.assert_allclose(windows, rounded, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("lateness", [0.0, 3.0])
def test_a_constant_that_moves_is_reported_once_as_the_replay_reports_it(
    store: Store, lateness: float, killed: bool
) -> None:
    times, values = plants.recording(WINDOWS)
    values = columns(values)
    values[101, NAMES.index(SETPOINT)] = 8.0  # a single row, which may wait for its window while the service is killed
    values[150:, NAMES.index(OTHER)] = 4.0
    _, events = replayed(times, values)
    assert [event.sensors for event in events if event.event == "moved"] == [(SETPOINT,), (OTHER,)]
    end = Rows(times[-1:] + 100 * plants.STEP, NAMES, values[-1:]) if lateness else None
    served(store, [*split(times, values), *([end] if end else [])], lateness, killed=killed)
    found = [document for _, _, document in kept(store)[1]]
    texts = [(document["event"], document["time"], document["text"]) for document in found]
    assert texts[: len(events)] == [(event.event, event.time, event.text) for event in events]
    assert [document["number"] for document in found] == list(range(1, len(found) + 1))


def test_a_sensor_out_of_range_is_an_alarm_of_its_own(store: Store) -> None:
    times, values = plants.recording(30)
    values = columns(values)
    values[20 * plants.ROWS :, 3] += 60.0
    view = served(store, split(times, values))
    assert view.state == "alarm"
    assert {kind: list(names) for kind, names in view.still.items()} == {"stuck": [], "silent": [], "range": ["d"]}
    assert view.suspects[0]["sensor"] == "d"
    assert view.suspects[0]["kind"] == "range"


def test_the_list_of_sensors_has_state_and_last_reading_of_each(store: Store) -> None:
    times, values = plants.recording(80)
    values = columns(values)
    values[70 * plants.ROWS :, 1] += 5.0
    values[60 * plants.ROWS :, 2] = 10.5
    values[10 * plants.ROWS :, 3] = np.nan
    view = served(store, split(times, values))
    with store.read() as connection:
        rows = {row["sensor"]: row for row in sensor_rows(connection, view)}
    assert {name: row["state"] for name, row in rows.items()} == {
        "a": "normal", "b": "alarm", "c": "stuck", "d": "silent", "e": "normal"
    }  # fmt: skip
    assert rows["a"]["heard"] == rows["b"]["heard"] == "2026-03-01T08:02:36+00:00"  # the last window waits for more
    assert rows["a"]["value"] == pytest.approx(values[78 * plants.ROWS : 79 * plants.ROWS, 0].mean(), abs=0.1)
    assert rows["b"]["since"] == "2026-03-01T08:02:20+00:00"
    assert rows["b"]["size"] == pytest.approx(5.0, abs=1.5)
    assert rows["c"]["value"] == pytest.approx(10.5)
    assert rows["d"]["value"] is None
    assert rows["d"]["heard"] == "2026-03-01T08:00:18+00:00"  # longer ago than the windows that are listed
    assert all(len(row["recent"]) == RECENT for row in rows.values())
    assert severity_now(view) == "high"  # three sensors


def test_severity_grows_with_sensors_and_evidence_and_survives_a_restart(store: Store) -> None:
    assert [severity(*of) for of in ((1, 0.7), (1, 4.7), (2, 0.7), (1, 13.9), (3, 0.7))] == [
        "low", "medium", "medium", "high", "high"
    ]  # fmt: skip
    times, values = plants.recording(30, wrong=slice(20, 30))
    parts = split(times, columns(values))
    peak = served(store, parts).peak
    emptied(store)
    assert peak > 1.0
    assert served(store, parts, killed=True).peak == peak


def test_a_sensor_that_is_back_in_range_is_reported(store: Store) -> None:
    times, values = plants.recording(WINDOWS)
    values = columns(values)
    values[20 * plants.ROWS : 30 * plants.ROWS, 3] += 60.0
    view = served(store, split(times, values))
    assert not view.still["range"]
    kinds = [(document["event"], tuple(document["sensors"])) for _, _, document in kept(store)[1]]
    for kind in ("range", "alarm", "in range", "over"):
        assert (kind, ("d",)) in kinds


def test_a_sensor_that_is_stuck_predicts_nothing(store: Store) -> None:
    """The bands of the others are those that they have while it is silent."""
    times, values = plants.recording(WINDOWS)
    values = columns(values)
    bands = []
    for reading in (11.0, np.nan):
        values[20 * plants.ROWS :, 3] = reading
        emptied(store)
        view = served(store, split(times, values))
        assert list(view.still["stuck" if reading > 0 else "silent"]) == ["d"]
        with store.read() as connection:
            span = Span(microseconds(plants.START), 1 << 60)
            found = past.series(connection, view, ["a", "d"], span, 1 << 40)["series"]
        bands.append([found[name][end][25:] for name in ("a", "d") for end in ("band_low", "band_high")])
    np.testing.assert_allclose(bands[0], bands[1])
