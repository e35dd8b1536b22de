"""What is too old is deleted beside all else, in short transactions, so that deliveries need not wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import sqlalchemy as sa

from eccaht.service.runtime.standing import PlantView
from eccaht.service.settings import Retention
from eccaht.service.store import Store, queries
from eccaht.service.store.store import now

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
        more |= await asyncio.to_thread(_done, store, delete) == queries.BATCH
        await asyncio.sleep(PAUSE)
    return more


def _deletes(kept: Retention, views: Mapping[str, PlantView]) -> Iterator[_Delete]:
    """What is to be done: each plant has its own clock."""
    for name, view in views.items():
        if view.position is None:
            continue
        newest = int(view.position.astype("int64"))
        for length, delete in ((kept.windows, queries.delete_windows), (kept.events, queries.delete_events)):
            if length:
                yield partial(delete, plant=name, before=newest - round(length * 1e6))
    if kept.audit:
        yield partial(queries.delete_audit, before=now() - round(kept.audit * 1e6))


def _done(store: Store, delete: _Delete) -> int:
    with store.begin() as connection:
        return delete(connection)
