"""A small app behind the guard, by itself or behind a real socket, and tokens for it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Request

from eccaht.service.api.serving import server_config
from eccaht.service.security import guard
from eccaht.service.security.guard import Caller, require
from eccaht.service.security.login import install
from eccaht.service.settings import Settings
from eccaht.service.store import Store
from eccaht.service.store.store import now
from tests.service.asking import Client


def make(store: Store, name: str, *granted: str, seconds: float | None = None, at: int | None = None) -> str:
    with store.begin() as connection:
        return guard.create(connection, name, granted, now=now() if at is None else at, seconds=seconds)


def revoke(store: Store, name: str) -> None:
    with store.begin() as connection:
        guard.revoke(connection, name, now=now())


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def small_app(store: Store, **security: Any) -> FastAPI:
    app = FastAPI()
    settings = Settings(security=security)
    install(app, settings.security, store, body=settings.limits.body, model=settings.limits.model)

    @app.get("/api/seen")
    def seen(caller: Annotated[Caller, Depends(require("read"))]) -> str:
        return caller.who

    @app.post("/api/done")
    def done(request: Request, caller: Annotated[Caller, Depends(require("operate"))]) -> str:
        assert request.state.who == caller.who
        return caller.who

    @app.post("/api/plants/{plant}/rows", dependencies=[Depends(require("ingest"))])
    async def rows(request: Request) -> int:
        return len(await request.body())

    @app.get("/page")
    def page() -> str:
        return "a page"

    return app


@contextmanager
def served(app: FastAPI) -> Iterator[int]:
    """An app, which is started by itself, on a real socket as the service serves it: the port."""
    config = server_config(app)
    config.lifespan = "off"
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def client(store: Store, address: str = "127.0.0.1", **security: Any) -> Client:
    return Client(small_app(store, **security), address)
