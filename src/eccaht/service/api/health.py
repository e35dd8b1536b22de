"""How the service itself does: whether it works, by trying to write to the store, and its numbers for Prometheus."""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Iterator
from time import monotonic
from typing import Literal, get_args

import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from pydantic import BaseModel

from eccaht.service.api.plants import engine_of
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.views import PlantState
from eccaht.service.security.guard import require
from eccaht.service.store import Store, schema
from eccaht.service.store.store import now, upsert

router = APIRouter()
_LOG = logging.getLogger("eccaht.service")
_KEPT = 1.5  # seconds for which a result holds: asking more often makes no work
_PATIENCE = 3.0  # seconds that a write may take
_RECENT = 60.0  # seconds for which rows that were not stored count, if none were stored since
_COUNTED = {
    "windows": "Windows that were stored.",
    "events": "Events that were stored.",
    "rows": "Rows that were taken.",
    "late": "Rows that came too late for their window.",
    "duplicate": "Rows that had come before.",
    "refused": "Deliveries refused because too many waited.",
    "failed": "Deliveries and orders that failed.",
}


class HealthShape(BaseModel):
    """Whether the service works; without_data: plants that are not watched."""

    status: Literal["ok", "starting", "broken"]
    plants: int
    without_data: int
    detail: str = ""


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
            upsert(connection, schema.meta, [{"name": "checked", "value": str(now())}])

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


@router.get("/healthz", response_model=HealthShape)
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
    views, broken = engine.views(), engine.broken
    without = sum(view.no_data is not None for view in views.values()) + len(broken)
    found = {"status": status, "plants": len(views) + len(broken), "without_data": without, "detail": detail}
    health = HealthShape.model_validate(found)
    return JSONResponse(health.model_dump(), 200 if status == "ok" else 503)


_admitted = require("read")


@router.get("/metrics", response_class=PlainTextResponse, responses={200: {"content": {"text/plain": {}}}})
def metrics(request: Request) -> Response:
    """Numbers for Prometheus; those of single plants, which name them, for a token with the scope `read`."""
    named = "authorization" in request.headers
    if named:
        _admitted(request)
    registry = CollectorRegistry()  # of this request: the library's own would mix the services of one process
    registry.register(_Numbers(engine_of(request), named))
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


class _Numbers(Collector):
    def __init__(self, engine: Runtime, named: bool) -> None:
        self._engine, self._named = engine, named

    def describe(self) -> Iterator[Metric]:
        """Nothing: a registry need not compare what one collector alone brings."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        engine = self._engine
        views = {name: view for name, view in engine.views().items() if view.watched_by in (None, engine.name)}
        # a plant counts where it is watched, and everywhere if it is nowhere
        found = Counter(view.shown for view in views.values()) + Counter({"broken": len(engine.broken)})
        what = "Plants by state; waiting: without any window so far; no-data: not watched."
        states = GaugeMetricFamily("eccaht_plants", what, labels=["state"])
        for state in get_args(PlantState):
            states.add_metric([state], found[state])
        yield states
        blind = sum(view.no_data is not None for view in views.values()) + len(engine.broken)
        yield GaugeMetricFamily("eccaht_plants_without_data", "Plants that are not watched.", blind)
        for name, what in _COUNTED.items():
            yield CounterMetricFamily(f"eccaht_{name}", what, engine.counts[name])
        yield GaugeMetricFamily("eccaht_waiting", "Deliveries that wait to be stored.", engine.waiting)
        yield GaugeMetricFamily("eccaht_clients", "Open streams of events.", engine.hub.clients)
        yield CounterMetricFamily("eccaht_resyncs", "Clients that were too slow.", engine.hub.dropped)
        yield GaugeMetricFamily("eccaht_up", "Whether the service takes rows.", int(engine.alive))
        if self._named:
            what = "How unusual the last windows are, in nats above the threshold: 0 raises an alarm."
            evidence = GaugeMetricFamily("eccaht_evidence", what, labels=["plant"])
            for name, view in sorted(views.items()):
                evidence.add_metric([name], view.evidence)
            yield evidence
            no_data = GaugeMetricFamily("eccaht_no_data", "Whether the plant is not watched.", labels=["plant"])
            for name, view in sorted(views.items()):
                no_data.add_metric([name], int(view.no_data is not None))
            for name in sorted(engine.broken):
                no_data.add_metric([name], 1)
            yield no_data
            what = "1 for the state of the plant: waiting, no-data, broken, quiet, suspicious, changed or alarm."
            states = GaugeMetricFamily("eccaht_state", what, labels=["plant", "state"])
            what = "Sensors that are stuck, silent, out of range or shelved."
            sensors = GaugeMetricFamily("eccaht_sensors", what, labels=["plant", "state"])
            for name, view in sorted(views.items()):
                states.add_metric([name, view.shown], 1)
                for state, named in (*view.still.items(), ("shelved", view.shelved)):
                    sensors.add_metric([name, state], len(named))
            for name in sorted(engine.broken):
                states.add_metric([name, "broken"], 1)
            yield states
            yield sensors
