"""What is too old is deleted beside all else, in short transactions, so that deliveries need not wait for it."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import sqlalchemy as sa

from eccaht.service.runtime.views import PlantView
from eccaht.service.settings import Retention
from eccaht.service.store import Store, schema
from eccaht.service.store.store import last_number, now

BATCH = 1000  # rows that are deleted at once
EVERY = 60.0  # seconds between looks for what is too old
PAUSE = 0.02  # seconds between two transactions: others want to write too
_LOG = logging.getLogger("eccaht.service")
_Delete = Callable[[sa.Connection], int]


async def keep(store: Store, kept: Retention, views: Callable[[], Mapping[str, PlantView]]) -> None:
    """Delete what is too old again and again, until cancelled; views: the plants as they are now."""
    while True:
        await asyncio.sleep(EVERY)
        try:
            while await once(store, kept, views()):
                pass
        except sa.exc.SQLAlchemyError as error:
            _LOG.error("nothing old was deleted: %s", error)


async def once(store: Store, kept: Retention, views: Mapping[str, PlantView]) -> bool:
    """Delete some of what is too old; return whether there may be more."""
    more = False
    for delete in list(_deletes(kept, views)):
        more |= await asyncio.to_thread(_done, store, delete) == BATCH
        await asyncio.sleep(PAUSE)
    return more


def _deletes(kept: Retention, views: Mapping[str, PlantView]) -> Iterator[_Delete]:
    """What is to be done: each plant has its own clock."""
    for name, view in views.items():
        if view.position is None:
            continue
        newest = int(view.position.astype("int64"))
        for length, delete in ((kept.windows, delete_windows), (kept.events, delete_events)):
            if length:
                yield partial(delete, plant=name, before=newest - round(length * 1e6))
    if kept.audit:
        yield partial(delete_audit, before=now() - round(kept.audit * 1e6))


def _done(store: Store, delete: _Delete) -> int:
    with store.begin() as connection:
        return delete(connection)


def delete_windows(connection: sa.Connection, plant: str, before: int) -> int:
    """Delete some windows that start before a time and that no restart needs; return how many."""
    windows, kept = schema.windows, schema.checkpoints
    needed = connection.execute(sa.select(kept.c.position).where(kept.c.plant == plant)).scalar()
    end = min(before, needed if needed is not None else before)
    old = sa.select(windows.c.start).where(windows.c.plant == plant, windows.c.start < end)
    chosen = old.order_by(windows.c.start).limit(BATCH)
    late = schema.late_readings
    connection.execute(sa.delete(late).where(late.c.plant == plant, late.c.start.in_(chosen)))
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
