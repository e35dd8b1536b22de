"""The login of the page: a signed cookie that stands for a token, and a second secret that other sites cannot send.

The cookie names its token and says until when it holds. The token itself is looked up at every request, so that a
session ends with it. The CSRF token is a signature of the cookie: nothing of a session is stored but its end by logout,
beside the key that signs.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Any

import itsdangerous
import sqlalchemy as sa

from eccaht.service.store import schema

COOKIE, CSRF = "eccaht_session", "X-CSRF-Token"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_KEY, _OVER = "session key", "logout "  # names in the table of the store
_meta = schema.meta
_HOW: dict[str, Any] = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
_LOCAL = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True)
class LoginSession:
    """A cookie whose signature is right: the token it stands for, when it ends (microseconds), and its own name."""

    token: int
    expires: int
    name: str


class Signer:
    """Issues and reads cookies with the key of the store; lifetime in seconds."""

    def __init__(self, key: bytes, lifetime: float) -> None:
        if len(key) < 32:
            raise ValueError("the key that signs cookies has less than 256 bits: delete it from the store")
        self.lifetime = lifetime
        self._cookies = itsdangerous.URLSafeSerializer(key, "session", signer_kwargs=_HOW)
        self._csrf = itsdangerous.Signer(key, "csrf", **_HOW)

    def issue(self, token: int, now: int) -> str:
        text = self._cookies.dumps([token, now + round(self.lifetime * 1e6), secrets.token_hex(16)])
        return text if isinstance(text, str) else text.decode()

    def read(self, cookie: str, now: int) -> LoginSession | None:
        """The session of a cookie, None if it was not issued here, was changed or is over."""
        try:
            session = LoginSession(*self._cookies.loads(cookie))
        except itsdangerous.BadData:
            return None
        return session if session.expires > now else None

    def csrf(self, secret: str) -> str:
        """What unsafe requests must send beside the cookie, or beside what a proxy says of the user."""
        return self._csrf.get_signature(secret).decode()

    def csrf_matches(self, secret: str, given: str | None) -> bool:
        return given is not None and self._csrf.verify_signature(secret, given)


def set_cookie(value: str, *, seconds: float, secure: bool) -> str:
    """The header that makes a browser keep the cookie, or forget it after 0 seconds."""
    parts = [f"{COOKIE}={value}", "Path=/", f"Max-Age={int(seconds)}", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*parts, *(["Secure"] if secure else [])])


def must_be_secure(scheme: str, host: str) -> bool:
    """Whether a browser may only send the cookie over TLS: always, but for plain HTTP on this very machine.

    >>> must_be_secure("http", "localhost:8765"), must_be_secure("http", "plant.example"), must_be_secure("https", "")
    (False, True, True)
    """
    return not (scheme == "http" and is_local(host))


def is_local(host: str) -> bool:
    """Whether the Host of a request is a name of this machine, which no other site can have."""
    return _LOCAL.fullmatch(host) is not None


def is_own(address: str) -> bool:
    """Whether an address, or a name in its place, is this machine's own."""
    return is_local(f"[{address}]" if ":" in address else address)


def session_key(connection: sa.Connection) -> bytes:
    """The key of this store, made at the first call."""
    made = secrets.token_hex(32)
    found = connection.execute(sa.select(_meta.c.value).where(_meta.c.name == _KEY)).scalar()
    if found is None:
        _insert(connection, _KEY, made)  # of two services that start at once, the second takes the key of the first
        found = connection.execute(sa.select(_meta.c.value).where(_meta.c.name == _KEY)).scalar_one()
    return bytes.fromhex(found)


def end(connection: sa.Connection, session: LoginSession, now: int) -> None:
    """Let a login be over, and forget those that would be over by now anyway."""
    _insert(connection, _OVER + session.name, str(session.expires))
    ended = connection.execute(sa.select(_meta).where(_meta.c.name.startswith(_OVER, autoescape=True)))
    past = [row.name for row in ended if int(row.value) <= now]
    if past:
        connection.execute(sa.delete(_meta).where(_meta.c.name.in_(past)))


def is_over(connection: sa.Connection, session: LoginSession) -> bool:
    found = connection.execute(sa.select(_meta.c.name).where(_meta.c.name == _OVER + session.name))
    return found.first() is not None


def _insert(connection: sa.Connection, name: str, value: str) -> None:
    """Add a row unless there is one of that name."""
    row = sa.select(sa.literal(name), sa.literal(value)).where(~sa.exists().where(_meta.c.name == name))
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(_meta).from_select(["name", "value"], row))
    except sa.exc.IntegrityError:  # another process was faster
        pass
