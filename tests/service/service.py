"""The whole service with one plant, behind its guard, and a token of each scope."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from eccaht.service.api.app import make_app
from eccaht.service.security.settings import SCOPES
from eccaht.service.settings import Settings
from eccaht.service.store import Store
from tests.service import plants, stores
from tests.service.asking import Client
from tests.service.guarded import bearer, make

PLANT = "p"


@dataclass(frozen=True)
class Service:
    """A service that runs; headers: of a valid token of each scope."""

    app: FastAPI
    client: Client
    store: Store
    headers: dict[str, dict[str, str]]
    digest: str


@contextmanager
def running(
    kind: str, folder: Path, *, url: str | None = None, options: dict[str, Any] | None = None, **parts: Any
) -> Iterator[Service]:
    """A service on a store of its own, or on the one at a URL, where it may have run before."""
    with ExitStack() as stack:
        place = stack.enter_context(stores.located(kind, folder)) if url is None else (url, None)
        app = make_app(Settings(store={"url": place[0], "schema": place[1]}, **parts))
        store: Store = app.state.store
        run = secrets.token_hex(4)
        headers = {
            str(scope): bearer(make(store, scope if url is None else f"{scope} {run}", scope)) for scope in SCOPES
        }
        client = Client(app)
        stack.callback(client.close)
        with client:
            sent = client.post("/api/models?name=m", content=plants.content(), headers=headers["admin"])
            digest = sent.json()["digest"]
            given = {"model": digest, **(options or {})}
            put = client.request("PUT", f"/api/plants/{PLANT}", json=given, headers=headers["admin"])
            assert put.status_code == 200, put.text
            yield Service(app, client, store, headers, digest)


def endpoints(routes: list[Any]) -> Iterator[APIRoute]:
    """All endpoints of an app, also those of routers within routers."""
    for route in routes:
        if (inner := getattr(route, "original_router", None)) is not None:
            yield from endpoints(inner.routes)
        elif isinstance(route, APIRoute):
            yield route
