"""How a database of an earlier version becomes one of this: a function a step, in order, each in one transaction."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from eccaht.live.store import schema


def _first(connection: sa.Connection) -> None:
    schema.metadata.create_all(connection)


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_first,)
VERSION = len(MIGRATIONS)


def version_of(connection: sa.Connection) -> int:
    """The version of a database, 0 if it is empty."""
    if not sa.inspect(connection).has_table("meta", schema=_schema(connection)):
        return 0
    found = connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.name == "version")).scalar()
    return int(found or 0)


def migrate(connection: sa.Connection) -> int:
    """Bring a database to this version, in the transaction of the connection; return what it was before."""
    before = version_of(connection)
    if before > VERSION:
        raise ValueError(f"the store has version {before}, this eccaht knows {VERSION}: use the newer eccaht")
    for step in MIGRATIONS[before:]:
        step(connection)
    if before < VERSION:
        connection.execute(sa.delete(schema.meta).where(schema.meta.c.name == "version"))
        connection.execute(sa.insert(schema.meta).values(name="version", value=str(VERSION)))
    return before


def _schema(connection: sa.Connection) -> str | None:
    found = connection.get_execution_options().get("schema_translate_map") or {}
    return found.get(None)
