"""What is asked of a plant: sensors now and over time, beside the band that the others predict, and alarms in depth.

Sensors are shown in bins; the band of a bin is that of its last window. Sensors that an alarm of that window names, or
that are stuck or out of range in it, predict nothing. An alarm has the reasons for it, earlier ones that were
alike, and a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import microseconds
from eccaht.base.presentation.text import listed
from eccaht.plants import Answer, Model, Windows, investigate_incident, parse_model
from eccaht.plants.incident.describe import SHOWN_BEFORE, Predictions
from eccaht.plants.show.document import incident_document as incident_document_of
from eccaht.plants.show.words import checks, confidence, reasons
from eccaht.plants.tuning import TUNING
from eccaht.service.runtime.views import PlantView, action_document, finite, moment, severity, stamp
from eccaht.service.store import history
from eccaht.service.store.history import Past, Span

MOST = 20_000  # windows of all sensors that are read at once; of more, some are left out evenly
MOST_OF_FEW = 200_000  # the same of the sensors that are asked for
_GAP = 2.5  # windows, or bins, without a reading: no line is drawn across
_FOR_EVER = 1 << 62
_EVENTS = 1000  # that are read for a band
_ACTIONS = 100  # of the plant, of which those of an incident are shown
_LOOKED, _SIMILAR = 500, 5  # earlier alarms that are compared, and that are shown
_PARTS = ("value", "low", "high", "band_low", "band_high")
_ENDED = {"stuck": "moving", "range": "in range"}  # events of sensors that predict nothing, and of their end


@dataclass(frozen=True)
class Wrong:
    """What was wrong from its onset to its end, microseconds: all sensors that an alarm ever named, or one that stood
    still or was out of range."""

    onset: int
    over: int
    named: tuple[str, ...]
    in_alarm: bool


def wrong_in(connection: sa.Connection, view: PlantView, span: Span, most: int | None = None) -> list[Wrong]:
    """What was wrong in a span, at least in part; most: events that are read, the last ones."""
    found, begun = list[Wrong](), dict[tuple[str, str], tuple[int, set[str]]]()

    def close(kind: str, sensor: str, over: int) -> None:
        onset, names = begun.pop((kind, sensor), (over, set()))
        if onset < min(over, span.stop) and over > span.start:
            known = tuple(name for name in view.sensors if name in names)
            found.append(Wrong(onset, over, known, kind == "alarm"))

    kinds = ("alarm", "joined", "over", *_ENDED, *_ENDED.values())
    for event, at in history.reported(connection, view.name, kinds, most):
        kind = event["event"]
        onset = at if event["onset"] is None else microseconds(view.model.clock.parse(event["onset"]))
        if kind == "over":
            close("alarm", "", at)
        elif kind == "alarm":
            begun["alarm", ""] = (onset, set(event["named"]))
        elif kind == "joined":
            begun.get(("alarm", ""), (at, set()))[1].update(event["named"])
        for name in event["sensors"]:
            if kind in _ENDED:
                begun.setdefault((kind, name), (onset, {name}))
            for one in (one for one, ended in _ENDED.items() if ended == kind):
                close(one, name, at)
    for kind, sensor in list(begun):
        close(kind, sensor, _FOR_EVER)
    return found


class _Bins(NamedTuple):
    """Windows in bins: the first of each, and of each sensor mean, least and largest, (B, n)."""

    first: NDArray[np.intp]
    mean: Array
    low: Array
    high: Array

    @staticmethod
    def of(starts: NDArray[np.int64], values: Array, span: Span, points: int) -> _Bins:
        first = np.flatnonzero(np.diff((starts - span.start) // _width(span, points), prepend=-1))
        there = np.add.reduceat(~np.isnan(values), first, axis=0, dtype=np.float64)
        total = np.add.reduceat(np.where(np.isnan(values), 0.0, values), first, axis=0)
        mean = np.where(there > 0, total / np.maximum(there, 1.0), np.nan)
        return _Bins(first, mean, np.fmin.reduceat(values, first, axis=0), np.fmax.reduceat(values, first, axis=0))


def _width(span: Span, points: int) -> int:
    return max(-(-(span.stop - span.start) // points), 1)


def series(
    connection: sa.Connection, view: PlantView, sensors: list[str], span: Span | None, points: int
) -> dict[str, Any]:
    """Each sensor in at most so many bins: mean, least, largest, and the ends of the band; `one_of`: of how many
    windows one was read."""
    model = view.model
    chosen = model.places(sensors)
    span = span or Span(0, 1)  # without windows
    one_of = max(-(-history.count_in(connection, view.name, span) // MOST), 1)
    found = history.past(connection, view.name, view.era, span, len(model.names), one_of=one_of)
    if not len(found.starts):
        return {"time": [], "series": {name: {part: [] for part in _PARTS} for name in sensors}, "one_of": 1}
    bins = _Bins.of(found.starts, found.values[:, chosen], span, points)
    last = np.append(bins.first[1:], len(found.starts)) - 1
    parts = (bins.mean, bins.low, bins.high, *_bands(connection, view, found, last, chosen))
    raw = {name: model.raw(part, chosen) for name, part in zip(_PARTS, parts, strict=True)}
    courses = {name: {part: _plain(raw[part][:, n]) for part in _PARTS} for n, name in enumerate(sensors)}
    times = [stamp(model.clock, start) for start in found.starts[bins.first].tolist()]
    return {"time": times, "series": courses, "one_of": one_of}


def trends(
    connection: sa.Connection, view: PlantView, sensors: list[str], span: Span | None, points: int
) -> dict[str, Any]:
    """Each sensor in raw units, under any model of the plant, in at most so many bins: mean, least and largest window,
    so that no spike is lost.

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
    one_of = max(-(-history.count_in(connection, view.name, span) // MOST_OF_FEW), 1)
    starts, values = _readings(connection, view, sensors, span, one_of)
    if not len(starts):
        empty: dict[str, list[float]] = {"value": [], "low": [], "high": []}
        return {**about, "time": [], "series": dict.fromkeys(sensors, empty), "windows": 0, "one_of": 1}
    first, *parts = _Bins.of(starts, values, span, points)
    width = max(_width(span, points), length)
    breaks = np.flatnonzero(np.diff(starts[first]) > _GAP * max(width, length * one_of)) + 1
    times = np.insert(starts[first], breaks, starts[first][breaks - 1] + width)
    value, low, high = (np.insert(part, breaks, np.nan, axis=0) for part in parts)
    courses = {
        name: {"value": _plain(value[:, k]), "low": _plain(low[:, k]), "high": _plain(high[:, k])}
        for k, name in enumerate(sensors)
    }
    shown = [stamp(clock, time) for time in times.tolist()]
    return {**about, "time": shown, "series": courses, "windows": len(starts), "one_of": one_of}


def _readings(
    connection: sa.Connection, view: PlantView, sensors: list[str], span: Span, one_of: int
) -> tuple[NDArray[np.int64], Array]:
    """Starts, (T,), and readings in raw units, (T, n), NaN for sensors that the model of the time did not have."""
    starts, values = [], []
    for era, digest in history.eras_in(connection, view.name, span):
        model = model_of_era(connection, view, digest)
        known = [name for name in sensors if name in model.names]
        places = model.places(known)
        found = history.past(connection, view.name, era, span, len(model.names), places=places.tolist(), one_of=one_of)
        readings: Array = np.full((len(found.starts), len(sensors)), np.nan)
        readings[:, [sensors.index(name) for name in known]] = model.raw(found.values, places)
        starts.append(found.starts)
        values.append(readings)
    if not starts:
        return np.empty(0, dtype=np.int64), np.empty((0, len(sensors)))
    return np.concatenate(starts), np.concatenate(values)


def model_of_era(connection: sa.Connection, view: PlantView, digest: str) -> Model:
    if digest == view.model_digest:
        return view.model
    return _parsed(digest, history.model_content(connection, digest))


@lru_cache(maxsize=8)
def _parsed(digest: str, content: bytes) -> Model:
    return parse_model(content, digest[:8])


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
    for wrong in wrong_in(connection, view, span, _EVENTS):
        inside = np.flatnonzero((starts >= wrong.onset) & (starts < wrong.over))
        values[np.ix_(inside, view.model.places(wrong.named))] = np.nan
    predictions = Predictions.of(normal, values, ())
    ends = [predictions.band(k)[1:] for k in chosen.tolist()]
    base = shifts[:, chosen]
    return base + np.column_stack([low for low, _ in ends]), base + np.column_stack([high for _, high in ends])


def _plain(values: Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def incident_rows(
    connection: sa.Connection, plant: str, before: int | None, limit: int
) -> tuple[list[dict[str, Any]], bool]:
    """One row an alarm, the newest first, and whether there are older ones."""
    alarms, more = history.list_events(connection, plant, before, limit, ("alarm",))
    if not alarms:
        return [], False
    later = history.courses(connection, plant, alarms[-1]["number"], before)
    if before is not None:
        later += history.course(connection, plant, before - 1)[0] if alarms[0]["number"] < before else []
    found: list[dict[str, Any]] = []
    for event in sorted(later, key=lambda event: int(event["number"])):
        if event["event"] == "alarm":
            kept = {name: event[name] for name in ("number", "time", "onset", "named", "confidence")}
            found.append({**kept, "joined": {}, "over": None, "acknowledged": False})
        elif found and event["event"] in ("joined", "left"):  # the set that is in alarm now, and the confidence in it
            found[-1] |= {name: event[name] for name in ("named", "confidence")}
            if event["event"] == "joined":
                found[-1]["joined"] |= dict.fromkeys(event["sensors"], event["time"])
        elif found and event["event"] == "over":
            found[-1]["over"] = found[-1]["over"] or event["time"]
        elif found and event["event"] == "acknowledged":
            found[-1]["acknowledged"] = True
    return found[::-1][:limit], more


def alarm_of(connection: sa.Connection, plant: str, number: int) -> tuple[dict[str, Any], int]:
    """The event that began an incident, and its time in microseconds."""
    found = history.event(connection, plant, number)
    if found is None or found[0]["event"] != "alarm":
        raise LookupError(f"plant {plant} has no incident {number}")
    return found


def incident_document(connection: sa.Connection, view: PlantView, number: int) -> dict[str, Any]:
    alarm, at = alarm_of(connection, view.name, number)
    course, times = history.course(connection, view.name, number)
    end = _end(course, times)
    done, _ = history.actions(connection, view.name, None, _ACTIONS)
    numbers = {number, *(event["number"] for event in course)}
    ever = {name for event in (alarm, *course) for name in event["named"]}
    peak = history.peak(connection, view.name, at, end)
    return {
        "alarm": alarm,
        "course": course,
        "severity": severity(len(ever), peak),
        **_why(connection, view, alarm, at, end),
        "similar": list(_similar(connection, view.name, alarm)),
        "comments": [
            {"at": moment(row["at"]), "who": row["who"], "text": row["text"]}
            for row in history.comments_of(connection, view.name, number)
        ],
        "actions": [
            action_document(row)
            for row in done
            if row["document"].get("number") in numbers or numbers & set(row["document"].get("events", ()))
        ],
    }


def report(connection: sa.Connection, view: PlantView, number: int) -> str:
    from eccaht.plants.show.page import write

    alarm, at = alarm_of(connection, view.name, number)
    answer, model, name = _answer(connection, view, alarm, at, _end(*history.course(connection, view.name, number)))
    headline = f"Alarm {number} of {alarm['time']}: {alarm['text']}"
    about = [f"Plant: {view.name}", headline, f"Model: {name}", f"Windows of {model.clock.length(model.seconds)}"]
    return write(replace(answer, about=tuple(about)))


def _end(course: list[dict[str, Any]], times: list[int]) -> int | None:
    """When an alarm was over, None while it goes on."""
    return next((time for event, time in zip(course, times, strict=True) if event["event"] == "over"), None)


def _why(connection: sa.Connection, view: PlantView, alarm: dict[str, Any], at: int, end: int | None) -> dict[str, Any]:
    """The reasons for an alarm, and what all its windows say: the document of the answer's incident."""
    try:
        answer, _, _ = _answer(connection, view, alarm, at, end)
    except LookupError as error:
        return {"why": [f"{error}."], "answer": None}
    lines = list(reasons(answer))
    if set(answer.named) != set(alarm["named"]):
        named = listed(answer.named) or "nothing"
        lines.append(f"With hindsight {named} would be named; the alarm named {listed(alarm['named'])}.")
    lines += [confidence(answer)] if answer.confidence is not None else []  # else the alarm's own stands alone
    lines += checks(answer)
    lines += [*(f"Caution: {text}" for text in answer.cautions)]
    return {"why": lines, "answer": incident_document_of(answer.largest) if answer.incidents else None}


def _answer(
    connection: sa.Connection, view: PlantView, alarm: dict[str, Any], at: int, end: int | None
) -> tuple[Answer, Model, str]:
    """The windows of an incident, investigated as a whole, its model and the name of that."""
    era, digest = history.era_of(connection, view.name, int(alarm["number"]))
    model, name = model_of_era(connection, view, digest), history.model_name(connection, digest)
    onset = microseconds(model.clock.parse(alarm["onset"]))
    step = round(model.seconds * 1e6)
    assert model.normal is not None
    assert model.normal.local is not None
    outlasts = TUNING.alarm_hold_windows + TUNING.short_windows - 2  # windows by which an alarm outlasts its fault
    ended = 1 << 62 if end is None else end - outlasts * step
    stop = min(ended, onset + TUNING.longest_stretch_windows * step, at + TUNING.longest_stretch_windows * step)
    span = Span(onset - (SHOWN_BEFORE + int(model.normal.local.width)) * step, max(stop, at + step))
    past = history.past(connection, view.name, era, span, len(model.names))
    first = int(np.searchsorted(past.starts, onset))
    if first >= len(past.starts):
        raise LookupError("The windows of this incident are no longer kept")
    starts = past.starts.astype("datetime64[us]")
    windows = Windows(starts, past.values, model.names, model.seconds, clock=model.clock)
    answer = investigate_incident(model, windows, first, locate=False)
    for made in history.checks_of(connection, view.name, int(alarm["number"])):
        answer = _with_check(answer, **made)
    return answer, model, name


def _with_check(answer: Answer, sensor: str, value: float, noise: float, time: str, **_: Any) -> Answer:
    """The answer with a reading by hand; a window that is no part of the incident any more is not compared."""
    during = answer.largest.lasts(answer.clock.parse(time))
    return answer.with_check(sensor, value, noise=noise, time=time) if during else answer


def check_document(
    connection: sa.Connection, view: PlantView, number: int, sensor: str, value: float, noise: float
) -> dict[str, Any]:
    """A reading by hand, compared with the last window of an incident, as it is kept."""
    alarm, at = alarm_of(connection, view.name, number)
    answer, _, _ = _answer(connection, view, alarm, at, _end(*history.course(connection, view.name, number)))
    made = answer.with_check(sensor, value, noise=noise).largest.checked[-1]
    reading = {"sensor": sensor, "value": value, "noise": noise, "time": stamp(view.model.clock, made.time)}
    return {"number": number, "order": f"read {sensor} by hand: {value:g}", **reading}


def _similar(connection: sa.Connection, plant: str, alarm: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Earlier alarms that share sensors with this one, the most alike first."""
    mine = set(alarm["named"])
    earlier, _ = history.list_events(connection, plant, alarm["number"], _LOOKED, ("alarm",))
    likeness = [(len(mine & set(each["named"])) / max(len(mine | set(each["named"])), 1), each) for each in earlier]
    for share, each in sorted(likeness, key=lambda pair: -pair[0])[:_SIMILAR]:
        if share > 0:
            yield {**{name: each[name] for name in ("number", "time", "named")}, "likeness": share}


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
        row = {"sensor": name, **_state(view, name), **_last_readings(view, name, past.starts, raw[:, k])}
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


def _last_readings(view: PlantView, sensor: str, starts: NDArray[np.int64], values: Array) -> dict[str, Any]:
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
