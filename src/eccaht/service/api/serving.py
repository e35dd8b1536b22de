"""The service as a program: logs as lines of JSON, an end by signal, and an end to every wait for a client.

uvicorn waits for ever for the rest of a head, for the rest of a body that nothing reads any more, and for a client that
takes no more of an answer; and it closes while a client is still sending, which then sees a reset and no answer.
`LimitedProtocol` does not.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, cast

import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

try:
    import resource
except ImportError:  # there is no such limit on Windows
    resource = None  # type: ignore[assignment]

from eccaht.service.api.app import make_app
from eccaht.service.hiding import scrubbed
from eccaht.service.security.connections import Connections
from eccaht.service.security.guard import check_listening
from eccaht.service.settings import Settings

_LOG = logging.getLogger("eccaht.service")
_FILES = 128  # that may be open beside connections
_BACKLOG = 2048  # connections that wait, as many as uvicorn allows
_KNOWN = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message", "taskName"}
_LONGEST = 65_536  # bytes of a head
_IDLE = 5.0  # seconds until the next request of a connection begins
_LINGER = 30.0  # seconds for the rest of a body whose answer is out, and for a client to take what it asked for
_DISCARDED = 100_000_000  # bytes that are read and dropped so that a client gets to read its answer


class Lines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        document |= {name: value for name, value in record.__dict__.items() if name not in _KNOWN}
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)


class _Server(uvicorn.Server):
    """Ends the streams of pages when it is asked to end: they would last until the time for answers is over."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        assert isinstance(self.config.app, FastAPI)
        self.config.app.state.engine.hub.close()  # each ends on its next turn, when no client listens for new ones
        await super().shutdown(sockets)


def run(settings: Settings) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    try:
        app = make_app(settings)
    except (sa.exc.OperationalError, sa.exc.ProgrammingError) as error:
        reason = scrubbed(" ".join(str(error.orig).split()), settings.store.url.secrets())[:200]
        raise ValueError(f"the store does not answer: {reason}; start the database, or give another --store") from None
    check_listening(settings.listen.host, app.state.store, is_open=settings.security.open)
    listening = _listening(settings)
    port = listening.getsockname()[1]
    host = f"[{settings.listen.host}]" if ":" in settings.listen.host else settings.listen.host
    print(f"eccaht serves http://{host}:{port}/ (Ctrl-C ends it)", flush=True)
    server = _Server(server_config(app, settings))
    server.run(sockets=[listening])
    return 0 if server.started else 1


def server_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves an app behind the guard."""
    limits, guard = settings.limits, app.state.guard
    connections = Connections(_most(limits.connections), limits.per_address, guard.is_proxy)
    limits_of = {"shared": connections, "head_time": settings.security.head_time}
    # proxy_headers: the guard must see the real address, not that of a header; ws: no limit would hold for those
    return uvicorn.Config(
        app,
        http=type("Limited", (LimitedProtocol,), limits_of),
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=3,
        server_header=False,
        proxy_headers=False,
    )


def _most(wanted: int) -> int:
    """How many connections there may be: each is an open file, and the store, the sources and alerts need some too."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if resource is not None else 1024
    if files == -1 or files - _FILES >= wanted:
        return wanted
    most = max(files - _FILES, files // 2)
    _LOG.info("limits.connections is %d, but %d files may be open: %d connections", wanted, files, most)
    return most


def _listening(settings: Settings) -> socket.socket:
    """The socket, bound before anything starts, so that a port in use is one clear line.

    It listens already: a client that comes as soon as the line is out waits for the start instead of being refused.
    """
    host, port = settings.listen.host, settings.listen.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as error:
        raise ValueError(f"cannot listen on {host} port {port}: {error.strerror}; choose another --port") from None
    return made


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
    """One connection; shared and head_time, seconds for the head of a request, are set by `server_config`."""

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
