"""The door of the service: `require` for its routes, `install` for its app, and whether it may be open to others."""

from __future__ import annotations

import asyncio
import re

import sqlalchemy as sa
from fastapi import FastAPI
from starlette.types import Scope

from eccaht.service.security import login, sessions, tokens
from eccaht.service.security.callers import Caller, Guard, require
from eccaht.service.security.fence import Bodies, Fence
from eccaht.service.security.rates import Rates
from eccaht.service.security.settings import Security
from eccaht.service.store.store import Store, now

_FILES = 10.0  # times as many files of the page as other requests: a page has some thirty

__all__ = ["Caller", "Guard", "check_host", "check_listening", "install", "require"]


def install(app: FastAPI, security: Security, store: Store, *, body: int, model: int) -> Guard:
    """Put limits, headers, login and the guard into an app; call it before the app serves anything.

    body, model: the most bytes of a delivery of rows and of an uploaded model.
    """
    guard = app.state.guard = Guard(security, store)
    bodies = Bodies(
        security.other_body,
        [(re.compile(r"/api/plants/[^/]+/rows"), body), (re.compile(r"/api/models"), model)],
        security.body_time,
    )

    async def still(scope: Scope) -> bool:
        caller = scope.get("state", {}).get("caller")
        try:
            return caller is None or await asyncio.to_thread(guard.is_still, caller)
        except sa.exc.OperationalError:  # a store that does not answer is no reason to end the streams of all callers
            return True

    app.include_router(login.router)
    files = Rates(_FILES * security.address_rate, _FILES * security.address_burst)
    app.add_middleware(Fence, bodies=bodies, rates=guard.by_address, files=files, address=guard.address, still=still)
    return guard


def check_listening(host: str, store: Store, *, is_open: bool = False) -> None:
    """Refuse to listen on other addresses than this machine's own while no valid token exists, or none is needed."""
    with store.read() as connection:
        check_host(host, has_token=tokens.is_any_valid(connection, now()), is_open=is_open)


def check_host(host: str, *, has_token: bool, is_open: bool) -> None:
    """The same, where it is known whether there is a valid token."""
    if sessions.is_local(f"[{host}]" if ":" in host else host):
        return
    if is_open:
        raise ValueError(f"will not listen on {host} while security.open lets every client in: set it to false")
    if not has_token:
        made = "'eccaht token create NAME --scope admin'"
        raise ValueError(f"will not listen on {host} without a token: make one with {made}")
