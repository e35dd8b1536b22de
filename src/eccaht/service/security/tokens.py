"""Tokens in the store: made, listed, revoked, and found by what a caller shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from eccaht.base.naming import did_you_mean
from eccaht.service.security import audit, scopes, secrets
from eccaht.service.store import schema

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}")
_table = schema.tokens


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
    who: str = audit.COMMAND_LINE,
) -> str:
    """Make a token that holds for so many seconds, or for ever, and return its text, which cannot be read again."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot name a token: use up to 64 letters, digits, spaces and . _ @ -")
    allowed = scopes.checked(granted)
    taken = connection.execute(sa.select(_table.c.id).where(_table.c.name == name)).first()
    if taken is not None:
        raise ValueError(f"there is a token {name!r} already, perhaps a revoked one: choose another name")
    secret = secrets.new()
    row = {"name": name, "hash": secrets.hashed(secret), "scopes": " ".join(allowed), "created": now}
    row["expires"] = None if seconds is None else now + round(seconds * 1e6)
    added = connection.execute(sa.insert(_table).values(**row)).inserted_primary_key
    assert added is not None
    audit.record(connection, who, "token create", document={"token": name, "scopes": list(allowed)}, at=now)
    return str(secrets.Text(added[0], secret))


def listed(connection: sa.Connection) -> list[Token]:
    """All tokens, also those that open nothing any more."""
    return [_token(row) for row in connection.execute(sa.select(_table).order_by(_table.c.id))]


def revoke(connection: sa.Connection, name: str, *, now: int, who: str = audit.COMMAND_LINE) -> None:
    """End a token, and with it every login that it opened."""
    known = {token.name: token for token in listed(connection)}
    if name not in known:
        instead = did_you_mean(name, known, otherwise=": 'eccaht token list' names them")
        raise ValueError(f"there is no token {name!r}{instead}")
    if known[name].revoked is not None:
        raise ValueError(f"the token {name!r} is revoked already")
    connection.execute(sa.update(_table).where(_table.c.name == name).values(revoked=now))
    audit.record(connection, who, "token revoke", document={"token": name}, at=now)


def find(connection: sa.Connection, text: str, now: int) -> Token | None:
    """The valid token of this text; None if it is damaged, from elsewhere, expired or revoked."""
    parts = secrets.parse(text)
    row = None if parts is None else connection.execute(sa.select(_table).where(_table.c.id == parts.id)).first()
    same = secrets.matches("" if parts is None else parts.secret, None if row is None else row.hash)
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
