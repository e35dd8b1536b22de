"""Rows that come by HTTP: JSON as a list or in lines, or CSV, read as those of brokers are."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from eccaht.service.api import shapes
from eccaht.service.api.plants import body_of, engine_of
from eccaht.service.api.shapes import PlantName
from eccaht.service.rows import Rows
from eccaht.service.security.guard import require
from eccaht.service.sources.parsing import Payloads
from eccaht.service.sources.settings import Format, ReadingSettings
from eccaht.service.sources.tables import Most

router = APIRouter(prefix="/api", tags=["rows"])
_VALUE: dict[str, Any] = {"type": ["number", "string", "boolean", "null"]}
_ROW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "time": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "values": {"type": "object", "additionalProperties": _VALUE},
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
_LONGEST = 256  # letters of an unknown name that are shown
_CELLS = 4_000_000  # of one delivery
_FORMATS: dict[str, Format] = {"application/x-ndjson": "json", "application/json": "json", "text/csv": "csv"}
_READERS = ThreadPoolExecutor(2, thread_name_prefix="eccaht-rows")  # few: what they parse must fit into the memory


@router.post("/plants/{plant}/rows", dependencies=[Depends(require("ingest"))], openapi_extra=_BODY)
async def rows(request: Request, plant: PlantName, how: Annotated[ReadingSettings, Query()]) -> shapes.Delivered:
    """Take rows; they are stored once this answers."""
    engine = engine_of(request)
    target, limits = request.app.state.feeds.target(plant), engine.settings.limits
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _FORMATS:
        raise shapes.WrongType(f"Content-Type {kind[:80] or 'is missing'}: use {', '.join(_FORMATS)}")
    most = Most(limits.body, limits.rows, _CELLS)
    payloads = Payloads.of(how, target, format=_FORMATS[kind], most=most)
    found = await _off_the_loop(payloads, await body_of(request, limits.body))
    taken = await engine.submit(plant, found, source=_SOURCE)
    return shapes.Delivered(**{**taken._asdict(), "unknown": [name[:_LONGEST] for name in taken.unknown[:100]]})


async def _off_the_loop(payloads: Payloads, body: bytes) -> Rows:
    """Parse in a thread: a large body must not hold other requests up."""
    return await asyncio.get_running_loop().run_in_executor(_READERS, payloads.rows, body)
