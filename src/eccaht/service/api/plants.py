"""Plants as they are now and as they change, rows that come by HTTP, what operators do, and how plants and models come
and go.

Rows are JSON as a list or in lines, or CSV, and are read as those of brokers are. Changes are server-sent events.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from time import monotonic
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from eccaht.service.api import shapes
from eccaht.service.api.readers import Readers
from eccaht.service.api.shapes import PlantName
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.past import check_document, sensor_rows
from eccaht.service.runtime.views import Hub, broken_overview, moment, next_document, overview, plant_document
from eccaht.service.security.guard import Caller, Guard, require
from eccaht.service.sources.parsing import Most, Payloads
from eccaht.service.sources.settings import Format, ReadingSettings
from eccaht.service.store import history, schema

router = APIRouter(prefix="/api", tags=["plants"])
rows_router = APIRouter(prefix="/api", tags=["rows"])
stream_router = APIRouter(prefix="/api", tags=["stream"])
READ, INGEST, OPERATE, ADMIN = (Depends(require(scope)) for scope in ("read", "ingest", "operate", "admin"))
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_MODEL = {"requestBody": {"required": True, "content": {"application/octet-stream": _BINARY}}}
_VALUE: dict[str, Any] = {"type": ["number", "string", "boolean", "null"]}
_ROW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "time": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "values": {"type": "object", "additionalProperties": _VALUE},
    },
}
_ROWS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "array", "items": _ROW}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "text/csv": {"schema": {"type": "string"}},
        },
    }
}
_UNKNOWN, _LONGEST = 100, 256  # names of unknown columns that are shown, and letters of each
_CELLS = 4_000_000  # of one delivery
CHECKED = 5.0  # seconds between two looks whether the caller of a stream may still read it
_FORMATS: dict[str, Format] = {"application/x-ndjson": "json", "application/json": "json", "text/csv": "csv"}


class WrongType(ValueError):
    """A body of another kind than the route takes."""


def engine_of(request: Request) -> Runtime:
    """What watches the plants."""
    engine: Runtime = request.app.state.engine
    return engine


@router.get("/plants", dependencies=[READ])
async def plants(request: Request) -> shapes.Plants:
    """All plants, by name."""
    engine = engine_of(request)
    rows = [overview(view) for view in engine.views().values()]
    rows += [broken_overview(name, fault) for name, fault in engine.broken.items()]
    return shapes.Plants(plants=[shapes.PlantRow(**row) for row in sorted(rows, key=lambda row: str(row["name"]))])


@router.get("/plants/{plant}", dependencies=[READ])
def plant(request: Request, plant: PlantName) -> shapes.PlantShape:
    """A plant as it is now."""
    engine = engine_of(request)
    view = engine.view(plant)
    with engine.store.read() as connection:
        name = history.model_name(connection, view.model_digest)
    return shapes.PlantShape(**plant_document(view, name))


@router.get("/plants/{plant}/sensors", dependencies=[READ])
def sensors(request: Request, plant: PlantName) -> shapes.SensorsShape:
    """All sensors of a plant: state, last reading, when last heard, and the last windows."""
    engine = engine_of(request)
    view = engine.view(plant)
    with engine.store.read() as connection:
        return shapes.SensorsShape(sensors=[shapes.SensorRow(**row) for row in sensor_rows(connection, view)])


@router.put("/plants/{plant}", dependencies=[ADMIN])
async def put_plant(request: Request, plant: PlantName, given: shapes.PutPlant) -> shapes.PlantRow:
    """Make a plant, or change its model or how it is watched."""
    engine = engine_of(request)
    known = engine.views().get(plant)
    sources = given.options().sources
    allowed = engine.settings.security.sources or (known is not None and sources == known.options.sources)
    if sources and not allowed:
        raise HTTPException(403, "sources are set in the settings; security.sources = true lets admin tokens do so")
    await request.app.state.feeds.check(sources)
    await engine.put_plant(plant, given.model, given.options(), request.state.who)
    await request.app.state.feeds.renew(plant)
    return shapes.PlantRow(**overview(engine.view(plant)))


@router.delete("/plants/{plant}", dependencies=[ADMIN])
async def remove_plant(request: Request, plant: PlantName) -> shapes.Nothing:
    """Delete a plant with all its windows and events."""
    engine = engine_of(request)
    if plant not in engine.broken:
        engine.check(plant)
    await request.app.state.feeds.end(plant)
    await engine.remove_plant(plant, request.state.who)
    return shapes.Nothing()


@rows_router.post("/plants/{plant}/rows", dependencies=[INGEST], openapi_extra=_ROWS)
async def rows(request: Request, plant: PlantName, how: Annotated[ReadingSettings, Query()]) -> shapes.Delivered:
    """Take rows; they are stored once this answers."""
    engine = engine_of(request)
    target, limits = engine.target(plant), engine.settings.limits
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _FORMATS:
        raise WrongType(f"Content-Type {kind[:80] or 'is missing'}: use {', '.join(_FORMATS)}")
    most = Most(limits.body, limits.rows, _CELLS)
    payloads = Payloads.of(how, target, format=_FORMATS[kind], most=most)
    readers: Readers = request.app.state.readers
    found = await readers.rows(payloads, await request.body(), request.state.who)
    taken = await engine.submit(plant, found, source="http")
    unknown = [name[:_LONGEST] for name in taken.unknown[:_UNKNOWN]]
    return shapes.Delivered(**{**taken._asdict(), "unknown": unknown})


@rows_router.get("/plants/{plant}/next", dependencies=[INGEST])
async def next_readings(request: Request, plant: PlantName) -> shapes.NextReadings:
    """The sensors to read next, those first that say most; all of them without the setting `readings`."""
    engine = engine_of(request)
    engine.check_own(plant)
    return shapes.NextReadings(**next_document(engine.view(plant)))


@router.post("/plants/{plant}/acknowledge", dependencies=[OPERATE])
async def acknowledge(request: Request, plant: PlantName, given: shapes.Nothing) -> shapes.DoneShape:  # noqa: ARG001
    """Take note of the alarm."""
    return await _order(request, plant, "acknowledge")


@router.post("/plants/{plant}/normal", dependencies=[OPERATE])
async def normal(request: Request, plant: PlantName, given: shapes.Nothing) -> shapes.DoneShape:  # noqa: ARG001
    """Take the state of the sensors in the alarm as normal from now on."""
    return await _order(request, plant, "normal")


@router.post("/plants/{plant}/restore", dependencies=[OPERATE])
async def restore(request: Request, plant: PlantName, given: shapes.Nothing) -> shapes.DoneShape:  # noqa: ARG001
    """Take back the last state that was called normal."""
    return await _order(request, plant, "restore")


@router.post("/plants/{plant}/shelve", dependencies=[OPERATE])
async def shelve(request: Request, plant: PlantName, given: shapes.Shelve) -> shapes.DoneShape:
    """Leave a sensor out for a time."""
    if " " in given.duration.strip():
        raise ValueError(f"{given.duration!r} is not a length of time: write it as 30min or 2h")
    return await _order(request, plant, f"shelve {given.sensor} {given.duration.strip()}")


@router.post("/plants/{plant}/unshelve", dependencies=[OPERATE])
async def unshelve(request: Request, plant: PlantName, given: shapes.Unshelve) -> shapes.DoneShape:
    """Take a sensor back before its time."""
    return await _order(request, plant, f"unshelve {given.sensor}")


@router.post("/plants/{plant}/incidents/{number}/comments", dependencies=[OPERATE])
async def comment(request: Request, plant: PlantName, number: shapes.Number, given: shapes.Comment) -> shapes.Nothing:
    """Write a comment to an incident."""
    await engine_of(request).comment(plant, number, given.text, request.state.who)
    return shapes.Nothing()


@router.post("/plants/{plant}/incidents/{number}/checks", dependencies=[OPERATE])
async def check(request: Request, plant: PlantName, number: shapes.Number, given: shapes.HandReading) -> shapes.Nothing:
    """Compare a sensor, read by hand, with the last window of an incident, whose answer is then given that."""
    engine = engine_of(request)

    def document() -> dict[str, Any]:
        view = engine.view(plant)
        with engine.store.read() as connection:
            return check_document(connection, view, number, given.sensor, given.value, given.noise)

    await engine.keep_check(plant, await asyncio.to_thread(document), request.state.who)
    return shapes.Nothing()


@router.get("/models", dependencies=[READ])
def models(request: Request) -> shapes.ModelsShape:
    """All models."""
    table = schema.models.c
    with engine_of(request).store.read() as connection:
        found = connection.execute(
            sa.select(table.digest, table.name, table.size, table.uploaded, table.by).order_by(table.uploaded)
        ).all()
    rows = [{**row._mapping, "uploaded": moment(row.uploaded)} for row in found]
    return shapes.ModelsShape(models=[shapes.ModelRow(**row) for row in rows])


@router.post("/models", dependencies=[ADMIN], openapi_extra=_MODEL)
async def upload(
    request: Request, name: Annotated[str, Query(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]+$")]
) -> shapes.Uploaded:
    """Keep a model, the file that 'eccaht calibrate' wrote."""
    engine = engine_of(request)
    digest, sensors = await engine.add_model(await request.body(), name, request.state.who)
    return shapes.Uploaded(digest=digest, sensors=sensors)


async def _order(request: Request, plant: str, text: str) -> shapes.DoneShape:
    if any(ord(letter) < 32 for letter in text):
        raise ValueError("an order is one line")
    events = await engine_of(request).order(plant, text, request.state.who)
    return shapes.DoneShape(events=[shapes.EventDocument(**event.document(), plant=plant) for event in events])


class _Stream(StreamingResponse):
    """Takes its place among the clients before it answers: without one, the answer is an error and no stream.

    It ends once its caller may no longer read it.
    """

    def __init__(self, hub: Hub, plant: str | None, after: int | None, guard: Guard, caller: Caller) -> None:
        super().__init__(
            (), media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        self._hub, self._plant, self._after, self._guard, self._caller = hub, plant, after, guard, caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send messages until the client or the service ends."""
        with self._hub.listen(self._plant, self._after) as messages:
            self.body_iterator = self._allowed(messages)
            await super().__call__(scope, receive, send)

    async def _allowed(self, messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        checked = monotonic()
        async for message in messages:
            if monotonic() - checked >= CHECKED:
                checked = monotonic()
                with suppress(sa.exc.OperationalError):  # a store that does not answer ends no streams
                    if not await asyncio.to_thread(self._guard.is_still, self._caller):
                        return
            yield message


@stream_router.get(
    "/stream",
    dependencies=[READ],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def stream(
    request: Request,
    plant: Annotated[str | None, Query(max_length=64)] = None,
    last_event_id: Annotated[str | None, Header(pattern=r"^\d{1,18}$")] = None,
) -> StreamingResponse:
    """Messages `plants`, `window`, `event`, `source`, `comment`, `heartbeat`, and `resync`: read everything anew."""
    engine = engine_of(request)
    if plant is not None:
        engine.view(plant)
    after = None if last_event_id is None else int(last_event_id)
    return _Stream(engine.hub, plant, after, request.app.state.guard, request.state.caller)
