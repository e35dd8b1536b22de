"""Alerts by HTTP: a POST with a JSON document, signed, with a key by which the receiver knows it again."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from eccaht.service.alerts.channel import Message, NotDelivered
from eccaht.service.hiding import SecretHook, scrubbed
from eccaht.version import __version__

SIGNATURE = "X-Eccaht-Signature"
logging.getLogger("httpx").setLevel(logging.WARNING)  # below, it logs every URL, whose path may be a secret


@dataclass(frozen=True)
class Webhook:
    """POSTs messages to a URL; secret: signs them, so that the receiver can verify the sender."""

    name: str
    url: str = field(repr=False)
    secret: str = field(default="", repr=False)
    timeout: float = 10.0
    clock: Callable[[], float] = time.time
    idempotent: bool = True

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"webhook {self.name}: this is not a URL: write it as https://host/path")
        if url.userinfo:
            raise ValueError(f"webhook {self.name}: leave user and password out of the URL, and give a secret instead")

    async def send(self, message: Message) -> None:
        """Send a message; anything but an answer of 200 to 299 counts as not delivered."""
        body = json.dumps(message.document(), allow_nan=False).encode()
        try:
            status = await self._post(body, self._headers(message, body))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            cause = _cause(error)
            reason = f"{type(cause).__name__}: {cause}"
            raise NotDelivered(scrubbed(reason, [self.secret, *SecretHook(self.url).secrets()])) from None
        if not 200 <= status < 300:
            raise NotDelivered(f"the receiver answered {status}")

    def _headers(self, message: Message, body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": message.key,
            "User-Agent": f"eccaht/{__version__}",
        }
        return headers | ({SIGNATURE: signed(self.secret, body, int(self.clock()))} if self.secret else {})

    async def _post(self, body: bytes, headers: dict[str, str]) -> int:
        """The status of the answer; its body is not read, and a redirect is not followed: it is another receiver."""
        trusted = await asyncio.to_thread(ssl.create_default_context)  # reads files
        async with (
            httpx.AsyncClient(verify=trusted, timeout=self.timeout, trust_env=False) as client,
            client.stream("POST", self.url, content=body, headers=headers) as answer,
        ):
            return answer.status_code


def _cause(error: BaseException) -> BaseException:
    """The error of the system behind one of the client, which only says that all its attempts failed."""
    before: BaseException | None = error
    while before is not None and getattr(before, "errno", None) is None:
        before = before.__cause__ or before.__context__
    return before or error


def signed(secret: str, body: bytes, moment: int) -> str:
    """The signature of a body: its time, so that an old message cannot be played again, and an HMAC of both.

    >>> signed("s", b"{}", 1700000000)[:20]
    't=1700000000,v1=...'
    """
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"
