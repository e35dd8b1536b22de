"""Sensors over time beside the band that the others predict, in bins that a screen can show.

The band of a bin is that of its last window. Sensors that an alarm of the time names predict nothing, and while it goes
on their level is the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.incident.predictions import Predictions
from eccaht.incident.views import Evidence
from eccaht.live.documents import stamp
from eccaht.live.plant import PlantView
from eccaht.live.store import history
from eccaht.live.store.history import Past, Span
from eccaht.model.model import Model
from eccaht.model.normal import local_level

MOST = 20_000  # windows that are read at once; of more, some are left out evenly
_ALARMS = 50  # that may lie in a span


@dataclass(frozen=True)
class Incident:
    """An alarm: from its onset to its end, microseconds, and all sensors that it ever named."""

    onset: int
    over: int
    named: tuple[str, ...]


def series(
    connection: sa.Connection, view: PlantView, sensors: list[str], span: Span | None, points: int
) -> dict[str, Any]:
    """The courses of these sensors of the present model."""
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
    low, high = _bands(connection, view, found, last, chosen, whole=step == 1)
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


def incidents_in(connection: sa.Connection, view: PlantView, span: Span) -> list[Incident]:
    """The last alarms that lie in a span, at least in part."""
    events, _ = history.list_events(connection, view.name, None, 500, ("alarm", "joined", "over"))
    found: list[Incident] = []
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
                found.append(Incident(onset, over, tuple(name for name in named if name in view.sensors)))
            over, named = event["at"], set()
    return found


def correlation(model: Model, sensors: list[str]) -> list[list[float]]:
    """What these sensors share in normal operation."""
    chosen = model.places(sensors)
    if model.normal is None:
        raise ValueError("the model does not describe normal operation: calibrate it again")
    part = model.normal.scatter[np.ix_(chosen, chosen)]
    root = np.sqrt(part.diagonal())
    return np.asarray(part / np.outer(root, root)).tolist()


def _bands(
    connection: sa.Connection,
    view: PlantView,
    found: Past,
    shown: NDArray[np.intp],
    chosen: NDArray[np.intp],
    *,
    whole: bool,
) -> tuple[Array, Array]:
    """The ends of the bands of the windows `shown`, in robust units, (B, n) each; NaN where none can be told."""
    normal = view.model.normal
    assert normal is not None
    none = np.full((len(shown), len(chosen)), np.nan)
    if normal.level == "local" and not whole:  # the windows just before were not read
        return none, none.copy()
    span = Span(int(found.starts[0]), int(found.starts[-1]) + 1)
    incidents = incidents_in(connection, view, span)
    earlier = history.before(connection, view.name, view.era, span.start, normal.size, normal.width)
    values = np.vstack([earlier.values, found.values])
    starts = np.concatenate([earlier.starts, found.starts])
    places = shown + len(earlier.starts)
    shifts = view.shifts(starts[places])
    level = _levels(view, values, starts, places, incidents)
    deviations = values[places] - shifts - level
    wrong = {view.model.names.index(name) for incident in incidents for name in incident.named}
    ones = np.ones(normal.size)
    evidence = Evidence(
        normal=normal,
        deviations=deviations,
        innovations=np.zeros_like(deviations),
        scores=normal.scores(deviations),
        level=level,
        recent=ones,
        given=ones,
        inflation=ones,
    )
    predictions = Predictions.of(evidence, tuple(sorted(wrong)))
    ends = [predictions.deviations(k)[1:] for k in chosen.tolist()]
    base = (level + shifts)[:, chosen]
    return base + np.column_stack([low for low, _ in ends]), base + np.column_stack([high for _, high in ends])


def _levels(
    view: PlantView, values: Array, starts: NDArray[np.int64], places: NDArray[np.intp], incidents: list[Incident]
) -> Array:
    """The level of each of the windows at `places`, (B, K)."""
    normal = view.model.normal
    assert normal is not None
    if normal.level != "local":
        moments = view.model.clock.since_midnight(starts[places].astype("datetime64[us]"))
        return np.array(normal.level_at(values[:0], np.zeros(len(places)) if moments is None else moments))
    level = np.array([local_level(values[max(p - normal.width, 0) : p], normal.profile[0]) for p in places.tolist()])
    for incident in incidents:
        begin = int(np.searchsorted(starts, incident.onset))
        inside = np.flatnonzero((starts[places] >= incident.onset) & (starts[places] < incident.over))
        wrong = view.model.places(incident.named)
        level[np.ix_(inside, wrong)] = local_level(values[max(begin - normal.width, 0) : begin], normal.profile[0])[
            wrong
        ]
    return level


def _microseconds(model: Model, text: str | None, otherwise: int) -> int:
    """A time of an event."""
    if text is None:
        return otherwise
    return int(model.clock.parse(text).astype("datetime64[us]").astype(np.int64))


def _empty() -> dict[str, list[float | None]]:
    return {name: [] for name in ("value", "low", "high", "band_low", "band_high")}


def _plain(values: Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
