"""What changes, as server-sent events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from eccaht.service.api.plants import engine_of
from eccaht.service.runtime.hub import Hub
from eccaht.service.security.guard import require

router = APIRouter(prefix="/api", tags=["stream"])
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class _Stream(StreamingResponse):
    """Takes its place among the clients before it answers: without one, the answer is an error and no stream."""

    def __init__(self, hub: Hub, plant: str | None, after: int | None) -> None:
        super().__init__((), media_type="text/event-stream", headers=_HEADERS)
        self._hub, self._plant, self._after = hub, plant, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send messages until the client or the service ends."""
        with self._hub.listen(self._plant, self._after) as self.body_iterator:
            await super().__call__(scope, receive, send)


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
    return _Stream(engine.hub, plant, None if last_event_id is None else int(last_event_id))
