"""Backups: a store as one file of SQLite, whatever it is itself, and back."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from eccaht.base.files import NotWritten, destination, regular_file
from eccaht.service.operations.copying import Copied, copy
from eccaht.service.store.store import Store

_MAGIC = b"SQLite format 3\0"


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


def backup(store: Store, path: Path, advance: Callable[[int], None] = lambda _: None) -> list[Copied]:
    """Write a store to a file, which appears under its name once it is complete and compared.

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


def restore(path: Path, store: Store, advance: Callable[[int], None] = lambda _: None) -> list[Copied]:
    store.prepare()
    return copy(Backup(path), store, advance, "the store")
