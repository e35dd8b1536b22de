"""What changes, as server-sent events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import StreamingResponse

from eccaht.live.api.plants import engine_of
from eccaht.live.security.guard import require

router = APIRouter(prefix="/api", tags=["stream"])
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get(
    "/stream",
    dependencies=[Depends(require("read"))],
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
    return StreamingResponse(engine.hub.listen(plant, after), media_type="text/event-stream", headers=_HEADERS)
