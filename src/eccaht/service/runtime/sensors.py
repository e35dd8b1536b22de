"""The sensors of a plant as they are now: state, last reading, when last heard, and the last windows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.service.runtime.views import PlantView, finite, stamp
from eccaht.service.store import history

SensorState = Literal["alarm", "silent", "stuck", "range", "shelved", "waiting", "normal"]
RECENT = 48  # windows of a sparkline
_DIGITS = 5  # a list of 200 sensors stays small


def sensor_rows(connection: sa.Connection, view: PlantView) -> list[dict[str, Any]]:
    """One row a sensor, in the order of the model."""
    model = view.model
    past = history.newest(connection, view.name, view.era, len(model.names), RECENT)
    raw = model.raw(past.values)
    found = []
    for k, name in enumerate(model.names):
        row = {"sensor": name, **_state(view, name), **_readings(view, name, past.starts, raw[:, k])}
        if row["state"] == "normal" and (row["heard"] is None or view.no_data is not None):  # nothing says that it is
            row["state"] = "waiting"
        found.append(row)
    return found


def _state(view: PlantView, sensor: str) -> dict[str, Any]:
    """What is wrong with a sensor, since when, or until when it is shelved."""
    clock, alarm = view.model.clock, view.alarm
    found: dict[str, Any] = {"state": "normal", "since": None, "until": None, "kind": None, "size": None}
    if alarm is not None and sensor in alarm.names:
        place = alarm.names.index(sensor)
        size = finite(float(alarm.sizes[place]))
        found |= {"state": "alarm", "since": stamp(clock, alarm.onset), "kind": alarm.kinds[place], "size": size}
    for kind, names in view.still.items():
        if sensor in names:
            found |= {"state": kind, "since": stamp(clock, names[sensor]), "kind": kind, "size": None}
    if sensor in view.shelved:
        found |= {"state": "shelved", "until": stamp(clock, view.shelved[sensor])}
    return found


def _readings(view: PlantView, sensor: str, starts: NDArray[np.int64], values: Array) -> dict[str, Any]:
    there = np.flatnonzero(~np.isnan(values))
    value: float | None = None
    heard: np.datetime64 | None = None
    if len(there):
        value, heard = float(values[there[-1]]), np.datetime64(int(starts[there[-1]]), "us")
    elif sensor in view.still["silent"]:  # for longer than the windows that are shown
        heard = view.still["silent"][sensor] - np.timedelta64(round(view.model.seconds * 1e6), "us")
    return {
        "value": value,
        "heard": stamp(view.model.clock, heard),
        "recent": [None if value != value else float(f"{value:.{_DIGITS}g}") for value in values.tolist()],
    }
