"""What holds for every request before a route handles it: sizes, rates and the headers of the answer.

Plain ASGI, because a body must be counted while it arrives: one without a length may never end.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eccaht.service.security.rates import Rates, network, retry_after
from eccaht.service.security.sessions import COOKIE

# charts set styles as they draw; scripts come from files of our own, and nothing from elsewhere
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class Bodies:
    """The most bytes that a body may have, for paths that match a pattern and for all others, and how long it takes."""

    others: int
    patterns: Sequence[tuple[re.Pattern[str], int]] = ()
    seconds: float = 60.0

    def most(self, path: str) -> int:
        return next((most for pattern, most in self.patterns if pattern.fullmatch(path)), self.others)


Still = Callable[[Scope], Awaitable[bool]]


class Fence:
    """Limits around an app.

    bodies: sizes. rates: requests of an address, but for those that the guard will count by their token. files: those
    for files of the page, of which one page needs many. address: of the client. still: whether the caller of a stream
    that is open may go on reading it, asked every `every` seconds at most.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        bodies: Bodies,
        rates: Rates,
        files: Rates,
        address: Callable[[Scope], str],
        still: Still,
        every: float = 5.0,
    ) -> None:
        self._app, self._bodies, self._rates, self._address = app, bodies, rates, address
        self._files, self._still, self._every = files, still, every

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, dressed = Headers(scope=scope), _dressed(scope, send)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(dressed, *refusal)
            return
        counted = self._counted(receive, self._bodies.most(scope["path"]))
        watched = _Watched(counted, dressed, lambda: self._still(scope), self._every)
        await self._app(scope, watched.receive, watched.send)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str, Mapping[str, str]] | None:
        if not (scope["path"].startswith("/api/") and _shows_credential(headers)):
            rates = self._files if scope["path"].startswith("/static/") else self._rates
            seconds = rates.take(network(self._address(scope)))
            if seconds:
                return 429, "too many requests from this address: wait and try again", retry_after(seconds)
        most = self._bodies.most(scope["path"])
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            return 415, "bodies are taken as they are: send this one without Content-Encoding", {}
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return 400, "the Content-Length is not a number", {}
        if len(length) > 18 or int(length) > most:
            return 413, _too_large(most), {"Connection": "close"}
        return None

    def _counted(self, receive: Receive, most: int) -> Receive:
        """Count a body while it arrives; the errors pass through the app, which answers with them."""
        got, loop = 0, asyncio.get_running_loop()
        until, ended = loop.time() + self._bodies.seconds, False

        async def counted() -> Message:
            nonlocal got, ended
            if ended:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                late = "the body took too long to arrive: send less at a time"
                raise HTTPException(408, late, {"Connection": "close"}) from None
            if message["type"] == "http.request":
                got += len(message.get("body", b""))
                ended = not message.get("more_body", False)
                if got > most:
                    raise HTTPException(413, _too_large(most), {"Connection": "close"})
            return message

        return counted


class _Watched:
    """A request whose answer may go on for hours: it ends once its caller may no longer read it."""

    def __init__(self, receive: Receive, send: Send, still: Callable[[], Awaitable[bool]], every: float) -> None:
        self._receive, self._send, self._still, self._every = receive, send, still, every
        self._asked_for, self._stream, self._checked = False, False, 0.0
        self._over = asyncio.Event()

    async def receive(self) -> Message:
        """What the client says; that it left, once the answer was ended here."""
        if not self._asked_for:  # the body is still arriving
            message = await self._receive()
            self._asked_for = not message.get("more_body", False)
            return message
        received, over = asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({received, over}, return_when=asyncio.FIRST_COMPLETED)
            return received.result() if received.done() else {"type": "http.disconnect"}
        except HTTPException:  # the answer has begun: all that is left is to disconnect
            return {"type": "http.disconnect"}
        finally:
            received.cancel()
            over.cancel()

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on."""
        if self._over.is_set():
            return
        now = asyncio.get_running_loop().time()
        if message["type"] == "http.response.start":
            self._stream = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
            self._checked = now
        elif self._stream and now - self._checked >= self._every:
            self._checked = now
            if not await self._still():
                self._over.set()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)


def _dressed(scope: Scope, send: Send) -> Send:
    """Add the headers that every answer has."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if scope["path"].startswith("/api"):
                headers["Cache-Control"] = "no-store"
        await send(message)

    return dressed


def _shows_credential(headers: Headers) -> bool:
    return "authorization" in headers or f"{COOKIE}=" in headers.get("cookie", "")


def _too_large(most: int) -> str:
    return f"the body has more than {most} bytes: send less at a time"


async def _answer(send: Send, status: int, detail: str, more: Mapping[str, str]) -> None:
    body = json.dumps({"detail": detail}).encode()
    fields: dict[str, Any] = {"Content-Type": "application/json", "Content-Length": str(len(body)), **more}
    raw = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
