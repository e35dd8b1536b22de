"""What security keeps in the store beside tokens: the key that signs cookies, and logins that were ended."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from eccaht.service.security.sessions import LoginSession
from eccaht.service.store import schema

_KEY, _OVER = "session key", "logout "
_meta = schema.meta


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
