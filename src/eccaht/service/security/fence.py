"""What holds for every request before a route handles it: sizes, rates and the headers of the answer.

Plain ASGI, because a body must be counted while it arrives: one without a length may never end.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

import sqlalchemy as sa
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eccaht.service.security.sessions import COOKIE

if TYPE_CHECKING:
    from eccaht.service.security.guard import Guard

# charts set styles as they draw; scripts come from files of our own, and nothing from elsewhere
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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


class Fence:
    """Limits around an app.

    bodies: the most bytes of a body, by patterns of paths of which the first that fits counts; seconds: how long it may
    take. files: requests of an address for files of the page, of which one page needs many; others are counted with
    those that show no token. every: seconds between two looks whether the caller of an open stream may still read it.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        guard: Guard,
        bodies: Sequence[tuple[str, int]],
        seconds: float,
        files: Rates,
        every: float = 5.0,
    ) -> None:
        self._app, self._guard, self._bodies, self._seconds = app, guard, bodies, seconds
        self._files, self._every = files, every

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        dressed = _dressed(scope, send)
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, dressed)
            return
        counted = self._counted(receive, self._most(scope["path"]))
        watched = _Watched(counted, dressed, lambda: self._still(scope), self._every)
        await self._app(scope, watched.receive, watched.send)

    def _most(self, path: str) -> int:
        return next(most for pattern, most in self._bodies if re.fullmatch(pattern, path, re.DOTALL))

    async def _still(self, scope: Scope) -> bool:
        caller = scope.get("state", {}).get("caller")
        try:
            return caller is None or await asyncio.to_thread(self._guard.is_still, caller)
        except sa.exc.OperationalError:  # a store that does not answer is no reason to end the streams of all callers
            return True

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        path = scope["path"]
        shows_credential = "authorization" in headers or f"{COOKIE}=" in headers.get("cookie", "")
        if not (path.startswith("/api/") and shows_credential):  # those the guard counts, by their token
            rates = self._files if path.startswith("/static/") else self._guard.by_address
            seconds = rates.take(network(self._guard.address(scope)))
            if seconds:
                return _answer(429, "too many requests from this address: wait and try again", retry_after(seconds))
        most = self._most(path)
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            return _answer(415, "bodies are taken as they are: send this one without Content-Encoding")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return _answer(400, "the Content-Length is not a number")
        if len(length) > 18 or int(length) > most:
            return _answer(413, _too_large(most), {"Connection": "close"})
        return None

    def _counted(self, receive: Receive, most: int) -> Receive:
        """Count a body while it arrives; the errors pass through the app, which answers with them."""
        got, loop = 0, asyncio.get_running_loop()
        until, ended = loop.time() + self._seconds, False

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


def _too_large(most: int) -> str:
    return f"the body has more than {most} bytes: send less at a time"


def _answer(status: int, detail: str, more: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"detail": detail}, status, more)


class Rates:
    """A bucket for each key that holds `burst` requests and fills at `rate` a second.

    Beyond `most` keys the one unused for longest is forgotten, which gives it a full bucket.

    >>> now = [0.0]
    >>> rates = Rates(rate=2.0, burst=2.0, clock=lambda: now[0])
    >>> rates.take("a"), rates.take("a"), rates.take("a"), rates.take("b")
    (0.0, 0.0, 0.5, 0.0)
    >>> now[0] = 0.5
    >>> rates.take("a")
    0.0
    """

    def __init__(
        self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic, most: int = 10_000
    ) -> None:
        if not (rate > 0 and burst >= 1):
            raise ValueError(f"a rate of {rate} a second with a burst of {burst} lets no request in: raise both")
        self._rate, self._burst, self._clock, self._most = rate, burst, clock, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when it was counted
        self._lock = Lock()

    def take(self, key: str) -> float:
        """Count a request and return 0, or return the seconds until there is room for it."""
        with self._lock:
            now = self._clock()
            left, counted = self._buckets.get(key, (self._burst, now))
            left = min(self._burst, left + (now - counted) * self._rate)
            allowed = left >= 1.0
            self._buckets[key] = (left - 1.0 if allowed else left, now)
            self._buckets.move_to_end(key)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
            return 0.0 if allowed else (1.0 - left) / self._rate


def retry_after(seconds: float) -> dict[str, str]:
    """The header that says when to come back, in whole seconds."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def network(address: str) -> str:
    """The key of an address: of IPv6 the 64 bits that one customer of a provider has.

    >>> network("10.0.0.7"), network("2001:db8::1:2:3:4"), network("testclient")
    ('10.0.0.7', '2001:db8::/64', 'testclient')
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, 64), strict=False))
