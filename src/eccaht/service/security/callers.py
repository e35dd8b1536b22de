"""Who is calling, and may they."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from fastapi import HTTPException, Request
from starlette.datastructures import Headers
from starlette.types import Scope as Asgi

from eccaht.service.security import scopes, sessions, tokens
from eccaht.service.security.keys import is_over, session_key
from eccaht.service.security.proxy import ProxyRefused, includes, networks_of
from eccaht.service.security.rates import Rates, network, retry_after
from eccaht.service.security.settings import Security
from eccaht.service.store.store import Store, now

_USED = 60_000_000  # microseconds between two notes that a token was used: not every request shall write

_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True)
class Caller:
    """A client that was let in; secret: what the CSRF token belongs to, None where none is needed."""

    who: str
    scopes: tuple[str, ...]
    by: Literal["token", "login", "proxy", "local"]
    token: int | None = None
    session: sessions.LoginSession | None = None
    secret: str | None = None


class Guard:
    """Finds out who is calling, by token, by login or by a trusted proxy, and what they may do."""

    def __init__(self, settings: Security, store: Store) -> None:
        self.store = store
        with store.begin() as connection:
            key = session_key(connection)
        self.signer = sessions.Signer(key, settings.session)
        self.proxy = None if settings.proxy is None else settings.proxy.proxy()
        self._forwarders = networks_of(settings.forwarded_by) + (() if self.proxy is None else self.proxy.networks)
        self._by_token = Rates(settings.rate, settings.burst)
        self.by_address = Rates(settings.address_rate, settings.address_burst)
        self.wrong_logins = Rates(settings.logins / 60.0, max(settings.logins, 1.0))
        self._open, self._used = settings.open, dict[int, int]()

    def admit(self, request: Request, scope: str) -> Caller:
        """The caller, if the scope is theirs; else an answer of 401, 403 or 429 that says what is missing."""
        caller = self.identify(request)
        if caller is None:
            self.count_unknown(request)
            raise HTTPException(
                401, "give a valid token: Authorization: Bearer TOKEN, or log in", {"WWW-Authenticate": "Bearer"}
            )
        self.count(caller)
        if not scopes.allows(caller.scopes, scope):
            raise HTTPException(403, f"this needs the scope {scope}, {caller.who} has {', '.join(caller.scopes)}")
        if request.method not in sessions.SAFE and caller.secret is not None:
            given = request.headers.getlist(sessions.CSRF)
            if len(given) != 1 or not self.signer.csrf_matches(caller.secret, given[0]):
                raise HTTPException(403, f"send the header {sessions.CSRF} with what GET /api/me gives as csrf")
        return caller

    def identify(self, request: Request) -> Caller | None:
        """Who is calling, None if unknown; what only pretends to come from a proxy is refused."""
        try:
            by_proxy = self._by_proxy(request)
        except ProxyRefused as error:
            raise HTTPException(403, str(error)) from None
        shown = [text for text in request.headers.getlist("authorization") if text.lower().startswith("bearer ")]
        if shown:  # other schemes may be between the browser and the proxy
            return self._by_bearer(shown)
        return by_proxy or self._by_cookie(request.cookies.get(sessions.COOKIE)) or self._local(request)

    def is_still(self, caller: Caller) -> bool:
        """Whether a caller who was let in would be let in now."""
        if caller.token is None:
            return True
        moment = now()
        with self.store.read() as connection:
            token = tokens.by_number(connection, caller.token, moment)
            if token is None or (caller.session is None):
                return token is not None
            return caller.session.expires > moment and not is_over(connection, caller.session)

    def is_proxy(self, peer: str) -> bool:
        """Whether an address is a trusted proxy's."""
        return includes(self._forwarders, peer)

    def address(self, scope: Asgi) -> str:
        """The address of the client; behind a trusted proxy the last one that it names."""
        client = scope.get("client")
        peer = client[0] if client else ""
        if self.is_proxy(peer):
            forwarded = Headers(scope=scope).getlist("x-forwarded-for")
            if forwarded:
                return forwarded[-1].rpartition(",")[2].strip()[:64] or peer
        return peer

    def _by_proxy(self, request: Request) -> Caller | None:
        if self.proxy is None:
            return None
        peer = request.client.host if request.client else ""
        found = self.proxy.user(request.headers.getlist(self.proxy.header), peer)
        if found is None:
            return None
        user, granted = found
        return Caller(user, granted, "proxy", secret=f"proxy {user}")

    def _local(self, request: Request) -> Caller | None:
        """A user of this machine, where these are let in; a page of another site may have its name lead here."""
        peer = request.client.host if request.client else ""
        here = sessions.is_local(f"[{peer}]" if ":" in peer else peer) and sessions.is_local(
            request.headers.get("host", "")
        )
        if not (self._open and here) or any(name in request.headers for name in _FORWARDED):
            return None
        return Caller("local user", scopes.SCOPES, "local", secret="local user")

    def _by_bearer(self, shown: list[str]) -> Caller | None:
        if len(shown) > 1:
            return None
        with self.store.read() as connection:
            token = tokens.find(connection, shown[0][len("bearer ") :].strip(), now())
        return None if token is None else self._caller(token, "token")

    def _by_cookie(self, cookie: str | None) -> Caller | None:
        session = None if cookie is None else self.signer.read(cookie, now())
        if session is None:
            return None
        with self.store.read() as connection:
            token = None if is_over(connection, session) else tokens.by_number(connection, session.token, now())
        return None if token is None else self._caller(token, "login", session=session, secret=cookie)

    def _caller(self, token: tokens.Token, by: Literal["token", "login"], **more: Any) -> Caller:
        moment = now()
        if moment - max(self._used.get(token.id, 0), token.used or 0) > _USED:
            self._used[token.id] = moment
            with self.store.begin() as connection:
                tokens.note_use(connection, token.id, moment)
        return Caller(token.name, token.scopes, by, token.id, **more)

    def count(self, caller: Caller) -> None:
        """One request more; an answer of 429 if they are too many."""
        seconds = self._by_token.take(f"{caller.by if caller.token is None else 'token'} {caller.token or caller.who}")
        if seconds:
            raise HTTPException(429, f"too many requests of {caller.who}: wait and try again", retry_after(seconds))

    def count_unknown(self, request: Request) -> None:
        """The same for an unknown caller; those who show nothing were counted before they came here."""
        seconds = self.by_address.take(network(self.address(request.scope)))
        if seconds:
            raise HTTPException(429, "too many requests without a valid token: wait", retry_after(seconds))


def require(scope: scopes.Scope | Literal["any"]) -> Callable[[Request], Caller]:
    """A dependency that lets only callers with this scope in; afterwards `request.state.who` is their name."""
    if scope != "any":
        scopes.checked([scope])

    def admitted(request: Request) -> Caller:
        guard: Guard = request.app.state.guard
        try:
            caller = guard.admit(request, scope)
        except sa.exc.OperationalError:
            raise HTTPException(503, "the store does not answer: try again", retry_after(1.0)) from None
        request.state.caller, request.state.who = caller, caller.who
        return caller

    admitted.scope = scope  # type: ignore[attr-defined]  # so that a test can walk over all routes
    return admitted
