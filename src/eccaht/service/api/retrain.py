"""A new model of a plant from a period that the store has: made, compared with the present one, and switched to."""

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from eccaht.service.api import shapes
from eccaht.service.api.past import reading, span_between
from eccaht.service.api.plants import engine_of
from eccaht.service.api.shapes import PlantName
from eccaht.service.parts import Line, Part
from eccaht.service.runtime.retraining import Retrainings
from eccaht.service.security.guard import require
from eccaht.service.store.history import Span

router = APIRouter(prefix="/api", tags=["plants"])
READ, ADMIN = Depends(require("read")), Depends(require("admin"))


class Retrain(Part):
    """The period, on the clock of the plant; without an end all that is stored. drills: faults for each model.
    keep_alarms: learn from windows of alarms too, after the plant was changed on purpose."""

    start: Line | None = Field(None, max_length=64)
    stop: Line | None = Field(None, max_length=64)
    drills: int = Field(400, ge=100, le=2000)
    keep_alarms: bool = False


class ModelSide(BaseModel):
    """One of two models: what it was learned from, and what it made of the same faults and quiet windows.

    default_rate: of false alarms, for a plant without a rate of its own.
    """

    sensors: int
    history: int
    first: str
    last: str
    drills: int
    found: int
    right: int
    confident: int
    confident_wrong: int
    windows: int
    false_alarms: int
    expected: float
    default_rate: str | None = None
    in_alarm: float


class LeftOut(BaseModel):
    """A sensor that the new model does not have, and why."""

    sensor: str
    reason: str


class Compared(BaseModel):
    """Both models. seen: whether the old one was learned from windows of the period too."""

    better: Literal["new", "old", "neither"]
    old: ModelSide
    new: ModelSide
    left_out: list[LeftOut]
    seen: bool


class RetrainingShape(BaseModel):
    """The last attempt. windows: learned from; left_out: windows that were not, by reason; settings: whether the
    settings name a model file of the plant, which the service takes again once that file has changed."""

    state: Literal["none", "running", "done", "failed", "cancelled", "switched"]
    stage: str = ""
    share: float = 0.0
    detail: str = ""
    start: str | None = None
    stop: str | None = None
    by: str = ""
    begun: str | None = None
    drills: int = 0
    keep_alarms: bool = False
    windows: int = 0
    left_out: dict[str, int] = {}
    name: str = ""
    found: Compared | None = None
    settings: bool = False


def _all(request: Request) -> Retrainings:
    found: Retrainings = request.app.state.retrainings
    return found


def _document(request: Request, plant: str) -> RetrainingShape:
    found = _all(request).get(plant)
    document: dict[str, Any] = {"state": "none"} if found is None else found.document()
    return RetrainingShape(**document, settings=plant in engine_of(request).settings.plants)


@router.get("/plants/{plant}/retraining", dependencies=[READ])
async def retraining(request: Request, plant: PlantName) -> RetrainingShape:
    """How the last retraining of a plant stands, and what it found."""
    return _document(request, plant)


@router.post("/plants/{plant}/retraining", dependencies=[ADMIN])
async def retrain(request: Request, plant: PlantName, given: Retrain) -> RetrainingShape:
    """Make a new model of the stored windows of a period, without those of incidents, and drill it beside the old."""

    def period() -> Span | None:
        with reading(request, plant) as (connection, view):
            return span_between(connection, view, given.start, given.stop)

    span = await asyncio.to_thread(period)
    if span is None:
        raise ValueError("the store has no windows of this period")
    await _all(request).start(plant, given.model_dump(), span, request.state.who)
    return _document(request, plant)


@router.post("/plants/{plant}/retraining/cancel", dependencies=[ADMIN])
async def cancel(request: Request, plant: PlantName, given: shapes.Nothing) -> RetrainingShape:  # noqa: ARG001
    """End a retraining, or throw away what it found."""
    await _all(request).cancel(plant, request.state.who)
    return _document(request, plant)


@router.post("/plants/{plant}/retraining/switch", dependencies=[ADMIN])
async def switch(request: Request, plant: PlantName, given: shapes.Nothing) -> RetrainingShape:  # noqa: ARG001
    """Watch the plant with the new model from now on."""
    await _all(request).switch(plant, request.state.who)
    await request.app.state.feeds.renew(plant)
    return _document(request, plant)
