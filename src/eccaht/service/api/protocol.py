"""A connection of the service as uvicorn serves it, with an end to every wait for its client.

uvicorn waits for ever for the rest of a head, for the rest of a body that nothing reads any more, and for a client that
takes no more of an answer; and it closes while a client is still sending, which then sees a reset and no answer.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Literal, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from eccaht.service.security.connections import Connections

_LONGEST = 65_536  # bytes of a head
_IDLE = 5.0  # seconds until the next request of a connection begins
_LINGER = 30.0  # seconds for the rest of a body whose answer is out, and for a client to take what it asked for
_DISCARDED = 100_000_000  # bytes that are read and dropped so that a client gets to read its answer


class _Outgoing:
    """A transport whose end is left to the protocol; afterwards nothing is sent any more."""

    def __init__(self, transport: asyncio.Transport, protocol: LimitedProtocol) -> None:
        self._transport, self._protocol = transport, protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._protocol.ending:
            self._transport.write(data)

    def close(self) -> None:
        self._protocol.end()

    def is_closing(self) -> bool:
        return self._protocol.ending or self._transport.is_closing()


class LimitedProtocol(HttpToolsProtocol):
    """One connection; `limited` makes the class with its limits."""

    shared: ClassVar[Connections]
    head_time: ClassVar[float]
    _line: asyncio.Transport

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.ending = self._lost = False
        self._reading: Literal["", "head", "body"] = ""
        self._asked = self._answered = 0  # requests whose head is complete, and those whose answer is
        self._size = 0  # bytes of a head that is not complete, then of what is dropped
        self._stalled = False
        self._left = 0  # bytes that the client had not taken when the time began
        self._timer: asyncio.TimerHandle | None = None

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room."""
        self._line = transport
        super().connection_made(cast("asyncio.Transport", _Outgoing(transport, self)))
        if self.shared.admit(self, self._peer):
            self._renew()
        else:
            self.evict()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        self.ending = self._lost = True
        self._cancel()
        self.shared.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is only waited for that the client reads its answer."""
        self._size += len(data)
        if self.ending:
            if self._size > _DISCARDED:
                self._line.abort()
            return
        super().data_received(data)
        if self._reading == "head" and self._size > _LONGEST:
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        super().on_message_begin()
        self._reading, self._size = "head", 0
        self._renew()

    def on_headers_complete(self) -> None:
        """The last byte of a head."""
        super().on_headers_complete()
        self._reading = "body"
        self._asked += 1
        self._renew()

    def on_message_complete(self) -> None:
        """The last byte of a body."""
        super().on_message_complete()
        self._reading = ""
        self._renew()

    def on_response_complete(self) -> None:
        """The last byte of an answer."""
        self._answered += 1
        super().on_response_complete()
        self._renew()

    def pause_writing(self) -> None:
        """The client takes less than is sent."""
        super().pause_writing()
        self._stalled = True
        self._renew()

    def resume_writing(self) -> None:
        """The client has taken most of it."""
        super().resume_writing()
        self._stalled = False
        self._renew()

    def shutdown(self) -> None:
        """The service ends: only requests that are being answered are waited for."""
        if self._asked > self._answered:
            super().shutdown()
        else:
            self._line.close()

    def evict(self) -> None:
        """End at once, to make room."""
        self.ending = True
        self._line.abort()

    def end(self) -> None:
        """Close; a client that is still sending gets to read its answer first, while what it sends is dropped."""
        if self.ending:
            return
        self.ending = True
        if self._reading and self._line.can_write_eof():
            self._size = 0
            self.flow.resume_reading()
            self._line.write_eof()
        else:
            self._line.close()
        self._renew()

    def _allowed(self) -> float | None:
        """How long the client may take for what it is to do now; None if it is not its turn."""
        if self.ending or self._stalled:
            return _LINGER
        if self._asked > self._answered:
            return None  # the time for a body is the fence's
        if self._reading == "body":
            return _LINGER
        return self.head_time if self._reading == "head" or not self._asked else _IDLE

    def _renew(self) -> None:
        """Something has happened: another time begins."""
        self._cancel()
        self.shared.waits(self, bool(self._reading) or self._asked == self._answered)
        seconds = self._allowed()
        if seconds is not None and not self._lost:
            self._left = self._line.get_write_buffer_size()
            self._timer = self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        if self._line.get_write_buffer_size() < self._left:  # it is slow, not gone
            self._renew()
            return
        if self._reading == "head" and not self.ending:
            self.shared.report("slow heads", self._peer)
        self.evict()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def limited(connections: Connections, head_time: float) -> type[LimitedProtocol]:
    """The protocol of one service; head_time: seconds for the head of a request."""
    return type("Limited", (LimitedProtocol,), {"shared": connections, "head_time": head_time})
