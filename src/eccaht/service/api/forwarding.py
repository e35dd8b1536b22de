"""What is asked of a plant that another service on the store watches is asked there, with the caller's own token."""

import logging

import httpx
from fastapi import Request
from fastapi.responses import Response

from eccaht.service.runtime.owners import Elsewhere

_LOG = logging.getLogger("eccaht.service")
_MARK = "x-eccaht-forwarded"  # a request is forwarded once
_OF_THE_CONNECTION = {"connection", "content-length", "host", "keep-alive", "te", "transfer-encoding", "upgrade"}
_KEPT = ("content-type", "retry-after", "cache-control")
_PATIENCE = 30.0  # seconds


def make_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=_PATIENCE, trust_env=False)


async def forwarded(request: Request, error: Elsewhere) -> Response | None:
    """The answer of the service that watches the plant, None if there is none."""
    if error.address is None or _MARK in request.headers:
        return None
    client: httpx.AsyncClient = request.app.state.others
    address = error.address.rstrip("/") + request.url.path
    headers = [(name, value) for name, value in request.headers.items() if name not in _OF_THE_CONNECTION]
    try:
        answer = await client.request(
            request.method,
            address if not request.url.query else f"{address}?{request.url.query}",
            content=await request.body(),
            headers=[*headers, (_MARK, "1")],
        )
    except httpx.HTTPError as fault:
        _LOG.warning("%s does not answer: %s", error.address, fault or type(fault).__name__)
        return None
    return Response(answer.content, answer.status_code, {k: answer.headers[k] for k in _KEPT if k in answer.headers})
