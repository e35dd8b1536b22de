"""The list of a plant's sensors."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel

from eccaht.service.api.plants import engine_of
from eccaht.service.api.shapes import Numbers, PlantName
from eccaht.service.runtime.sensors import SensorState, sensor_rows
from eccaht.service.security.guard import require

router = APIRouter(prefix="/api", tags=["plants"])


class SensorRow(BaseModel):
    """A sensor as it is now.

    since: when it went wrong; until: when it is no longer shelved. kind, size: of what is wrong with it. value: the
    mean of the last window that has it, and heard: the start of that window. recent: the same of the last windows.
    """

    sensor: str
    state: SensorState
    since: str | None
    until: str | None
    kind: str | None
    size: float | None
    value: float | None
    heard: str | None
    recent: Numbers


class SensorsShape(BaseModel):
    """All sensors of a plant, in the order of its model."""

    sensors: list[SensorRow]


@router.get("/plants/{plant}/sensors", dependencies=[Depends(require("read"))])
def sensors(request: Request, plant: PlantName) -> SensorsShape:
    """All sensors of a plant: state, last reading, when last heard, and the last windows."""
    engine = engine_of(request)
    view = engine.view(plant)
    with engine.store.read() as connection:
        return SensorsShape(sensors=[SensorRow(**row) for row in sensor_rows(connection, view)])
