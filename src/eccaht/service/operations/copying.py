"""A store into a backup, which is one file of SQLite, and back into a store of either kind: all of it or nothing.

Everything is read at one moment and written in one transaction, so that a running service does not disturb the copy and
an interrupted one leaves nothing.
"""

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import sqlalchemy as sa

from eccaht.base.files import NotWritten, destination, regular_file
from eccaht.service.store import schema
from eccaht.service.store.schema import VERSION, version_of
from eccaht.service.store.store import Store

_ROWS = 1000  # at a time
_MAGIC = b"SQLite format 3\0"  # how a file of SQLite begins


class CopiedTable(NamedTuple):
    """A table that was copied, and how many rows it has."""

    table: str
    rows: int


class Backup:
    """The file of a backup, which is only read."""

    def __init__(self, path: Path) -> None:
        with regular_file(path, "backup") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ValueError(f"{path} is no backup: give a file that 'eccaht store backup' wrote")
        place = f"file:{quote(os.fspath(path.resolve()))}?mode=ro&immutable=1"
        self._path = path
        self._engine = sa.create_engine(
            "sqlite://", creator=lambda: sqlite3.connect(place, uri=True), poolclass=sa.NullPool
        )

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except sa.exc.DatabaseError as error:
            if isinstance(error.orig, sqlite3.DatabaseError):
                raise ValueError(f"the backup {self._path} is damaged: {error.orig}") from None
            raise


Readable = Store | Backup


def count(source: Readable) -> int:
    """The rows of a store that this version can copy."""
    with source.read() as connection:
        _require_version(connection)
        return sum(_count(connection, table) for table in schema.COPIED)


def copy(source: Readable, target: Store, advance: Callable[[int], None] = lambda _: None) -> list[CopiedTable]:
    """Copy all tables into an empty store; advance gets the number of rows written."""
    with source.read() as reading, target.begin() as writing:
        _require_version(reading)
        for table in schema.COPIED:  # nothing that matters is written over; a key made at a first start does not
            if table is not schema.meta and (rows := _count(writing, table)):
                raise ValueError(f"the store is not empty, its table {table.name} has {rows} rows: give an empty store")
        writing.execute(sa.delete(schema.meta))
        copied = [_copy_table(reading, writing, table, advance) for table in schema.COPIED]
        _go_on_counting(writing)
    return copied


def _require_version(connection: sa.Connection) -> None:
    if (found := version_of(connection)) != VERSION:
        raise ValueError(f"what is to be copied has version {found}, this eccaht copies {VERSION}: use that eccaht")


def _copy_table(
    reading: sa.Connection, writing: sa.Connection, table: sa.Table, advance: Callable[[int], None]
) -> CopiedTable:
    """Copy a table, some rows at a time; models are large, and come one by one."""
    copied = 0
    most = 1 if table is schema.models else _ROWS
    with reading.execution_options(yield_per=most).execute(sa.select(table)) as result:
        for rows in result.partitions(most):
            writing.execute(sa.insert(table), [dict(row._mapping) for row in rows])
            copied += len(rows)
            advance(len(rows))
    return CopiedTable(table.name, copied)


def _count(connection: sa.Connection, table: sa.Table) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def _go_on_counting(connection: sa.Connection) -> None:
    """Let PostgreSQL number new rows after those that came with their numbers; SQLite does so by itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in schema.COPIED:
        if (column := table.autoincrement_column) is None or table.primary_key.columns.values() != [column]:
            continue
        last = connection.execute(sa.select(sa.func.max(column))).scalar()
        if last is not None:
            sequence = sa.func.pg_get_serial_sequence(_place(connection, table), column.name)
            connection.execute(sa.select(sa.func.setval(sequence, last)))


def _place(connection: sa.Connection, table: sa.Table) -> str:
    """The table as PostgreSQL finds it, in the schema that the connection uses."""
    place, quoted = schema.schema_of(connection), connection.dialect.identifier_preparer.quote
    return quoted(table.name) if place is None else f"{quoted(place)}.{quoted(table.name)}"


def backup(store: Store, path: Path, advance: Callable[[int], None] = lambda _: None) -> list[CopiedTable]:
    """Write a store to a file, which appears under its name once it is complete.

    Only its owner can read it: it holds the key that signs logins.
    """
    target = destination(path)
    if target.exists():
        raise ValueError(f"{path} is there already: give a new name")
    with _growing(target, path) as temporary:
        into = Store(f"sqlite:///{temporary}")
        try:
            into.prepare()
            copied = copy(store, into, advance)
        finally:
            into.close()
    return copied


@contextmanager
def _growing(target: Path, path: Path) -> Iterator[Path]:
    """A file beside the target that takes its name at the end, and is gone if there is no such end."""
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        with closing(sqlite3.connect(temporary)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")  # one file, not three
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise NotWritten(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                Path(f"{temporary}{ending}").unlink(missing_ok=True)


def restore(path: Path, store: Store, advance: Callable[[int], None] = lambda _: None) -> list[CopiedTable]:
    store.prepare()
    return copy(Backup(path), store, advance)
