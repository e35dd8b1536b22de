"""Alerts by HTTP: a POST with a JSON document, signed, with a key by which the receiver knows it again."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from eccaht.live.alerts.channel import Message, NotDelivered
from eccaht.version import __version__

SIGNATURE = "X-Eccaht-Signature"


@dataclass(frozen=True)
class Webhook:
    """POSTs messages to a URL; secret: signs them, so that the receiver can tell them from anybody else's."""

    name: str
    url: str
    secret: str = field(default="", repr=False)
    timeout: float = 10.0
    clock: Callable[[], float] = time.time
    idempotent: bool = True

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"webhook {self.name}: {self.url!r} is not a URL: write it as https://host/path")
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"webhook {self.name}: leave user and password out of the URL, and give a secret instead")

    async def send(self, message: Message) -> None:
        """Send a message; anything but an answer of 200 to 299 counts as not delivered."""
        await asyncio.to_thread(self._post, message)

    def _post(self, message: Message) -> None:
        body = json.dumps(message.document(), allow_nan=False).encode()
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": message.key,
            "User-Agent": f"eccaht/{__version__}",
        }
        if self.secret:
            headers[SIGNATURE] = signed(self.secret, body, int(self.clock()))
        connection = self._connection()
        try:
            connection.request("POST", self._path(), body, headers)
            status = connection.getresponse().status  # a redirect is not followed: it would be another receiver
        except (OSError, http.client.HTTPException) as error:
            raise NotDelivered(f"{type(error).__name__}: {error}") from None
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise NotDelivered(f"the receiver answered {status}")

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self.timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=self.timeout)

    def _path(self) -> str:
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def signed(secret: str, body: bytes, moment: int) -> str:
    """The signature of a body: its time, so that an old message cannot be played again, and an HMAC of both.

    >>> signed("s", b"{}", 1700000000)[:20]
    't=1700000000,v1=...'
    """
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"
