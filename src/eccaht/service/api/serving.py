"""The service as a program: logs as lines of JSON, and an end by signal."""

import json
import logging
import socket
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI

from eccaht.base.files import exclusive
from eccaht.service.api.app import make_app
from eccaht.service.hiding import scrubbed
from eccaht.service.runtime.engine import identity
from eccaht.service.security.guard import check_listening
from eccaht.service.settings import Settings
from eccaht.service.store import Store

_BACKLOG = 2048  # connections that wait, as many as uvicorn allows
_KNOWN = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message", "taskName"}


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
    store: Store = app.state.store
    check_listening(settings.listen.host, store, is_open=settings.security.open)
    listening = _listening(settings)
    port = listening.getsockname()[1]
    app.state.engine.worker.owners.rename(*identity(settings, port))
    host = f"[{settings.listen.host}]" if ":" in settings.listen.host else settings.listen.host
    server = _Server(server_config(app))
    with ExitStack() as stack:
        if store.is_sqlite:
            busy = f"another service uses {store.shown}: end it, or let several share PostgreSQL"
            stack.enter_context(exclusive(Path(f"{store.url.database}.lock"), busy))
        print(f"http://{host}:{port}/\neccaht serves there until Ctrl-C ends it", flush=True)
        server.run(sockets=[listening])
    return 0 if server.started else 1


def server_config(app: FastAPI) -> uvicorn.Config:
    """How uvicorn serves an app behind the guard."""
    # proxy_headers: the guard must see the real address, not that of a header; ws: no limit would hold for those;
    # h11 refuses a head without an end, which httptools would collect
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=3,
        server_header=False,
        proxy_headers=False,
    )


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
