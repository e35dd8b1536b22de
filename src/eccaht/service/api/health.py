"""Whether the service works: it tries what it needs, which is to write to the store."""

from __future__ import annotations

import asyncio
import logging
import math
from time import monotonic

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from eccaht.service.api import shapes
from eccaht.service.api.plants import engine_of
from eccaht.service.store import Store, queries, schema
from eccaht.service.store.store import now

router = APIRouter()
_LOG = logging.getLogger("eccaht.service")
_KEPT = 1.5  # seconds for which a result holds: whoever asks more often makes no work
_PATIENCE = 3.0  # seconds that a write may take
_RECENT = 60.0  # seconds for which rows that were not stored count, if none were stored since


class Probe:
    """Writes a row of its own to the store, once for all who ask at about the same time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._trying: asyncio.Task[None] | None = None
        self._begun = self._ended = -math.inf
        self._found = ""

    async def problem(self) -> str:
        """What is wrong with the store, in a line; empty if nothing is."""
        if self._trying is None and monotonic() - self._ended >= _KEPT:
            self._begun = monotonic()
            self._trying = asyncio.create_task(self._try())
        if self._trying is not None:
            await asyncio.wait({self._trying}, timeout=max(self._begun + _PATIENCE - monotonic(), 0.0))
        if self._trying is not None:
            self._note(f"the store has not taken a write for {monotonic() - self._begun:.0f} s: is it locked?")
        return self._found

    async def _try(self) -> None:
        try:
            await asyncio.to_thread(self._write)
        except sa.exc.SQLAlchemyError as error:
            self._note(f"the store takes no write ({_name(error)}): the log says more", error)
        else:
            self._note("")
        finally:
            self._trying, self._ended = None, monotonic()

    def _write(self) -> None:
        with self._store.begin() as connection:
            if not self._store.is_sqlite:  # which waits for ever by itself
                connection.execute(sa.text("SET LOCAL statement_timeout = '10s'"))
            queries.upsert(connection, schema.meta, [{"name": "checked", "value": str(now())}])

    def _note(self, found: str, error: Exception | None = None) -> None:
        """Keep a result, and say in the log when it is another one than before."""
        if bool(found) != bool(self._found):
            if found:
                _LOG.error("%s", found, extra={} if error is None else {"error": " ".join(str(error).split())[:500]})
            else:
                _LOG.info("the store takes writes again")
        self._found = found


def _name(error: Exception) -> str:
    """What a database calls an error: callers without a token see no more of it."""
    cause = getattr(error, "orig", None)
    return getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or type(error).__name__


@router.get("/healthz", response_model=shapes.HealthShape)
async def healthz(request: Request) -> Response:
    """Whether the service takes rows and can store them."""
    engine, probe = engine_of(request), request.app.state.probe
    failed = engine.worker.failing
    if not engine.alive:
        status, detail = "starting", "rows are not taken"
    elif detail := await probe.problem():
        status = "broken"
    elif failed is not None and (ago := monotonic() - failed) < _RECENT:
        status, detail = "broken", f"rows could not be stored {ago:.0f} s ago: the log says why"
    else:
        status = "ok"
    views = engine.views()
    without = sum(view.no_data is not None for view in views.values())
    found = {"status": status, "plants": len(views), "without_data": without, "detail": detail}
    health = shapes.HealthShape.model_validate(found)
    return JSONResponse(health.model_dump(), 200 if status == "ok" else 503)
