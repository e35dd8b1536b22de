"""One alarm in depth: why, what came before it that was alike, its report and its ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa

from eccaht.base.presentation.text import listed
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.answer import Answer
from eccaht.plants.incident.describe import SHOWN_BEFORE
from eccaht.plants.incident.investigate import investigate_incident
from eccaht.plants.incident.naming import LONGEST
from eccaht.plants.incident.words import confidence, reasons
from eccaht.plants.model.model import Model, parse_model
from eccaht.service.runtime.documents import moment
from eccaht.service.runtime.standing import PlantView
from eccaht.service.store import history
from eccaht.service.store.history import Span

_SIMILAR = 5
_LOOKED = 500  # earlier alarms that are compared


def rows(connection: sa.Connection, plant: str, before: int | None, limit: int) -> tuple[list[dict[str, Any]], bool]:
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
            found.append({**kept, "over": None, "acknowledged": False})
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


def document(connection: sa.Connection, view: PlantView, number: int) -> dict[str, Any]:
    alarm, at = alarm_of(connection, view.name, number)
    course, times = history.course(connection, view.name, number)
    end = _end(course, times)
    done, _ = history.actions(connection, view.name, None, 100)
    numbers = {number, *(event["number"] for event in course)}
    return {
        "alarm": alarm,
        "course": course,
        "why": list(_why(connection, view, alarm, at, end)),
        "similar": list(_similar(connection, view.name, alarm)),
        "comments": [
            {"at": moment(row["at"]), "who": row["who"], "text": row["text"]}
            for row in history.comments_of(connection, view.name, number)
        ],
        "actions": [
            {**{name: row[name] for name in ("id", "who", "action", "plant", "document")}, "at": moment(row["at"])}
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
    """Everything that was reported and done about an incident, one document of JSON a line."""
    alarm, _ = alarm_of(connection, view.name, number)
    course, _ = history.course(connection, view.name, number)
    lines: list[dict[str, Any]] = [alarm, *course]
    for row in history.comments_of(connection, view.name, number):
        lines.append({"event": "comment", "time": moment(row["at"]), "who": row["who"], "text": row["text"]})
    return "".join(json.dumps(line) + "\n" for line in lines)


def _end(course: list[dict[str, Any]], times: list[int]) -> int | None:
    """When an alarm was over, None while it goes on."""
    return next((time for event, time in zip(course, times, strict=True) if event["event"] == "over"), None)


def _why(connection: sa.Connection, view: PlantView, alarm: dict[str, Any], at: int, end: int | None) -> Iterator[str]:
    try:
        answer, model, _ = _answer(connection, view, alarm, at, end)
    except LookupError as error:
        yield f"{error}."
        return
    yield from reasons(answer, model.clock)
    if set(answer.named) != set(alarm["named"]):
        named = listed(answer.named) or "nothing"
        yield f"Looked at as a whole afterwards, {named} would be named; the alarm named {listed(alarm['named'])}."
    yield confidence(answer)
    yield from (f"Caution: {text}" for text in answer.cautions)


def _answer(
    connection: sa.Connection, view: PlantView, alarm: dict[str, Any], at: int, end: int | None
) -> tuple[Answer, Model, str]:
    """The windows of an incident, investigated as a whole, its model and the name of that."""
    era, digest = history.era_of(connection, view.name, int(alarm["number"]))
    model, name = view.model, ""
    if digest != view.model_digest:
        content, name = history.model_content(connection, digest)
        try:
            model = parse_model(content, name)
        except ValueError:
            raise LookupError(f"An earlier version made the model {name} of this incident") from None
    else:
        name = history.model_name(connection, digest)
    onset = int(model.clock.parse(alarm["onset"]).astype(np.int64))
    step = round(model.seconds * 1e6)
    assert model.normal is not None
    assert model.normal.local is not None
    stop = min(end if end is not None else 1 << 62, onset + LONGEST * step, at + LONGEST * step)
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
