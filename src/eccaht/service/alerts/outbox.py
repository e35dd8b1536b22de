"""Alerts that wait in the store: one row a message and channel, sent by whoever takes it first.

A row is `queued`, `sending` while a sender has it, then `sent`, or `failed` after the last try. One whose sender
died or did not hear whether it arrived is `doubtful`: it is sent again with the same key where the channel is
idempotent, and else left for people to see. Every step is one UPDATE that names the state before it, so that of several
senders only one succeeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from eccaht.service.alerts.channel import Channel, Message
from eccaht.service.store import schema

KINDS = ("alarm", "over", "no-data", "data-back")  # what goes out: the beginnings and the ends
NEVER = 1 << 62
_box = schema.outbox


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
    kind = event["event"]
    if kind not in KINDS:
        return []
    number = int(event["number"])
    rows = []
    for channel in channels:
        key = hashlib.sha256(f"{plant}\0{number}\0{event['time']}\0{kind}\0{channel}".encode()).hexdigest()[:32]
        message = Message(key, plant, number, kind, dict(event))
        row = {"plant": plant, "number": number, "channel": channel, "kind": kind, "status": "queued", "tries": 0}
        rows.append({**row, "next_at": now, "document": message.document()})
    return rows


def take(
    connection: sa.Connection, channel: str, now: int, lease: int, most: int = 20, *, longest: int = NEVER
) -> list[Due]:
    """Take rows of a channel that are due, each to be sent within `lease` microseconds; longest: see `_is_due`.

    The messages of a plant go out in their order: the end of an alarm waits for its beginning.
    """
    earlier = _box.alias()
    blocked = (
        sa.exists()
        .where(earlier.c.plant == _box.c.plant, earlier.c.channel == _box.c.channel)
        .where(earlier.c.number < _box.c.number)
        .where(earlier.c.status.in_(["queued", "sending", "doubtful"]), earlier.c.next_at < NEVER)
    )
    open_rows = sa.select(_box).where(_box.c.status.in_(["queued", "doubtful"]), _box.c.channel == channel)
    due = open_rows.where(_is_due(now, longest), ~blocked).order_by(_box.c.next_at, _box.c.id).limit(most)
    taken = []
    for row in connection.execute(due).all():
        values = {"status": "sending", "tries": row.tries + 1, "next_at": now + lease}
        if _step(connection, row.id, row.status, row.tries, values):
            taken.append(Due(row.id, row.channel, row.tries + 1, row.document))
    return taken


def is_waiting(connection: sa.Connection, channel: str, now: int, longest: int = NEVER) -> bool:
    """Whether there may be something to take or to recover."""
    waiting = sa.select(_box.c.id).where(_box.c.channel == channel, _is_due(now, longest))
    return connection.execute(waiting.limit(1)).first() is not None  # what is settled is never due


def sent(connection: sa.Connection, due: Due, now: int) -> bool:
    """The message arrived; False if another sender took the row in the meantime."""
    return _settle(connection, due, "sent", NEVER, {"sent": now})


def not_delivered(connection: sa.Connection, due: Due, again: int | None, reason: str) -> bool:
    """The message did not arrive: try again then, or never."""
    status, when = ("failed", NEVER) if again is None else ("queued", again)
    return _settle(connection, due, status, when, {"said": reason})


def perhaps_delivered(connection: sa.Connection, due: Due, reason: str) -> bool:
    """It is unknown whether the message arrived, and sending it again may bring it twice."""
    return _settle(connection, due, "doubtful", NEVER, {"said": reason})


def recover(connection: sa.Connection, channel: Channel, now: int, longest: int = NEVER) -> int:
    """Mark what a sender left behind as doubtful, due again where that is harmless; return how many."""
    left = sa.select(_box).where(_box.c.status == "sending", _box.c.channel == channel.name, _is_due(now, longest))
    reason = {"said": "the sender ended without saying whether this arrived"}
    return sum(
        _step(
            connection,
            row.id,
            "sending",
            row.tries,
            {
                "status": "doubtful",
                "next_at": now if channel.idempotent else NEVER,
                "document": {**row.document, **reason},
            },
        )
        for row in connection.execute(left).all()
    )


def _is_due(now: int, longest: int) -> sa.ColumnElement[bool]:
    """Whether a row is due: never tried, or its time has come, or the clock was set back since.

    It was if the row is due later than in `longest` microseconds, which is more than any pause.
    """
    at = _box.c.next_at
    return (_box.c.tries == 0) | (at <= now) | ((at > now + longest) & (at < NEVER))


def _settle(connection: sa.Connection, due: Due, status: str, when: int, more: Mapping[str, Any]) -> bool:
    values = {"status": status, "next_at": when, "document": {**due.document, **more}}
    return _step(connection, due.id, "sending", due.tries, values)


def _step(connection: sa.Connection, number: int, status: str, tries: int, values: Mapping[str, Any]) -> bool:
    """Change a row that is still as it was seen."""
    same = sa.update(_box).where(_box.c.id == number, _box.c.status == status, _box.c.tries == tries)
    return connection.execute(same.values(**values)).rowcount == 1
