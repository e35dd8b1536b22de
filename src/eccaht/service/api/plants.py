"""Plants as they are now, what operators do, and how plants and models come and go."""

from __future__ import annotations

from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Query, Request

from eccaht.service.api import shapes
from eccaht.service.api.shapes import PlantName
from eccaht.service.runtime.documents import moment, overview, plant_document
from eccaht.service.runtime.engine import Runtime
from eccaht.service.security.guard import require
from eccaht.service.store import history, schema

router = APIRouter(prefix="/api", tags=["plants"])
READ, OPERATE, ADMIN = (Depends(require(scope)) for scope in ("read", "operate", "admin"))
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_BODY = {"requestBody": {"required": True, "content": {"application/octet-stream": _BINARY}}}


def engine_of(request: Request) -> Runtime:
    """What watches the plants."""
    engine: Runtime = request.app.state.engine
    return engine


@router.get("/plants", dependencies=[READ])
async def plants(request: Request) -> shapes.Plants:
    """All plants, by name."""
    views = engine_of(request).views()
    return shapes.Plants(plants=[shapes.PlantRow(**overview(views[name])) for name in sorted(views)])


@router.get("/plants/{plant}", dependencies=[READ])
def plant(request: Request, plant: PlantName) -> shapes.PlantShape:
    """A plant as it is now."""
    engine = engine_of(request)
    view = engine.view(plant)
    with engine.store.read() as connection:
        name = history.model_name(connection, view.model_digest)
    return shapes.PlantShape(**plant_document(view, name))


@router.put("/plants/{plant}", dependencies=[ADMIN])
async def put_plant(request: Request, plant: PlantName, given: shapes.PutPlant) -> shapes.PlantRow:
    """Make a plant, or change its model or how it is watched."""
    engine = engine_of(request)
    await request.app.state.feeds.check(given.options().sources)
    await engine.put_plant(plant, given.model, given.options(), request.state.who)
    await request.app.state.feeds.renew(plant)
    return shapes.PlantRow(**overview(engine.view(plant)))


@router.delete("/plants/{plant}", dependencies=[ADMIN])
async def remove_plant(request: Request, plant: PlantName) -> shapes.Nothing:
    """Delete a plant with all its windows and events."""
    engine = engine_of(request)
    engine.view(plant)
    await request.app.state.feeds.end(plant)
    await engine.remove_plant(plant, request.state.who)
    return shapes.Nothing()


@router.post("/plants/{plant}/acknowledge", dependencies=[OPERATE])
async def acknowledge(request: Request, plant: PlantName, given: shapes.Nothing) -> shapes.DoneShape:  # noqa: ARG001
    """Take note of the alarm."""
    return await _order(request, plant, "acknowledge")


@router.post("/plants/{plant}/normal", dependencies=[OPERATE])
async def normal(request: Request, plant: PlantName, given: shapes.Nothing) -> shapes.DoneShape:  # noqa: ARG001
    """Take the state of the sensors in the alarm as normal from now on."""
    return await _order(request, plant, "normal")


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


@router.post("/models", dependencies=[ADMIN], openapi_extra=_BODY)
async def upload(
    request: Request, name: Annotated[str, Query(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]+$")]
) -> shapes.Uploaded:
    """Keep a model, the file that 'eccaht calibrate' wrote."""
    engine = engine_of(request)
    content = await body_of(request, engine.settings.limits.model)
    digest, sensors = await engine.add_model(content, name, request.state.who)
    return shapes.Uploaded(digest=digest, sensors=sensors)


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request, which is refused as soon as it is too long."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise shapes.TooLarge(f"the body has more than {most} bytes: send less at a time")
        parts.append(part)
    return b"".join(parts)


async def _order(request: Request, plant: str, text: str) -> shapes.DoneShape:
    if any(ord(letter) < 32 for letter in text):
        raise ValueError("an order is one line")
    events = await engine_of(request).order(plant, text, request.state.who)
    return shapes.DoneShape(events=[shapes.EventDocument(**event.document(), plant=plant) for event in events])
