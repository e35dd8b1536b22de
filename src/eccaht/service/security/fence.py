"""What holds for every request before a route handles it: sizes and the headers of the answer; and a rate.

Plain ASGI, because a body must be counted while it arrives: one without a length may never end.
"""

import ipaddress
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Limits around an app; bodies: the most bytes of a body, by patterns of paths; the first that fits counts."""

    def __init__(self, app: ASGIApp, *, bodies: Sequence[tuple[str, int]]) -> None:
        self._app, self._bodies = app, bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        dressed = _dressed(scope, send)
        most = next(most for pattern, most in self._bodies if re.fullmatch(pattern, scope["path"], re.DOTALL))
        refusal = _refusal(Headers(scope=scope), most)
        if refusal is not None:
            await refusal(scope, receive, dressed)
            return
        await self._app(scope, _counted(receive, most), dressed)


def _refusal(headers: Headers, most: int) -> Response | None:
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return _answer(415, "bodies are taken as they are: send this one without Content-Encoding")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        return _answer(400, "the Content-Length is not a number")
    if len(length) > 18 or int(length) > most:
        return _answer(413, _too_large(most))
    return None


def _counted(receive: Receive, most: int) -> Receive:
    """Count a body while it arrives; the error passes through the app, which answers with it."""
    got = 0

    async def counted() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > most:
            raise HTTPException(413, _too_large(most))
        return message

    return counted


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


def _answer(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status)


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
