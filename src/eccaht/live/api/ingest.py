"""Rows that come by HTTP: lines of JSON, a list in JSON, or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from fastapi import APIRouter, Depends, Request

from eccaht.data.clock import Clock
from eccaht.live.api import shapes
from eccaht.live.api.plants import body_of, engine_of
from eccaht.live.api.shapes import PlantName
from eccaht.live.rows import Rows
from eccaht.live.security.guard import require

router = APIRouter(prefix="/api", tags=["rows"])
_ROW: dict[str, Any] = {
    "type": "object",
    "required": ["time"],
    "properties": {
        "time": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "values": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
    },
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "array", "items": _ROW}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "text/csv": {"schema": {"type": "string"}},
        },
    }
}
_SOURCE = "http"
_TIME = "time"
_NAMES, _LONGEST = 20_000, 256  # columns, and letters of a name
_CELLS = 4_000_000  # of one delivery
_NONE = ("", "nan", "null", "none", "na")


@router.post("/plants/{plant}/rows", dependencies=[Depends(require("ingest"))], openapi_extra=_BODY)
async def rows(request: Request, plant: PlantName) -> shapes.Delivered:
    """Take rows; they are stored once this answers."""
    engine = engine_of(request)
    clock, limits = engine.check(plant).model.clock, engine.settings.limits
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _READERS:
        raise shapes.WrongType(f"Content-Type {kind or 'is missing'}: use {', '.join(_READERS)}")
    text = _decoded(await body_of(request, limits.body))
    taken = await engine.submit(plant, rows_of(_READERS[kind](text), clock, limits.rows), source=_SOURCE)
    return shapes.Delivered(**{**taken._asdict(), "unknown": [name[:_LONGEST] for name in taken.unknown[:100]]})


def rows_of(documents: Iterable[dict[str, Any]], clock: Clock, most: int) -> Rows:
    """Documents with a time and values, nested under `values` or beside it, as rows."""
    times: list[np.datetime64] = []
    places: dict[str, int] = {}
    cells: list[tuple[int, int, float]] = []
    for row, document in enumerate(documents):
        if row >= most:
            raise ValueError(f"more than {most} rows at once: send less at a time")
        if not isinstance(document, dict) or _TIME not in document:
            raise ValueError(f"row {row + 1} is no object with a {_TIME!r}")
        times.append(_moment(document[_TIME], clock, row))
        values = document.get("values", document)
        if not isinstance(values, dict):
            raise ValueError(f"the values of row {row + 1} are no object")
        for name, value in values.items():
            if values is document and name == _TIME:
                continue
            if name not in places:
                if len(name) > _LONGEST or len(places) >= _NAMES:
                    raise ValueError(f"row {row + 1} has too many names of sensors, or too long ones")
                places[name] = len(places)
            cells.append((row, places[name], _number(value, name, row)))
    if len(times) * len(places) > _CELLS:
        raise ValueError(f"{len(times)} rows of {len(places)} sensors are too many at once: send less at a time")
    matrix = np.full((len(times), len(places)), np.nan)
    if cells:
        which = np.array([cell[:2] for cell in cells])
        matrix[which[:, 0], which[:, 1]] = [cell[2] for cell in cells]
    return Rows(np.array(times, dtype="datetime64[us]"), tuple(places), matrix)


def _moment(value: Any, clock: Clock, row: int) -> np.datetime64:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"the time of row {row + 1} is neither a text nor a number")
    if clock.row_interval is not None or isinstance(value, str):
        try:
            return clock.parse(str(value), f"row {row + 1}: time")
        except OverflowError:
            raise ValueError(f"the time of row {row + 1} is out of range") from None
    if not math.isfinite(value) or not 0 <= value <= 1e11:
        raise ValueError(f"the time of row {row + 1} is not in seconds since 1970")
    return np.datetime64(round(value * 1e6), "us")


def _number(value: Any, name: str, row: int) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str) and value.strip().lower() in _NONE:
        return math.nan
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        number = None
    if number is None:
        raise ValueError(f"{name[:40]!r} of row {row + 1} is no number: send null where there is none")
    return number if math.isfinite(number) else math.nan


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the body is not UTF-8") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is not JSON: {str(error)[:100]}") from None


def _list(text: str) -> list[Any]:
    found = _json(text)
    return found if isinstance(found, list) else [found]


def _lines(text: str) -> Iterator[Any]:
    return (_json(line) for line in text.splitlines() if line.strip())


def _csv(text: str) -> Iterator[dict[str, Any]]:
    reader = csv.reader(io.StringIO(text))
    try:
        header = next(reader, [])
        if _TIME not in header or len(set(header)) < len(header):
            raise ValueError(f"the first line must name the columns, each once, one of them {_TIME!r}")
        for number, line in enumerate(filter(None, reader), 2):
            if len(line) != len(header):
                raise ValueError(f"line {number} has {len(line)} fields, the first has {len(header)}")
            yield dict(zip(header, line, strict=True))
    except csv.Error as error:
        raise ValueError(f"the body is no CSV: {error}") from None


_READERS = {"application/x-ndjson": _lines, "application/json": _list, "text/csv": _csv}
