"""The login of the page: a token for a cookie; and `install`, which puts all of security into an app."""

from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from eccaht.service.security import sessions
from eccaht.service.security.fence import Fence, network, retry_after
from eccaht.service.security.guard import Caller, Guard, allows, find, require
from eccaht.service.security.settings import Security
from eccaht.service.store.store import Store, now, record

router = APIRouter(tags=["login"])
OTHER_BODY = 64_000  # bytes of a body that holds neither rows nor a model
AnyCaller = Annotated[Caller, Depends(require("any"))]


class Credentials(BaseModel):
    """What one logs in with."""

    model_config = ConfigDict(extra="forbid")
    token: str = Field(max_length=200)


class Me(BaseModel):
    """Who one is; csrf: what unsafe requests must send as X-CSRF-Token, None if they need not."""

    name: str
    scopes: list[str]
    by: str
    csrf: str | None


@router.post("/api/login", responses={401: {}, 403: {}, 429: {}})
def log_in(credentials: Credentials, request: Request, response: Response) -> Me:
    """Exchange a token for a cookie."""
    guard: Guard = request.app.state.guard
    # a page of another site must not log its reader in as another user; browsers say where a request comes from
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise HTTPException(403, "log in from the page of this service")
    address = guard.address(request.scope)
    moment = now()
    with guard.store.read() as connection:
        token = find(connection, credentials.token.strip(), moment)
    # a token cannot be guessed: counting keeps wrong ones from filling the audit, and never keeps a right one out
    seconds = guard.wrong_logins.take(network(address)) if token is None else 0.0
    if seconds:
        raise HTTPException(429, "too many wrong logins: wait and try again", retry_after(seconds))
    reads = token is not None and allows(token.scopes, "read")
    with guard.store.begin() as connection:
        who = "nobody" if token is None else token.name
        record(connection, who, "login" if reads else "login refused", None, {"address": address})
    if token is None:
        raise HTTPException(401, "this token is not valid: it is mistyped, expired, revoked or of another store")
    if not reads:
        raise HTTPException(403, "this token may only send rows; the page needs the scope read")
    cookie = guard.signer.issue(token.id, moment)
    _set(response, request, cookie, guard.signer.lifetime)
    return Me(name=token.name, scopes=list(token.scopes), by="login", csrf=guard.signer.csrf(cookie))


@router.post("/api/logout", responses={401: {}, 403: {}})
def log_out(request: Request, response: Response, caller: AnyCaller) -> dict[str, bool]:
    guard: Guard = request.app.state.guard
    moment = now()
    with guard.store.begin() as connection:
        if caller.session is not None:
            sessions.end(connection, caller.session, moment)
        record(connection, caller.who, "logout", None, {})
    _set(response, request, "", 0.0)
    return {"ok": True}


@router.get("/api/login", include_in_schema=False)
def logged_in(request: Request) -> Me | None:
    """The same as /api/me, null for an unknown caller: a page may ask whether to show the login."""
    guard: Guard = request.app.state.guard
    caller = guard.identify(request)
    return None if caller is None else _me(request, caller)


@router.get("/api/me", responses={401: {}, 403: {}})
def me(request: Request, caller: AnyCaller) -> Me:
    """Who one is, and what unsafe requests must send."""
    return _me(request, caller)


def _me(request: Request, caller: Caller) -> Me:
    csrf = None if caller.secret is None else request.app.state.guard.signer.csrf(caller.secret)
    return Me(name=caller.who, scopes=list(caller.scopes), by=caller.by, csrf=csrf)


def _set(response: Response, request: Request, cookie: str, seconds: float) -> None:
    secure = sessions.must_be_secure(request.url.scheme, request.headers.get("host", ""))
    response.headers.append("Set-Cookie", sessions.set_cookie(cookie, seconds=seconds, secure=secure))


def install(app: FastAPI, security: Security, store: Store, *, body: int, model: int) -> Guard:
    """Put limits, headers, login and the guard into an app; call it before the app serves anything.

    body, model: the most bytes of a delivery of rows and of an uploaded model.
    """
    guard = app.state.guard = Guard(security, store)
    bodies = [("/api/plants/[^/]+/rows", body), ("/api/models", model), (".*", OTHER_BODY)]
    app.include_router(router)
    app.add_middleware(Fence, bodies=bodies)
    return guard
