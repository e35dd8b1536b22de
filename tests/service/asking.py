"""A client that asks an app without a socket, one request after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI

T = TypeVar("T")
HERE = "http://localhost:8765"
_open: list[Client] = []


def close_all() -> None:
    """End the clients of a test, but for those that were entered: they end by themselves."""
    while _open:
        _open.pop().close()


class Client:
    """Keeps cookies as a browser does; faults of the app are answers of 500; `with` starts and ends the app."""

    def __init__(self, app: FastAPI, address: str = "127.0.0.1") -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 50000))
        self._app, self._runner = app, asyncio.Runner()
        self._http = httpx.AsyncClient(transport=transport, base_url=HERE, timeout=60.0)
        _open.append(self)

    @property
    def cookies(self) -> httpx.Cookies:
        return self._http.cookies

    def __enter__(self) -> Client:
        _open.remove(self)
        self._lifespan = self._app.router.lifespan_context(self._app)
        self._runner.run(self._lifespan.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._lifespan.__aexit__(kind, error, trace))

    def close(self) -> None:
        self._runner.run(self._http.aclose())
        self._runner.close()

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.run(self._http.request(method, path, **more))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Let something happen on the loop of the app."""
        return self._runner.run(work)
