"""The store: one transaction is all or nothing, old things go in small parts, versions are distinguished."""

import asyncio
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from eccaht.service.runtime import tidying
from eccaht.service.runtime.engine import Runtime
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from eccaht.service.store.store import insert
from tests.service import plants, stores
from tests.service.source_tools import until


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    row = {"at": 1, "who": "me", "action": "x", "plant": None, "document": {"n": [1.5, None]}}

    def half() -> None:
        with store.begin() as connection:
            insert(connection, schema.audit, [row])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    with store.begin() as connection:
        insert(connection, schema.audit, [row])
    with store.read() as connection:
        assert connection.execute(sa.select(schema.audit.c.document)).scalars().all() == [row["document"]]


def test_writers_wait_for_each_other(store: Store) -> None:
    """Many threads that read and then write never have to give up."""
    with store.begin() as connection:
        insert(connection, schema.meta, [{"name": "count", "value": "0"}])
    where = schema.meta.c.name == "count"

    def count() -> None:
        for _ in range(10):
            with store.begin() as connection:
                chosen = sa.select(schema.meta.c.value).where(where).with_for_update()
                now = int(connection.execute(chosen).scalar_one())
                connection.execute(sa.update(schema.meta).where(where).values(value=str(now + 1)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as connection:
        assert connection.execute(sa.select(schema.meta.c.value).where(where)).scalar_one() == "40"


def test_what_is_committed_is_on_the_disk(tmp_path: Path) -> None:
    """On every connection of the pool; that a disk keeps what it was given at a power cut cannot be tried here."""
    with stores.opened("sqlite", tmp_path) as store, ExitStack() as held:
        for _ in range(8):
            connection = held.enter_context(store.read())
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2  # FULL
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"


# -- versions ------------------------------------------------------------------------------------------------


def test_preparing_again_changes_nothing_and_one_of_another_version_is_refused(store: Store) -> None:
    store.prepare()
    store.check()
    with stores.pretended(store, 99):
        for refuse in (store.prepare, store.check):
            with pytest.raises(ValueError, match="version 99"):
                refuse()


# -- what is refused, and what goes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [("mysql://h/d", "not supported"), ("nonsense", "is no URL"), ("sqlite://", "in memory")],
)
def test_other_urls_are_refused_in_one_line(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Store(url)


def test_a_store_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("this is no database at all, whatever its name says" * 100)
    with pytest.raises(sa.exc.DatabaseError):
        Store(f"sqlite:///{tmp_path / 'x.db'}").prepare()


def test_old_windows_and_events_go_and_a_restart_finds_what_it_needs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tidying, "BATCH", 10)
    monkeypatch.setattr(tidying, "EVERY", 0.0)
    monkeypatch.setattr(tidying, "PAUSE", 0.0)
    times, values = plants.recording(90, wrong=slice(20, 35))

    limit = int(times[88 * plants.ROWS].astype(np.int64)) - 60_000_000

    def oldest() -> int:
        with store.read() as connection:
            return connection.execute(sa.select(sa.func.min(schema.windows.c.start))).scalar() or 0

    async def run() -> tuple[int, str]:
        engine = Runtime(store, Settings(retention={"windows": "60s", "events": "60s"}))
        await engine.start()
        digest, _ = await engine.add_model(plants.content(), "m", "test")
        await engine.put_plant("p", digest, PlantOptions(false_alarms="1/2000w"), "test")
        for k in range(0, len(times), 20):
            await engine.submit("p", plants.rows_of(times[k : k + 20], values[k : k + 20]), source="test")
        await until(lambda: oldest() >= limit - 2_000_000, "deleted beside all else")
        await engine.stop()
        engine = Runtime(store, Settings())
        await engine.start()
        view = engine.view("p")
        await engine.stop()
        return view.windows, str(view.position)

    assert asyncio.run(run()) == (89, str(times[88 * plants.ROWS]))
    with store.read() as connection:
        starts = connection.execute(sa.select(schema.windows.c.start)).scalars().all()
        numbers = connection.execute(sa.select(schema.events.c.number)).scalars().all()
    assert len(starts) >= 29
    assert len(numbers) >= 1  # the last number is not forgotten
