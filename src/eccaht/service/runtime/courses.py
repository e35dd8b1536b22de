"""Sensors over time beside the band that the others predict, in bins that a screen can show.

The band of a bin is that of its last window. Sensors that an alarm of that window names, or that are stuck or out of
range in it, predict nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants.incident.predictions import Predictions
from eccaht.plants.model.model import Model
from eccaht.service.runtime.documents import stamp
from eccaht.service.runtime.standing import PlantView
from eccaht.service.store import history
from eccaht.service.store.history import Past, Span

MOST = 20_000  # windows that are read at once; of more, some are left out evenly
_EVENTS, _ALARMS = 500, 50  # that are read, and that may lie in a span
_ENDED = {"stuck": "moving", "range": "in range"}  # events of sensors that predict nothing, and of their end


@dataclass(frozen=True)
class StoredIncident:
    """What was wrong from its onset to its end, microseconds: all sensors that an alarm ever named, or one that stood
    still or was out of range."""

    onset: int
    over: int
    named: tuple[str, ...]


def series(
    connection: sa.Connection, view: PlantView, sensors: list[str], span: Span | None, points: int
) -> dict[str, Any]:
    model = view.model
    chosen = model.places(sensors)
    size = len(model.names)
    found, step = Past(np.zeros(0, dtype=np.int64), np.zeros((0, size))), 1
    if span is not None:
        found, step = history.past(connection, view.name, view.era, span, size, MOST)
    if not len(found.starts) or span is None:
        return {"time": [], "series": {name: _empty() for name in sensors}, "one_of": 1}
    width = max(-(-(span.stop - span.start) // points), 1)
    first = np.flatnonzero(np.diff((found.starts - span.start) // width, prepend=-1))
    last = np.append(first[1:], len(found.starts)) - 1
    low, high = _bands(connection, view, found, last, chosen)
    courses = {}
    for n, k in enumerate(chosen.tolist()):
        center, scale = float(model.center[k]), float(model.scale[k])
        column = found.values[:, k]
        there = np.add.reduceat(~np.isnan(column), first, dtype=np.float64)
        total = np.add.reduceat(np.where(np.isnan(column), 0.0, column), first)
        parts = {
            "value": np.where(there > 0, total / np.maximum(there, 1.0), np.nan),
            "low": np.fmin.reduceat(column, first),
            "high": np.fmax.reduceat(column, first),
            "band_low": low[:, n],
            "band_high": high[:, n],
        }
        courses[model.names[k]] = {name: _plain(center + scale * part) for name, part in parts.items()}
    times = [stamp(model.clock, start) for start in found.starts[first].tolist()]
    return {"time": times, "series": courses, "one_of": step}


def incidents_in(connection: sa.Connection, view: PlantView, span: Span) -> list[StoredIncident]:
    """The last alarms of the present era that lie in a span, at least in part."""
    events = _events(connection, view, ("alarm", "joined", "over"))
    found: list[StoredIncident] = []
    over, named = 1 << 62, set[str]()
    for event in events:  # the newest first
        if event["event"] == "over":
            over, named = event["at"], set()
        named |= set(event["named"])
        if event["event"] == "alarm":
            onset = _microseconds(view.model, event["onset"], event["at"])
            if over < span.start or len(found) >= _ALARMS:
                break
            if onset < span.stop:
                found.append(StoredIncident(onset, over, tuple(name for name in named if name in view.sensors)))
            over, named = event["at"], set()
    return found


def correlation(model: Model, sensors: list[str]) -> list[list[float]]:
    """What these sensors share in normal operation."""
    chosen = model.places(sensors)
    if model.normal is None:
        raise ValueError("the model does not say what is normal: calibrate on a history of at least 40 windows")
    part = np.linalg.inv(model.normal.others)[np.ix_(chosen, chosen)]
    root = np.sqrt(part.diagonal())
    found: list[list[float]] = (part / np.outer(root, root)).tolist()
    return found


def _bands(
    connection: sa.Connection, view: PlantView, found: Past, shown: NDArray[np.intp], chosen: NDArray[np.intp]
) -> tuple[Array, Array]:
    """The ends of the bands of the windows `shown`, in robust units, (B, n) each."""
    normal = view.model.normal
    assert normal is not None
    span = Span(int(found.starts[0]), int(found.starts[-1]) + 1)
    starts = found.starts[shown]
    shifts = view.shifts(starts)
    values = found.values[shown] - shifts
    for wrong in (*incidents_in(connection, view, span), *_standing_in(connection, view, span)):
        inside = np.flatnonzero((starts >= wrong.onset) & (starts < wrong.over))
        values[np.ix_(inside, view.model.places(wrong.named))] = np.nan
    predictions = Predictions.of(normal, values, ())
    ends = [predictions.band(k)[1:] for k in chosen.tolist()]
    base = shifts[:, chosen]
    return base + np.column_stack([low for low, _ in ends]), base + np.column_stack([high for _, high in ends])


def _events(connection: sa.Connection, view: PlantView, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    """The last events of the present era, the newest first."""
    found, _ = history.list_events(connection, view.name, None, _EVENTS, kinds)
    begun = history.begun(connection, view.name, view.era)
    return [event for event in found if event["number"] > begun]


def _standing_in(connection: sa.Connection, view: PlantView, span: Span) -> list[StoredIncident]:
    """The sensors that were stuck or out of range in a span, at least in part."""
    events = _events(connection, view, (*_ENDED, *_ENDED.values()))
    found, ends = list[StoredIncident](), dict[tuple[str, str], int]()
    for event in events:  # the newest first
        for name in event["sensors"]:
            if event["event"] in _ENDED:
                over = ends.pop((event["event"], name), 1 << 62)
                onset = _microseconds(view.model, event["onset"], event["at"])
                if name in view.sensors and onset < span.stop and over > span.start:
                    found.append(StoredIncident(onset, over, (name,)))
            else:
                ends.update({(begun, name): event["at"] for begun, ended in _ENDED.items() if ended == event["event"]})
    return found


def _microseconds(model: Model, text: str | None, otherwise: int) -> int:
    if text is None:
        return otherwise
    return int(model.clock.parse(text).astype("datetime64[us]").astype(np.int64))


def _empty() -> dict[str, list[float | None]]:
    return {name: [] for name in ("value", "low", "high", "band_low", "band_high")}


def _plain(values: Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
