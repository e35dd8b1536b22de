"""How a database of an earlier version becomes one of this: the steps in `versions`, all in one transaction.

alembic, which takes long to import, is needed only where there is a step to take.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

import sqlalchemy as sa

from eccaht.service.store import schema

FOLDER = Path(__file__).parent  # alembic looks for `versions` in it
VERSION = max(int(path.name[1:5]) for path in (FOLDER / "versions").glob("v[0-9]*.py"))
_ONE_AT_A_TIME = Lock()  # alembic's `op` is one for the whole process
stamps = sa.Table("eccaht_version", sa.MetaData(), sa.Column("version_num", sa.String))


def version_of(connection: sa.Connection) -> int:
    if _has(connection, stamps):
        return int(connection.execute(sa.select(stamps.c.version_num)).scalar() or 0)
    if not _has(connection, schema.meta):
        return 0
    found = connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.name == "version")).scalar()
    return int(found or 0)  # the first version, which knew no stamps, wrote it there


def migrate(connection: sa.Connection) -> int:
    """Bring a database to this version, in the transaction of the connection; return what it was before."""
    before = version_of(connection)
    if before > VERSION:
        raise ValueError(f"the store has version {before}, this eccaht knows {VERSION}: use the newer eccaht")
    if before < VERSION or not _has(connection, stamps):
        _take_steps(connection, before)
        connection.execute(sa.delete(schema.meta).where(schema.meta.c.name == "version"))
        connection.execute(sa.insert(schema.meta).values(name="version", value=str(VERSION)))  # older ones look there
    return before


def _take_steps(connection: sa.Connection, before: int) -> None:
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    place = _schema(connection)
    if place is not None:  # alembic does not translate the names of tables that it alters
        connection.execute(sa.select(sa.func.set_config("search_path", _quoted(connection, place), True)))
    steps = ScriptDirectory(FOLDER)
    context = MigrationContext.configure(connection, opts={"version_table": stamps.name, "version_table_schema": place})
    done = f"{before:04d}" if before else "base"
    with _ONE_AT_A_TIME, Operations.context(context):
        for step in reversed(list(steps.iterate_revisions("head", done))):
            step.module.upgrade()
    context.stamp(steps, "head")


def _has(connection: sa.Connection, table: sa.Table) -> bool:
    return sa.inspect(connection).has_table(table.name, schema=_schema(connection))


def _quoted(connection: sa.Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote(name)


def _schema(connection: sa.Connection) -> str | None:
    found = connection.get_execution_options().get("schema_translate_map") or {}
    return found.get(None)
