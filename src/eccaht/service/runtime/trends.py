"""Readings of a plant as they came: means of windows in raw units, over any period and under any of its models."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants import Model, parse_model
from eccaht.service.runtime.views import PlantView, stamp
from eccaht.service.store import history, stretches
from eccaht.service.store.history import Span

MOST = 200_000  # windows that are read for one answer; of more, some are left out evenly
_GAP = 2.5  # windows, or bins, without a reading: no line is drawn across


def model_of_era(connection: sa.Connection, view: PlantView, digest: str) -> Model:
    """The model of an era of a plant."""
    if digest == view.model_digest:
        return view.model
    return _parsed(digest, history.model_content(connection, digest))


@lru_cache(maxsize=8)
def _parsed(digest: str, content: bytes) -> Model:
    return parse_model(content, digest[:8])


def trends(
    connection: sa.Connection, view: PlantView, sensors: list[str], span: Span | None, points: int
) -> dict[str, Any]:
    """Each sensor in at most so many bins: mean, least and largest window of each, so that no spike is lost.

    one_of: of how many windows one was read. Where windows are missing, a bin without values separates the others.
    """
    kept = history.span_of(connection, view.name, None, None)
    clock = view.model.clock
    length = round(view.model.seconds * 1e6)
    about = {
        "seconds": view.model.seconds,
        "first": None if kept is None else stamp(clock, kept.start),
        "last": None if kept is None else stamp(clock, kept.stop - 1 + length),
    }
    span = span or Span(0, 1)  # without windows
    one_of = max(-(-stretches.count_in(connection, view.name, span) // MOST), 1)
    starts, values = _readings(connection, view, sensors, span, one_of)
    if not len(starts):
        empty: dict[str, list[float]] = {"value": [], "low": [], "high": []}
        return {**about, "time": [], "series": dict.fromkeys(sensors, empty), "windows": 0, "one_of": 1}
    width = max(-(-(span.stop - span.start) // points), 1)
    first = np.flatnonzero(np.diff((starts - span.start) // width, prepend=-1))
    breaks = np.flatnonzero(np.diff(starts[first]) > _GAP * max(width, length * one_of)) + 1
    times = np.insert(starts[first], breaks, starts[first][breaks - 1] + max(width, length))
    courses = {}
    for k, name in enumerate(sensors):
        column = values[:, k]
        there = np.add.reduceat(~np.isnan(column), first, dtype=np.float64)
        total = np.add.reduceat(np.where(np.isnan(column), 0.0, column), first)
        mean = np.where(there > 0, total / np.maximum(there, 1.0), np.nan)
        parts = {"value": mean, "low": np.fmin.reduceat(column, first), "high": np.fmax.reduceat(column, first)}
        courses[name] = {part: _plain(np.insert(bins, breaks, np.nan)) for part, bins in parts.items()}
    shown = [stamp(clock, time) for time in times.tolist()]
    return {**about, "time": shown, "series": courses, "windows": len(starts), "one_of": one_of}


def _readings(
    connection: sa.Connection, view: PlantView, sensors: list[str], span: Span, one_of: int
) -> tuple[NDArray[np.int64], Array]:
    """Starts, (T,), and readings in raw units, (T, n), NaN for sensors that the model of the time did not have."""
    starts, values = [], []
    for era, digest in stretches.eras_in(connection, view.name, span):
        try:
            model = model_of_era(connection, view, digest)
        except ValueError:  # of an earlier version, whose units are not known any more
            continue
        known = [name for name in sensors if name in model.names]
        places = model.places(known)
        found = stretches.stretch(connection, view.name, era, span, places.tolist(), one_of)
        readings: Array = np.full((len(found.starts), len(sensors)), np.nan)
        readings[:, [sensors.index(name) for name in known]] = model.raw(found.values, places)
        starts.append(found.starts)
        values.append(readings)
    if not starts:
        return np.empty(0, dtype=np.int64), np.empty((0, len(sensors)))
    return np.concatenate(starts), np.concatenate(values)


def _plain(values: Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
