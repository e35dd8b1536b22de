"""One database: connections in transactions, for the service's thread and for all other threads, and what it writes.

What is read is in `history.py`, the tables in `schema.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from eccaht.base.clock import microseconds
from eccaht.service.hiding import SecretUrl, database_url, scrubbed
from eccaht.service.store import schema
from eccaht.service.store.schema import VERSION, make_tables, version_of

if TYPE_CHECKING:  # commands about tokens need none of what a watch needs
    from eccaht.plants import Event

_BUSY = 10_000  # milliseconds that SQLite waits for another writer
# notes of plants, in `meta`: what a retraining found, and the digest of the file that was last taken from the settings
RETRAINED, FROM_SETTINGS = "retrained ", "settings "
Outgoing = Callable[[str, "Event"], Iterable[dict[str, Any]]]


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
        """Its URL without secrets, that of a file with the whole path."""
        return f"sqlite:///{Path(str(self.url.database)).absolute()}" if self.is_sqlite else str(self._secret)

    def error_line(self, error: sa.exc.DBAPIError) -> str:
        """What the database says is wrong, in one line without secrets."""
        lines = str(error.orig).strip().splitlines()  # the statement may follow the first
        return scrubbed(" ".join((lines or [type(error.orig).__name__])[0].split()), self._secret.secrets())

    def prepare(self) -> None:
        """Make the tables where there are none."""
        if self.is_sqlite:
            with suppress(FileExistsError):  # a new one is for its owner alone: it holds keys and passwords
                os.close(os.open(str(self.url.database), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with self.begin() as connection:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(3284701)"))  # one service makes them
                if self._schema is not None:
                    connection.execute(sa.schema.CreateSchema(self._schema, if_not_exists=True))
            make_tables(connection)

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


@dataclass(eq=False)
class StoredStep:
    """All that must be stored of one thing that happened to a plant, in one transaction or not at all."""

    plant: str
    windows: list[dict[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    times: list[int] = field(default_factory=list)  # of the events
    again: list[dict[str, Any]] = field(default_factory=list)  # readings that came too late, by their window
    pending: dict[str, Any] | None = None
    consumed: int | None = None  # pending rows before this time are in windows now
    counts: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    position: dict[str, Any] | None = None
    audit: dict[str, Any] | None = None

    def add(self, events: list[Event], time: np.datetime64) -> None:
        self.events += events
        self.times += [microseconds(time)] * len(events)


def upsert(connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, or replace those of the same primary key."""
    if not rows:
        return
    dialect: Any = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), list(rows))


def insert(connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), list(rows))


def write_steps(connection: sa.Connection, steps: Sequence[StoredStep], outgoing: Outgoing) -> None:
    """Store steps of plants; outgoing: the rows of the outbox for an event of a plant."""
    insert(connection, schema.windows, [row for step in steps for row in step.windows])
    insert(connection, schema.late_readings, [row for step in steps for row in step.again])
    events = [(step.plant, event, time) for step in steps for event, time in zip(step.events, step.times, strict=True)]
    documents = [
        {"plant": plant, "number": event.number, "time": time, "kind": event.event, "document": event.document()}
        for plant, event, time in events
    ]
    insert(connection, schema.events, documents)
    insert(connection, schema.outbox, [row for plant, event, _ in events for row in outgoing(plant, event)])
    insert(connection, schema.pending, [step.pending for step in steps if step.pending is not None])
    consumed = [{"p": step.plant, "t": step.consumed} for step in steps if step.consumed is not None]
    if consumed:
        gone = schema.pending.c
        connection.execute(
            sa.delete(schema.pending).where(gone.plant == sa.bindparam("p"), gone.last < sa.bindparam("t")), consumed
        )
    for table, part in ((schema.counts, "counts"), (schema.checkpoints, "checkpoint"), (schema.positions, "position")):
        latest = {}  # of several in one transaction the last one counts
        for step in steps:
            if (row := getattr(step, part)) is not None:
                latest[tuple(row[column.name] for column in table.primary_key)] = row
        upsert(connection, table, list(latest.values()))
    insert(connection, schema.audit, [step.audit for step in steps if step.audit is not None])


def audit_row(who: str, action: str, plant: str | None, document: dict[str, Any]) -> dict[str, Any]:
    return {"at": now(), "who": who, "action": action, "plant": plant, "document": document}


def record(connection: sa.Connection, who: str, action: str, plant: str | None, document: dict[str, Any]) -> None:
    """Note who did what, in the transaction of what was done, so that neither is there without the other."""
    insert(connection, schema.audit, [audit_row(who, action, plant, document)])


def add_model(connection: sa.Connection, digest: str, name: str, content: bytes, who: str) -> bool:
    """Keep a model; False if it is there already."""
    models = schema.models
    if connection.execute(sa.select(models.c.digest).where(models.c.digest == digest)).first() is not None:
        return False
    row = {"digest": digest, "name": name, "content": content, "size": len(content), "uploaded": now(), "by": who}
    insert(connection, models, [row])
    return True


def notes_of(connection: sa.Connection, kind: str) -> dict[str, str]:
    """What is noted of this kind of each plant."""
    meta = schema.meta.c
    found = connection.execute(sa.select(meta.name, meta.value).where(meta.name.startswith(kind, autoescape=True)))
    return {row.name.removeprefix(kind): row.value for row in found}


def write_note(connection: sa.Connection, kind: str, plant: str, value: str | None) -> None:
    """Note something of a plant in place of what was noted before; None: nothing any more."""
    if value is None:
        connection.execute(sa.delete(schema.meta).where(schema.meta.c.name == kind + plant))
    else:
        upsert(connection, schema.meta, [{"name": kind + plant, "value": value}])


def remove_unused_model(connection: sa.Connection, digest: str) -> None:
    """Delete a model that no plant has or had."""
    used = [sa.exists().where(table.c.digest == digest) for table in (schema.plants, schema.eras)]
    connection.execute(sa.delete(schema.models).where(schema.models.c.digest == digest, ~sa.or_(*used)))


def last_number(connection: sa.Connection, plant: str) -> int:
    events = schema.events.c
    return int(connection.execute(sa.select(sa.func.max(events.number)).where(events.plant == plant)).scalar() or 0)


def remove_plant(connection: sa.Connection, plant: str) -> None:
    """Delete a plant and all that belongs to it, but what was done to it."""
    for table in schema.OF_A_PLANT:
        connection.execute(sa.delete(table).where(table.c.plant == plant))
    connection.execute(sa.delete(schema.plants).where(schema.plants.c.name == plant))
    for kind in (RETRAINED, FROM_SETTINGS):
        write_note(connection, kind, plant, None)
