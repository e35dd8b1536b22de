"""Who is calling, and may they: tokens in the store, `require` for routes, the record of who did what.

A secret has 256 random bits: guessing finds none, however fast the hash is, so a salted SHA-256 keeps it as well as a
slow password hash would, and a service that checks hundreds of requests a second can afford it.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Scope as Asgi

from eccaht.base.presentation.text import did_you_mean
from eccaht.service.security import sessions
from eccaht.service.security.fence import Rates, retry_after
from eccaht.service.security.settings import (
    INCLUDED,
    SCOPES,
    Scope,
    Security,
    checked_scopes,
    includes,
    networks_of,
)
from eccaht.service.store import schema
from eccaht.service.store.store import Store, now, record

COMMAND_LINE = "command line"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}")
_TOKEN = re.compile(r"eccaht_([1-9][0-9]{0,17})_([0-9a-f]{64})")  # its number in the store, and its secret
_NO_TOKEN = "sha256$" + "0" * 32 + "$" + "0" * 64  # what a secret is compared with when there is no such token
_table = schema.tokens
_USED = 60_000_000  # microseconds between two notes that a token was used: not every request shall write
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def allows(granted: Iterable[str], needed: str) -> bool:
    """Whether these scopes open what needs that one, or "any"; a word that is no scope opens nothing.

    >>> allows(["operate"], "read"), allows(["operate"], "ingest"), allows(["admin"], "ingest")
    (True, False, True)
    """
    return any(needed in {"any", *INCLUDED[scope]} for scope in granted if scope in INCLUDED)


@dataclass(frozen=True)
class Token:
    """What is known of a token, which is not enough to use it; times in microseconds."""

    id: int
    name: str
    scopes: tuple[str, ...]
    created: int
    expires: int | None
    revoked: int | None
    used: int | None

    def state(self, now: int) -> str:
        """Whether it opens anything: "valid", "revoked" or "expired"."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "valid"


def create(
    connection: sa.Connection,
    name: str,
    granted: Iterable[str],
    *,
    now: int,
    seconds: float | None = None,
    who: str = COMMAND_LINE,
) -> str:
    """Make a token that holds for so many seconds, or for ever, and return its text, which cannot be read again."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot name a token: use up to 64 letters, digits, spaces and . _ @ -")
    allowed = checked_scopes(granted)
    taken = connection.execute(sa.select(_table.c.id).where(_table.c.name == name)).first()
    if taken is not None:
        raise ValueError(f"there is a token {name!r} already, perhaps a revoked one: choose another name")
    secret = secrets.token_hex(32)
    row = {"name": name, "hash": hashed(secret), "scopes": " ".join(allowed), "created": now}
    row["expires"] = None if seconds is None else now + round(seconds * 1e6)
    added = connection.execute(sa.insert(_table).values(**row)).inserted_primary_key
    assert added is not None
    record(connection, who, "token create", None, {"token": name, "scopes": list(allowed)})
    return f"eccaht_{added[0]}_{secret}"


def listed(connection: sa.Connection) -> list[Token]:
    """All tokens, also those that open nothing any more."""
    return [_token(row) for row in connection.execute(sa.select(_table).order_by(_table.c.id))]


def revoke(connection: sa.Connection, name: str, *, now: int, who: str = COMMAND_LINE) -> None:
    """End a token, and with it every login that it opened."""
    known = {token.name: token for token in listed(connection)}
    if name not in known:
        instead = did_you_mean(name, known, otherwise=": 'eccaht token list' names them")
        raise ValueError(f"there is no token {name!r}{instead}")
    if known[name].revoked is not None:
        raise ValueError(f"the token {name!r} is revoked already")
    connection.execute(sa.update(_table).where(_table.c.name == name).values(revoked=now))
    record(connection, who, "token revoke", None, {"token": name})


def find(connection: sa.Connection, text: str, now: int) -> Token | None:
    """The valid token of this text; None if it is damaged, from elsewhere, expired or revoked."""
    match = _TOKEN.fullmatch(text)
    row = None if match is None else connection.execute(sa.select(_table).where(_table.c.id == int(match[1]))).first()
    same = matches("" if match is None else match[2], None if row is None else row.hash)
    return _valid(row, now) if same else None


def by_number(connection: sa.Connection, number: int, now: int) -> Token | None:
    """The valid token that a login stands for."""
    return _valid(connection.execute(sa.select(_table).where(_table.c.id == number)).first(), now)


def note_use(connection: sa.Connection, number: int, now: int) -> None:
    connection.execute(sa.update(_table).where(_table.c.id == number).values(used=now))


def is_any_valid(connection: sa.Connection, now: int) -> bool:
    return any(token.state(now) == "valid" for token in listed(connection))


def _valid(row: sa.Row[tuple[object, ...]] | None, now: int) -> Token | None:
    token = None if row is None else _token(row)
    return token if token is not None and token.state(now) == "valid" else None


def _token(row: sa.Row[tuple[object, ...]]) -> Token:
    values = dict(row._mapping)
    del values["hash"]
    return Token(**{**values, "scopes": tuple(str(values["scopes"]).split())})


def hashed(secret: str, salt: str | None = None) -> str:
    salt = secrets.token_hex(16) if salt is None else salt
    return f"sha256${salt}${hashlib.sha256(bytes.fromhex(salt) + secret.encode()).hexdigest()}"


def matches(secret: str, stored: str | None) -> bool:
    """Whether a secret is the one that was stored; takes as long if none was, or if only the last letter differs."""
    known = _NO_TOKEN if stored is None else stored
    kind, _, rest = known.partition("$")
    same = kind == "sha256" and hmac.compare_digest(hashed(secret, rest.partition("$")[0]), known)
    return same and stored is not None


@dataclass(frozen=True)
class Caller:
    """A client that was let in; secret: what the CSRF token belongs to, None where none is needed."""

    who: str
    scopes: tuple[str, ...]
    by: Literal["token", "login", "local"]
    token: int | None = None
    session: sessions.LoginSession | None = None
    secret: str | None = None


class Guard:
    """Finds out who is calling, by token or by login, and what they may do."""

    def __init__(self, settings: Security, store: Store) -> None:
        self.store = store
        with store.begin() as connection:
            key = sessions.session_key(connection)
        self.signer = sessions.Signer(key, settings.session)
        self._forwarders = networks_of(settings.forwarded_by)
        self.wrong_logins = Rates(settings.logins / 60.0, max(settings.logins, 1.0))
        self._open, self._used = settings.open, dict[int, int]()

    def admit(self, request: Request, scope: str) -> Caller:
        """The caller, if the scope is theirs; else an answer of 401 or 403 that says what is missing."""
        caller = self.identify(request)
        if caller is None:
            raise HTTPException(
                401, "give a valid token: Authorization: Bearer TOKEN, or log in", {"WWW-Authenticate": "Bearer"}
            )
        if not allows(caller.scopes, scope):
            raise HTTPException(403, f"this needs the scope {scope}, {caller.who} has {', '.join(caller.scopes)}")
        if request.method not in sessions.SAFE and caller.secret is not None:
            given = request.headers.getlist(sessions.CSRF)
            if len(given) != 1 or not self.signer.csrf_matches(caller.secret, given[0]):
                raise HTTPException(403, f"send the header {sessions.CSRF} with what GET /api/me gives as csrf")
        return caller

    def identify(self, request: Request) -> Caller | None:
        """Who is calling, None if unknown."""
        shown = [text for text in request.headers.getlist("authorization") if text.lower().startswith("bearer ")]
        if shown:  # other schemes may be between the browser and the proxy
            return self._by_bearer(shown)
        return self._by_cookie(request.cookies.get(sessions.COOKIE)) or self._local(request)

    def is_still(self, caller: Caller) -> bool:
        """Whether a caller who was let in would be let in now."""
        if caller.token is None:
            return True
        moment = now()
        with self.store.read() as connection:
            token = by_number(connection, caller.token, moment)
            if token is None or caller.session is None:
                return token is not None
            return caller.session.expires > moment and not sessions.is_over(connection, caller.session)

    def address(self, scope: Asgi) -> str:
        """The address of the client; behind a trusted proxy the last one that it names."""
        peer = _peer(scope)
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        if forwarded and includes(self._forwarders, peer):
            return forwarded[-1].rpartition(",")[2].strip()[:64] or peer
        return peer

    def _local(self, request: Request) -> Caller | None:
        """A user of this machine, where these are let in; a page of another site may have its name lead here."""
        here = sessions.is_own(_peer(request.scope)) and sessions.is_local(request.headers.get("host", ""))
        if not (self._open and here) or any(name in request.headers for name in _FORWARDED):
            return None
        return Caller("local user", SCOPES, "local", secret="local user")

    def _by_bearer(self, shown: list[str]) -> Caller | None:
        if len(shown) > 1:
            return None
        with self.store.read() as connection:
            token = find(connection, shown[0][len("bearer ") :].strip(), now())
        return None if token is None else self._caller(token, "token")

    def _by_cookie(self, cookie: str | None) -> Caller | None:
        session = None if cookie is None else self.signer.read(cookie, now())
        if session is None:
            return None
        with self.store.read() as connection:
            over = sessions.is_over(connection, session)
            token = None if over else by_number(connection, session.token, now())
        return None if token is None else self._caller(token, "login", session=session, secret=cookie)

    def _caller(self, token: Token, by: Literal["token", "login"], **more: Any) -> Caller:
        moment = now()
        if moment - max(self._used.get(token.id, 0), token.used or 0) > _USED:
            self._used[token.id] = moment
            with self.store.begin() as connection:
                note_use(connection, token.id, moment)
        return Caller(token.name, token.scopes, by, token.id, **more)


def _peer(scope: Asgi) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def require(scope: Scope | Literal["any"]) -> Callable[[Request], Caller]:
    """A dependency that lets only callers with this scope in; afterwards `request.state.who` is their name."""
    if scope != "any":
        checked_scopes([scope])

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


def check_listening(host: str, store: Store, *, is_open: bool = False) -> None:
    """Refuse to listen on other addresses than this machine's own while no valid token exists, or none is needed."""
    with store.read() as connection:
        check_host(host, has_token=is_any_valid(connection, now()), is_open=is_open)


def check_host(host: str, *, has_token: bool, is_open: bool) -> None:
    """The same, where it is known whether there is a valid token."""
    if sessions.is_own(host):
        return
    if is_open:
        raise ValueError(f"will not listen on {host} while security.open lets every client in: set it to false")
    if not has_token:
        made = "'eccaht token create NAME --scope admin'"
        raise ValueError(f"will not listen on {host} without a token: make one with {made}")
