"""What is asked of a plant's past: sensors over time beside the band that the others predict, and alarms in depth.

Sensors are shown in bins; the band of a bin is that of its last window. Sensors that an alarm of that window names, or
that are stuck or out of range in it, predict nothing. An alarm has the reasons for it, earlier ones that were alike, a
report and a ledger.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import microseconds
from eccaht.base.presentation.text import listed
from eccaht.plants import Answer, Model, Windows, investigate_incident, parse_model
from eccaht.plants.incident.alarms import HOLD
from eccaht.plants.incident.answer import Suspect
from eccaht.plants.incident.describe import SHOWN_BEFORE, SPREADS, Predictions
from eccaht.plants.incident.naming import LONGEST
from eccaht.plants.incident.words import confidence, reasons
from eccaht.plants.model.residuals import SHORT
from eccaht.service.runtime.views import PlantView, action_document, finite, moment, severity, stamp
from eccaht.service.store import history
from eccaht.service.store.history import Past, Span

MOST = 20_000  # windows that are read at once; of more, some are left out evenly
_EVENTS, _ALARMS = 500, 50  # that are read, and that may lie in a span
_ACTIONS = 100  # of the plant, of which those of an incident are shown
_LOOKED, _SIMILAR = 500, 5  # earlier alarms that are compared, and that are shown
_PARTS = ("value", "low", "high", "band_low", "band_high")
_ENDED = {"stuck": "moving", "range": "in range"}  # events of sensors that predict nothing, and of their end


@dataclass(frozen=True)
class _StoredIncident:
    """What was wrong from its onset to its end, microseconds: all sensors that an alarm ever named, or one that stood
    still or was out of range."""

    onset: int
    over: int
    named: tuple[str, ...]


def series(
    connection: sa.Connection, view: PlantView, sensors: list[str], span: Span | None, points: int
) -> dict[str, Any]:
    """Each sensor in at most so many bins: mean, least, largest, and the ends of the band; `one_of`: of how many
    windows one was read."""
    model = view.model
    chosen = model.places(sensors)
    nothing = {"time": [], "series": {name: {part: [] for part in _PARTS} for name in sensors}, "one_of": 1}
    if span is None:
        return nothing
    found, step = history.past(connection, view.name, view.era, span, len(model.names), MOST)
    if not len(found.starts):
        return nothing
    width = max(-(-(span.stop - span.start) // points), 1)
    first = np.flatnonzero(np.diff((found.starts - span.start) // width, prepend=-1))
    last = np.append(first[1:], len(found.starts)) - 1
    low, high = _bands(connection, view, found, last, chosen)
    courses = {}
    for n, k in enumerate(chosen.tolist()):
        column = found.values[:, k]
        there = np.add.reduceat(~np.isnan(column), first, dtype=np.float64)
        total = np.add.reduceat(np.where(np.isnan(column), 0.0, column), first)
        mean = np.where(there > 0, total / np.maximum(there, 1.0), np.nan)
        parts = (mean, np.fmin.reduceat(column, first), np.fmax.reduceat(column, first), low[:, n], high[:, n])
        courses[model.names[k]] = {name: _plain(model.raw(part, k)) for name, part in zip(_PARTS, parts, strict=True)}
    times = [stamp(model.clock, start) for start in found.starts[first].tolist()]
    return {"time": times, "series": courses, "one_of": step}


def incidents_in(connection: sa.Connection, view: PlantView, span: Span) -> list[_StoredIncident]:
    """The last alarms of the present era that lie in a span, at least in part."""
    events = _events(connection, view, ("alarm", "joined", "over"))
    found: list[_StoredIncident] = []
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
                found.append(_StoredIncident(onset, over, tuple(name for name in named if name in view.sensors)))
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


def _standing_in(connection: sa.Connection, view: PlantView, span: Span) -> list[_StoredIncident]:
    """The sensors that were stuck or out of range in a span, at least in part."""
    events = _events(connection, view, (*_ENDED, *_ENDED.values()))
    found, ends = list[_StoredIncident](), dict[tuple[str, str], int]()
    for event in events:  # the newest first
        for name in event["sensors"]:
            if event["event"] in _ENDED:
                over = ends.pop((event["event"], name), 1 << 62)
                onset = _microseconds(view.model, event["onset"], event["at"])
                if name in view.sensors and onset < span.stop and over > span.start:
                    found.append(_StoredIncident(onset, over, (name,)))
            else:
                ends.update({(begun, name): event["at"] for begun, ended in _ENDED.items() if ended == event["event"]})
    return found


def _microseconds(model: Model, text: str | None, otherwise: int) -> int:
    return otherwise if text is None else microseconds(model.clock.parse(text))


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
    from eccaht.plants.incident.page import write

    alarm, at = alarm_of(connection, view.name, number)
    answer, model, name = _answer(connection, view, alarm, at, _end(*history.course(connection, view.name, number)))
    headline = f"Alarm {number} of {alarm['time']}: {alarm['text']}"
    about = [f"Plant: {view.name}", headline, f"Model: {name}", f"Windows of {model.clock.length(model.seconds)}"]
    return write(answer, clock=model.clock, about=about)


def ledger(connection: sa.Connection, view: PlantView, number: int) -> str:
    """The events of an incident and the comments on it, one document of JSON a line."""
    alarm, _ = alarm_of(connection, view.name, number)
    course, _ = history.course(connection, view.name, number)
    lines: list[dict[str, Any]] = [alarm, *course]
    for row in history.comments_of(connection, view.name, number):
        lines.append({"event": "comment", "time": moment(row["at"]), "who": row["who"], "text": row["text"]})
    return "".join(json.dumps(line) + "\n" for line in lines)


def _end(course: list[dict[str, Any]], times: list[int]) -> int | None:
    """When an alarm was over, None while it goes on."""
    return next((time for event, time in zip(course, times, strict=True) if event["event"] == "over"), None)


def _why(connection: sa.Connection, view: PlantView, alarm: dict[str, Any], at: int, end: int | None) -> dict[str, Any]:
    """The reasons for an alarm, the set that is named with hindsight, the confidence in it, and each of its sensors."""
    try:
        answer, model, _ = _answer(connection, view, alarm, at, end)
    except LookupError as error:
        return {"why": [f"{error}."], "hindsight": [], "confidence": None, "suspects": []}
    lines = list(reasons(answer, model.clock))
    if set(answer.named) != set(alarm["named"]):
        named = listed(answer.named) or "nothing"
        lines.append(f"With hindsight {named} would be named; the alarm named {listed(alarm['named'])}.")
    lines += [confidence(answer)] if answer.confidence is not None else []  # else the alarm's own stands alone
    lines += [*(f"Caution: {text}" for text in answer.cautions)]
    return {
        "why": lines,
        "hindsight": list(answer.named),
        "confidence": answer.confidence,
        "suspects": [_suspect(one) for one in answer.sensors if one.named],
    }


def _suspect(found: Suspect) -> dict[str, Any]:
    """A sensor as the reasons have it: its size is the mean deviation from what the others predict, or the spread."""
    size = found.size_raw if found.kind in SPREADS else found.reason.read - found.reason.expected
    return {"sensor": found.sensor, "belief": found.belief, "kind": found.kind, "size": finite(size)}


def _answer(
    connection: sa.Connection, view: PlantView, alarm: dict[str, Any], at: int, end: int | None
) -> tuple[Answer, Model, str]:
    """The windows of an incident, investigated as a whole, its model and the name of that."""
    era, digest = history.era_of(connection, view.name, int(alarm["number"]))
    model, name = view.model, history.model_name(connection, digest)
    if digest != view.model_digest:
        try:
            model = parse_model(history.model_content(connection, digest), name)
        except ValueError:
            raise LookupError(f"An earlier version made the model {name} of this incident") from None
    onset = microseconds(model.clock.parse(alarm["onset"]))
    step = round(model.seconds * 1e6)
    assert model.normal is not None
    assert model.normal.local is not None
    ended = 1 << 62 if end is None else end - (HOLD + SHORT - 2) * step  # an alarm outlasts its fault by so much
    stop = min(ended, onset + LONGEST * step, at + LONGEST * step)
    span = Span(onset - (SHOWN_BEFORE + int(model.normal.local.width)) * step, max(stop, at + step))
    past, _ = history.past(connection, view.name, era, span, len(model.names), 10 * LONGEST)
    first = int(np.searchsorted(past.starts, onset))
    if first >= len(past.starts):
        raise LookupError("The windows of this incident are no longer kept")
    starts = past.starts.astype("datetime64[us]")
    windows = Windows(starts, past.values, model.names, model.seconds, clock=model.clock)
    return investigate_incident(model, windows, first, locate=False), model, name


def _similar(connection: sa.Connection, plant: str, alarm: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Earlier alarms that share sensors with this one, the most alike first."""
    mine = set(alarm["named"])
    earlier, _ = history.list_events(connection, plant, alarm["number"], _LOOKED, ("alarm",))
    likeness = [(len(mine & set(each["named"])) / max(len(mine | set(each["named"])), 1), each) for each in earlier]
    for share, each in sorted(likeness, key=lambda pair: -pair[0])[:_SIMILAR]:
        if share > 0:
            yield {**{name: each[name] for name in ("number", "time", "named")}, "likeness": share}
