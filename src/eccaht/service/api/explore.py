"""Raw trends of any sensors over any period."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel

from eccaht.service.api.past import check_sensors, reading, span_between
from eccaht.service.api.shapes import Moment, Numbers, PlantName, Points, Sensors
from eccaht.service.runtime.trends import trends as trends_of
from eccaht.service.security.guard import require

router = APIRouter(prefix="/api", tags=["past"])


class Trend(BaseModel):
    """A sensor in raw units: the mean, the least and the largest window mean of each bin."""

    value: Numbers
    low: Numbers
    high: Numbers


class Trends(BaseModel):
    """Sensors over time. windows: that were read, one of `one_of`; first, last: ends of all that is stored."""

    time: list[str]
    series: dict[str, Trend]
    seconds: float
    windows: int
    one_of: int
    first: str | None
    last: str | None


@router.get("/plants/{plant}/trends", dependencies=[Depends(require("read"))])
def trends(
    request: Request, plant: PlantName, sensor: Sensors, start: Moment = None, stop: Moment = None, points: Points = 600
) -> Trends:
    """Window means of sensors, whatever model the plant had; a bin keeps its least and its largest window."""
    with reading(request, plant) as (connection, view):
        check_sensors(view, sensor)
        span = span_between(connection, view, start, stop)
        return Trends(**trends_of(connection, view, list(dict.fromkeys(sensor)), span, points))
