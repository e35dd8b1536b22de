"""What the service writes: steps of plants, plants, models, comments, and what is too old."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from eccaht.service.store import schema
from eccaht.service.store.store import now

BATCH = 1000  # rows that retention deletes at once


def upsert(connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, or replace those of the same primary key."""
    if not rows:
        return
    dialect: Any = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), list(rows))


def insert(connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), list(rows))


def write_steps(
    connection: sa.Connection, steps: Sequence[Any], outgoing: Callable[[str, Any], Iterable[dict[str, Any]]]
) -> None:
    """Store steps of plants; outgoing: the rows of the outbox for an event of a plant."""
    insert(connection, schema.windows, [row for step in steps for row in step.windows])
    if again := [row for step in steps for row in step.again]:
        old = schema.windows.c
        place = (old.plant == sa.bindparam("p")) & (old.start == sa.bindparam("s"))
        connection.execute(sa.update(schema.windows).where(place).values(seen=sa.bindparam("r")), again)
    events = [(step.plant, event, time) for step in steps for event, time in zip(step.events, step.times, strict=True)]
    insert(
        connection,
        schema.events,
        [
            {"plant": plant, "number": event.number, "time": time, "kind": event.event, "document": event.document()}
            for plant, event, time in events
        ],
    )
    insert(connection, schema.outbox, [row for plant, event, _ in events for row in outgoing(plant, event)])
    insert(connection, schema.pending, [step.pending for step in steps if step.pending is not None])
    consumed = [{"p": step.plant, "t": step.consumed} for step in steps if step.consumed is not None]
    if consumed:
        gone = schema.pending.c
        connection.execute(
            sa.delete(schema.pending).where(gone.plant == sa.bindparam("p"), gone.last < sa.bindparam("t")), consumed
        )
    for table, part in ((schema.counts, "counts"), (schema.checkpoints, "checkpoint"), (schema.positions, "position")):
        latest = {}  # of several in one transaction the last one counts
        for step in steps:
            if (row := getattr(step, part)) is not None:
                latest[tuple(row[column.name] for column in table.primary_key)] = row
        upsert(connection, table, list(latest.values()))
    insert(connection, schema.audit, [step.audit for step in steps if step.audit is not None])


def audit_row(who: str, action: str, plant: str | None, document: dict[str, Any]) -> dict[str, Any]:
    return {"at": now(), "who": who, "action": action, "plant": plant, "document": document}


def add_model(connection: sa.Connection, digest: str, name: str, content: bytes, who: str) -> bool:
    """Keep a model; False if it is there already."""
    models = schema.models
    if connection.execute(sa.select(models.c.digest).where(models.c.digest == digest)).first() is not None:
        return False
    row = {"digest": digest, "name": name, "content": content, "size": len(content), "uploaded": now(), "by": who}
    insert(connection, models, [row])
    return True


def last_number(connection: sa.Connection, plant: str) -> int:
    events = schema.events.c
    return int(connection.execute(sa.select(sa.func.max(events.number)).where(events.plant == plant)).scalar() or 0)


def remove_plant(connection: sa.Connection, plant: str) -> None:
    """Delete a plant and all that belongs to it, but what was done to it."""
    for table in schema.OF_A_PLANT:
        connection.execute(sa.delete(table).where(table.c.plant == plant))
    connection.execute(sa.delete(schema.plants).where(schema.plants.c.name == plant))


def delete_windows(connection: sa.Connection, plant: str, before: int) -> int:
    """Delete some windows that start before a time and that no restart needs; return how many."""
    windows, kept = schema.windows, schema.checkpoints
    needed = connection.execute(sa.select(kept.c.position).where(kept.c.plant == plant)).scalar()
    end = min(before, needed if needed is not None else before)
    old = sa.select(windows.c.start).where(windows.c.plant == plant, windows.c.start < end)
    chosen = old.order_by(windows.c.start).limit(BATCH)
    return connection.execute(sa.delete(windows).where(windows.c.plant == plant, windows.c.start.in_(chosen))).rowcount


def delete_events(connection: sa.Connection, plant: str, before: int) -> int:
    """Delete some events before a time, with what belongs to them, but never the last one: its number goes on."""
    events = schema.events.c
    newest = last_number(connection, plant)
    old = sa.select(events.number).where(events.plant == plant, events.time < before, events.number < newest)
    numbers = list(connection.execute(old.order_by(events.number).limit(BATCH)).scalars())
    for table in (schema.events, schema.comments, schema.outbox):
        connection.execute(sa.delete(table).where(table.c.plant == plant, table.c.number.in_(numbers)))
    return len(numbers)


def delete_audit(connection: sa.Connection, before: int) -> int:
    """Delete some of what was done before a time."""
    audit = schema.audit.c
    chosen = sa.select(audit.id).where(audit.at < before).order_by(audit.id).limit(BATCH)
    return connection.execute(sa.delete(schema.audit).where(audit.id.in_(chosen))).rowcount
