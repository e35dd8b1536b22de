"""Stores to test with: SQLite always, PostgreSQL where one runs."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import sqlalchemy as sa

from eccaht.service.store import Store, schema
from eccaht.service.store.schema import VERSION

KINDS = ("sqlite", "postgresql")
POSTGRES = os.environ.get("ECCAHT_TEST_POSTGRES", "postgresql://localhost/test")


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Store]:
    """A store with its tables, that is gone afterwards."""
    with located(kind, folder) as (url, name):
        store = Store(url, name)
        store.prepare()
        try:
            yield store
        finally:
            store.close()


def emptied(store: Store) -> None:
    """Make a store as it was at first; much faster than another one, on PostgreSQL."""
    with store.begin() as connection:
        for table in reversed(schema.metadata.sorted_tables):
            kept = [table.c.name != "version"] if table is schema.meta else []
            connection.execute(sa.delete(table).where(*kept))


@contextmanager
def pretended(store: Store, version: int) -> Iterator[None]:
    """Let a store be one of another version for the length of a block."""
    _stamp(store, version)
    try:
        yield
    finally:
        _stamp(store, VERSION)


def _stamp(store: Store, version: int) -> None:
    with store.begin() as connection:
        connection.execute(sa.update(schema.meta).where(schema.meta.c.name == "version").values(value=str(version)))


@contextmanager
def located(kind: str, folder: Path) -> Iterator[tuple[str, str | None]]:
    """The URL of a store, and its schema, where there is nothing yet."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / f'{secrets.token_hex(4)}.db'}", None
        return
    if absent := _absent():
        pytest.skip(f"no PostgreSQL at {POSTGRES}: {absent}")
    name = f"test_{secrets.token_hex(6)}"
    try:
        yield POSTGRES, name
    finally:
        with _server().begin() as connection:
            connection.execute(sa.schema.DropSchema(name, cascade=True, if_exists=True))


@cache
def _server() -> sa.Engine:
    url = sa.make_url(POSTGRES).set(drivername="postgresql+psycopg")
    return sa.create_engine(url, poolclass=sa.NullPool, connect_args={"connect_timeout": 2})


@cache
def _absent() -> str:
    try:
        with _server().connect():
            return ""
    except sa.exc.OperationalError as error:
        return str(error.orig).splitlines()[0]
