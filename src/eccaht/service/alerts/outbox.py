"""Alerts that wait in the store: one row a message and channel, sent by whoever takes it first.

A row is `queued`, `sending` while a sender has it, then `sent`, or `failed` after the last try. One whose sender
died or did not hear whether it arrived is `doubtful`: it is sent again with the same key where the channel is
idempotent, and else left for people to see. Every step is one UPDATE that names the state before it, so that of several
senders only one succeeds.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from eccaht.base.presentation.text import confident, listed
from eccaht.plants.incident.alarms import STANDING
from eccaht.service.store import schema

NEVER = 1 << 62
_FEW = 3  # sensors that a subject names
_box = schema.outbox
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
_HEADINGS = {
    "alarm": "ALARM",
    "repeats": "REPEATS",
    "over": "Over",
    "caution": "CAUTION",
    "no-data": "NOT WATCHED",
    "data-back": "Watched again",
}
_WHAT = {"range": "out of range"}  # that sensors are, where the event is not called so


@dataclass(frozen=True)
class Message:
    """An event of a plant that goes out; key: the same however often it is sent. kind: what it is as an alert."""

    key: str
    plant: str
    number: int
    kind: str
    event: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        return {"key": self.key, "plant": self.plant, "number": self.number, "kind": self.kind, "event": self.event}

    @property
    def subject(self) -> str:
        """One line for people.

        >>> Message("k", "mill", 7, "alarm", {"named": ["LT-101", "TT-303"]}).subject
        'ALARM mill: LT-101, TT-303'
        """
        heading, event = _HEADINGS.get(self.kind, self.kind), self.event
        named = listed(list(event.get("named") or event.get("sensors") or ()))
        if (way := event.get("event")) in STANDING:
            sensors = list(event.get("sensors") or ())
            some = listed(sensors) if len(sensors) <= _FEW else f"{len(sensors)} sensors"
            named = f"{some} {_WHAT.get(way, way)}"
        return _without_controls(f"{heading} {self.plant}: {named}" if named else f"{heading} {self.plant}")[:200]

    @property
    def body(self) -> str:
        """A few lines for people."""
        event = self.event
        lines = [_without_controls(str(event.get("text") or self.subject)), ""]
        facts = {"plant": self.plant, "time": event.get("time"), "onset": event.get("onset"), "event": self.number}
        confidence = event.get("confidence")
        if confidence is not None:
            facts["confidence"] = confident(float(confidence))
        lines += [f"{name}: {_without_controls(str(value))}" for name, value in facts.items() if value is not None]
        return "\n".join([*lines, ""])


def _without_controls(text: str) -> str:
    """A text without line breaks and control characters, which would end a header or a line of a mail.

    >>> _without_controls("mill\\r\\nBcc: x")
    'mill Bcc: x'
    """
    return _CONTROL.sub(" ", text)


@dataclass(frozen=True)
class Due:
    """A row that was taken to be sent; tries: with this one."""

    id: int
    channel: str
    tries: int
    document: Mapping[str, Any]

    @property
    def message(self) -> Message:
        return Message(**{name: self.document[name] for name in ("key", "plant", "number", "kind", "event")})


def rows_for(plant: str, event: Mapping[str, Any], channels: Iterable[str], now: int) -> list[dict[str, Any]]:
    """The rows of an event's document, none for events that do not go out.

    They are to be stored in the transaction of the event. The key holds the event's time: a plant that is removed and
    made again counts its events from 1.
    """
    if (kind := event["notice"]) is None:
        return []
    number = int(event["number"])
    rows = []
    for channel in channels:
        key = hashlib.sha256(f"{plant}\0{number}\0{event['time']}\0{kind}\0{channel}".encode()).hexdigest()[:32]
        message = Message(key, plant, number, kind, dict(event))
        row = {"plant": plant, "number": number, "channel": channel, "kind": kind, "status": "queued", "tries": 0}
        rows.append({**row, "next_at": now, "document": message.document()})
    return rows


def take(connection: sa.Connection, channel: str, now: int, lease: int, *, longest: int = NEVER) -> Due | None:
    """Take a row of a channel that is due, to be sent within `lease` microseconds; longest: see `_is_due`.

    The messages of a plant go out in their order: the end of an alarm waits for its beginning. None if nothing is due,
    or another sender was faster.
    """
    earlier = _box.alias()
    blocked = (
        sa.exists()
        .where(earlier.c.plant == _box.c.plant, earlier.c.channel == _box.c.channel)
        .where(earlier.c.number < _box.c.number)
        .where(earlier.c.status.in_(["queued", "sending", "doubtful"]), earlier.c.next_at < NEVER)
    )
    open_rows = sa.select(_box).where(_box.c.status.in_(["queued", "doubtful"]), _box.c.channel == channel)
    due = open_rows.where(_is_due(now, longest), ~blocked).order_by(_box.c.next_at, _box.c.id).limit(1)
    row = connection.execute(due).first()
    if row is None:
        return None
    values = {"status": "sending", "tries": row.tries + 1, "next_at": now + lease}
    taken = _step(connection, row.id, row.status, row.tries, values)
    return Due(row.id, row.channel, row.tries + 1, row.document) if taken else None


def is_waiting(connection: sa.Connection, channel: str, now: int, longest: int = NEVER) -> bool:
    """Whether there may be something to take or to recover."""
    waiting = sa.select(_box.c.id).where(_box.c.channel == channel, _is_due(now, longest))
    return connection.execute(waiting.limit(1)).first() is not None  # what is settled is never due


def settle(connection: sa.Connection, due: Due, status: str, when: int = NEVER, **more: Any) -> bool:
    """Write down what became of a message, and when it is tried again; False if another sender took it meanwhile.

    status: "sent"; "queued" if it did not arrive and will be tried again, "failed" if not; "doubtful" if that is
    unknown, and sending it again may bring it twice.
    """
    values = {"status": status, "next_at": when, "document": {**due.document, **more}}
    return _step(connection, due.id, "sending", due.tries, values)


def recover(connection: sa.Connection, channel: str, now: int, longest: int, *, idempotent: bool) -> int:
    """Mark what a sender left behind as doubtful, due again where that is harmless; return how many."""
    left = sa.select(_box).where(_box.c.status == "sending", _box.c.channel == channel, _is_due(now, longest))
    doubtful = {"status": "doubtful", "next_at": now if idempotent else NEVER}
    recovered = 0
    for row in connection.execute(left).all():
        document = {**row.document, "said": "the sender ended without saying whether this arrived"}
        recovered += _step(connection, row.id, "sending", row.tries, {**doubtful, "document": document})
    return recovered


def _is_due(now: int, longest: int) -> sa.ColumnElement[bool]:
    """Whether a row is due: never tried, or its time has come, or the clock was set back since.

    It was if the row is due later than in `longest` microseconds, which is more than any pause.
    """
    at = _box.c.next_at
    return (_box.c.tries == 0) | (at <= now) | ((at > now + longest) & (at < NEVER))


def _step(connection: sa.Connection, number: int, status: str, tries: int, values: Mapping[str, Any]) -> bool:
    """Change a row that is still as it was seen."""
    same = sa.update(_box).where(_box.c.id == number, _box.c.status == status, _box.c.tries == tries)
    return connection.execute(same.values(**values)).rowcount == 1
