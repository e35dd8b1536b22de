"""One database: connections in transactions, for the service's thread and for all other threads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa

from eccaht.service.hiding import SecretUrl, database_url, scrubbed
from eccaht.service.store.migrations import VERSION, migrate, version_of

_BUSY = 10_000  # milliseconds that SQLite waits for another writer


def now() -> int:
    """The time in microseconds since 1970-01-01, UTC."""
    return time.time_ns() // 1000


class Store:
    """The database at a URL; schema: of all tables, on PostgreSQL.

    `begin` gives a connection in a transaction that may write, `read` one that sees one moment of the database.
    """

    def __init__(self, url: str, schema: str | None = None) -> None:
        try:
            address = database_url(url)
        except ValueError as error:
            raise ValueError(f"store: {error}") from None
        name = address.get_backend_name()
        if name not in ("sqlite", "postgresql"):
            raise ValueError(f"store {name!r} is not supported: use sqlite:///FILE or postgresql://HOST/DATABASE")
        if name == "postgresql":
            address = address.set(drivername="postgresql+psycopg")
        elif address.database in (None, "", ":memory:"):
            raise ValueError("a store in memory would forget everything: write sqlite:///FILE")
        self.url, self.is_sqlite = address, name == "sqlite"
        self._secret = SecretUrl(url)
        options = {"pool_pre_ping": not self.is_sqlite, "hide_parameters": True, **_options(self.is_sqlite)}
        self.engine = sa.create_engine(address, **options)  # values, which may be secrets, stay out of errors and logs
        if self.is_sqlite:
            sa.event.listen(self.engine, "connect", _connected)
            sa.event.listen(self.engine, "begin", _begun)
        elif schema is not None:
            self.engine = self.engine.execution_options(schema_translate_map={None: schema})
        self._schema = schema

    @property
    def shown(self) -> str:
        """Its URL without secrets."""
        return str(self._secret)

    def error_line(self, error: sa.exc.DBAPIError) -> str:
        """What the database says is wrong, in one line without secrets."""
        lines = str(error.orig).strip().splitlines()  # the statement may follow the first
        return scrubbed(" ".join((lines or [type(error.orig).__name__])[0].split()), self._secret.secrets())

    def prepare(self) -> None:
        """Make the tables, or bring them to this version."""
        if self.is_sqlite:
            _make_private(str(self.url.database))
        with self.begin() as connection:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(3284701)"))  # one service migrates at a time
                if self._schema is not None:
                    connection.execute(sa.schema.CreateSchema(self._schema, if_not_exists=True))
            migrate(connection)

    def check(self) -> None:
        """Refuse a database that has another version."""
        with self.read() as connection:
            if (found := version_of(connection)) != VERSION:
                raise ValueError(
                    f"the store has version {found}, this eccaht needs {VERSION}: start 'eccaht serve' once"
                )

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        with self.engine.connect() as connection:
            reading = connection.execution_options(reading=True)
            if not self.is_sqlite:
                reading = reading.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with reading.begin():
                yield reading

    def close(self) -> None:
        self.engine.dispose()


def _make_private(file: str) -> None:
    """Let a new database be readable by its owner alone: it holds keys and passwords."""
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _options(sqlite: bool) -> dict[str, Any]:
    if sqlite:
        return {"connect_args": {"timeout": _BUSY / 1000, "check_same_thread": False}, "pool_size": 8}
    return {"pool_size": 8, "max_overflow": 8, "connect_args": {"connect_timeout": 5}}


def _connected(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver's own BEGINs come too late
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={_BUSY}", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begun(connection: sa.Connection) -> None:
    """Take the lock for writing at once: a transaction that asks for it later may have to be given up."""
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
