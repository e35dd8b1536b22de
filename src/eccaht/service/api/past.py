"""The past of plants: evidence, sensors, events, incidents, and who did what."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any
from urllib.parse import quote

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response

from eccaht.base.clock import microseconds
from eccaht.service.api import shapes
from eccaht.service.api.plants import engine_of
from eccaht.service.api.shapes import Before, Limit, Moment, Number, PlantName, Points, Sensors
from eccaht.service.runtime import past
from eccaht.service.runtime.views import PlantView, action_document, judged, moment, stamp
from eccaht.service.security.guard import require
from eccaht.service.store import history

router = APIRouter(prefix="/api", tags=["past"])
READ, ADMIN = Depends(require("read")), Depends(require("admin"))
_NEVER = 1 << 60  # when an alert is tried next that is not tried again, at least
_KIND = Annotated[str | None, Query(max_length=40, pattern=r"^[a-z-]+$")]
_PLACE = Annotated[str | None, Query(pattern=r"^-?[0-9]{1,19}(\.[0-9]{1,19}\.[A-Za-z0-9][A-Za-z0-9 ._-]{0,63})?$")]


@contextmanager
def reading(request: Request, plant: str) -> Iterator[tuple[sa.Connection, PlantView]]:
    engine = engine_of(request)
    view = engine.view(plant)
    with engine.store.read() as connection:
        yield connection, view


def span_between(
    connection: sa.Connection, view: PlantView, start: str | None, stop: str | None
) -> history.Span | None:
    """The windows that were asked for; None if there are none."""
    first, last = (_microseconds(view, text, name) for text, name in ((start, "start"), (stop, "stop")))
    if first is not None and last is not None and first >= last:
        raise ValueError("the start must lie before the stop")
    return history.span_of(connection, view.name, first, last)


def _microseconds(view: PlantView, text: str | None, name: str) -> int | None:
    if text is None:
        return None
    with suppress(OverflowError):
        found = microseconds(view.model.clock.parse(text.strip(), name))
        if abs(found) <= 2**60:
            return found
    raise ValueError(f"{name} {text!r} is out of range")


@router.get("/plants/{plant}/evidence", dependencies=[READ])
def evidence(
    request: Request, plant: PlantName, start: Moment = None, stop: Moment = None, points: Points = 600
) -> shapes.EvidenceShape:
    """The largest evidence of each bin, in nats above the threshold, and its worst state; null where unwatched."""
    with reading(request, plant) as (connection, view):
        span = span_between(connection, view, start, stop)
        rows = [] if span is None else history.evidence(connection, plant, span, points)
    found = [judged(row[1], row[2]) for row in rows]
    return shapes.EvidenceShape(
        time=[stamp(view.model.clock, row[0]) or "" for row in rows],
        evidence=[each[0] for each in found],
        state=[each[1] for each in found],
        threshold=0.0,
    )


@router.get("/plants/{plant}/series", dependencies=[READ])
def series(
    request: Request,
    plant: PlantName,
    sensor: Sensors,
    start: Moment = None,
    stop: Moment = None,
    points: Points = 600,
) -> shapes.Series:
    """Sensors over time, with the band that the other sensors predict."""
    with reading(request, plant) as (connection, view):
        check_sensors(view, sensor)
        span = span_between(connection, view, start, stop)
        return shapes.Series(**past.series(connection, view, list(dict.fromkeys(sensor)), span, points))


@router.get("/plants/{plant}/trends", dependencies=[READ])
def trends(
    request: Request, plant: PlantName, sensor: Sensors, start: Moment = None, stop: Moment = None, points: Points = 600
) -> shapes.Trends:
    """Window means of sensors, whatever model the plant had; a bin keeps its least and its largest window."""
    with reading(request, plant) as (connection, view):
        check_sensors(view, sensor)
        span = span_between(connection, view, start, stop)
        return shapes.Trends(**past.trends(connection, view, list(dict.fromkeys(sensor)), span, points))


@router.get("/plants/{plant}/correlation", dependencies=[READ])
def correlation(request: Request, plant: PlantName, sensor: Sensors) -> shapes.Correlation:
    """What sensors share in normal operation."""
    view = engine_of(request).view(plant)
    check_sensors(view, sensor)
    chosen = list(dict.fromkeys(sensor))
    return shapes.Correlation(sensors=chosen, matrix=past.correlation(view.model, chosen))


@router.get("/plants/{plant}/events", dependencies=[READ])
def events(
    request: Request, plant: PlantName, before: Before = None, limit: Limit = 100, kind: _KIND = None
) -> shapes.Events:
    """Events of a plant, the newest first; before: the number of an event, as `next` has it."""
    with reading(request, plant) as (connection, _):
        found, more = history.list_events(connection, plant, before, limit, () if kind is None else (kind,))
    return _events(found, str(found[-1]["number"]) if more else None)


@router.get("/events", dependencies=[READ])
def all_events(request: Request, before: _PLACE = None, limit: Limit = 100, kind: _KIND = None) -> shapes.Events:
    """Events of all plants, the newest first; before: the `next` of another answer, or a time in microseconds.

    Who reads on by `next` gets each event once, also those of equal time and while new ones come.
    """
    place = None if before is None else _place(before)
    with engine_of(request).store.read() as connection:
        found, more = history.list_all_events(connection, place, limit, () if kind is None else (kind,))
    return _events(found, "{at}.{number}.{plant}".format(**found[-1]) if more else None)


@router.get("/plants/{plant}/incidents", dependencies=[READ])
def list_incidents(request: Request, plant: PlantName, before: Before = None, limit: Limit = 100) -> shapes.Incidents:
    """Alarms of a plant, the newest first; before: the number of one."""
    with reading(request, plant) as (connection, _):
        found, more = past.incident_rows(connection, plant, before, limit)
    return shapes.Incidents(incidents=[shapes.IncidentRow(**row) for row in found], more=more)


@router.get("/plants/{plant}/incidents/{number}", dependencies=[READ])
def incident(request: Request, plant: PlantName, number: Number) -> shapes.IncidentShape:
    """All of an alarm."""
    with reading(request, plant) as (connection, view):
        return shapes.IncidentShape(**past.incident_document(connection, view, number))


@router.get("/plants/{plant}/incidents/{number}/report", dependencies=[READ], response_class=HTMLResponse)
def report(request: Request, plant: PlantName, number: Number) -> Response:
    """The report of an alarm, a page to keep."""
    with reading(request, plant) as (connection, view):
        text = past.report(connection, view, number)
    name = f"{plant}-{number}.html"
    return HTMLResponse(text, headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"})


@router.get("/audit", dependencies=[ADMIN])
def audit(request: Request, before: Before = None, limit: Limit = 100) -> shapes.Audit:
    """Who did what, the newest first; before: an id."""
    with engine_of(request).store.read() as connection:
        found, more = history.actions(connection, None, before, limit)
    return shapes.Audit(audit=[shapes.ActionShape(**action_document(row)) for row in found], more=more)


@router.get("/outbox", dependencies=[ADMIN])
def outbox(request: Request, before: Before = None, limit: Limit = 100) -> shapes.Outbox:
    """Alerts, the newest first; before: an id."""
    with engine_of(request).store.read() as connection:
        found, more = history.alerts(connection, before, limit)
    for row in found:
        row["next_at"] = moment(row["next_at"]) if row["next_at"] < _NEVER else None
    return shapes.Outbox(outbox=[shapes.Alert(**row) for row in found], more=more)


def check_sensors(view: PlantView, sensors: list[str]) -> None:
    try:
        view.model.places(sensors)
    except ValueError as error:
        raise LookupError(str(error)) from None


def _place(text: str) -> history.Place:
    """What was given as `before`: a time, and perhaps the number and the plant of an event."""
    time, _, rest = text.partition(".")
    number, _, plant = rest.partition(".")
    place = history.Place(int(time), plant, int(number or 0))
    if max(abs(place.time), place.number) > 2**62:
        raise ValueError("before is out of range: give the `next` of an answer")
    return place


def _events(found: list[dict[str, Any]], following: str | None) -> shapes.Events:
    rows = [shapes.EventDocument(**row) for row in found]
    return shapes.Events(events=rows, more=following is not None, next=following)
