"""The store: one transaction is all or nothing, old things go in small parts, versions are distinguished."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from eccaht.service.runtime import tidying
from eccaht.service.runtime.engine import Runtime
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from eccaht.service.store.schema import VERSION, migrate, version_of
from eccaht.service.store.store import insert
from tests.service import plants, stores
from tests.service.filled import contents, fill


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


def test_preparing_again_changes_nothing_and_a_newer_store_is_refused(store: Store) -> None:
    store.prepare()
    store.check()
    with store.begin() as connection:
        assert migrate(connection) == VERSION
    with stores.pretended(store, 99):
        with pytest.raises(ValueError, match=r"version 99, this eccaht knows .*: use the newer eccaht"):
            store.prepare()
        with pytest.raises(ValueError, match="the store has version 99, this eccaht needs"):
            store.check()


def test_the_steps_make_the_tables_that_the_service_uses(store: Store) -> None:
    """A column that is in schema.py and not in the steps, or the other way round, is found here."""
    with store.engine.connect() as connection:
        place = (store.engine.get_execution_options().get("schema_translate_map") or {}).get(None)
        if place is not None:
            connection.execute(sa.text(f"SET search_path TO {place}"))
        context = MigrationContext.configure(connection, opts={"version_table": schema.stamps.name})
        assert compare_metadata(context, schema.metadata) == []


@pytest.mark.parametrize("kind", stores.KINDS)
def test_a_store_of_the_first_version_is_taken_over_with_all_that_it_holds(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "versions").mkdir()
    shutil.copy(schema.FOLDER / "versions" / "v0001_first.py", tmp_path / "versions")
    columns = (sa.Column(name, sa.String) for name in ("plant", "source"))
    positions = sa.Table("positions", sa.MetaData(), *columns, sa.Column("document", sa.JSON))
    with monkeypatch.context() as patched:
        patched.setattr(schema, "FOLDER", tmp_path)
        patched.setattr(schema, "VERSION", 1)
        held = stores.opened(kind, tmp_path)
        store = held.__enter__()
    with ExitStack() as stack:
        stack.push(held)
        with store.begin() as connection:
            schema.stamps.drop(connection)  # which the first version did not have
            connection.execute(sa.insert(positions).values(plant="p", source="s", document={"time": 5}))
        with store.read() as connection:
            assert version_of(connection) == 1
        store.prepare()
        store.check()
        with store.read() as connection:
            assert version_of(connection) == VERSION
            assert connection.execute(sa.select(positions)).all() == [("p", "s", {"time": 5})]


NEXT = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = {revision!r}, {before!r}
def upgrade() -> None:
    op.add_column("plants", sa.Column("note", sa.String, nullable=False, server_default="none"))
    op.create_table("shifts", sa.Column("plant", sa.String, primary_key=True))
    with op.batch_alter_table("eras") as table:
        table.drop_column("created")
"""


@pytest.mark.parametrize("kind", stores.KINDS)
def test_the_next_step_is_taken_once_and_whole(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stores.opened(kind, tmp_path) as store:
        fill(store)
        steps = shutil.copytree(schema.FOLDER / "versions", tmp_path / "versions")
        step = NEXT.format(revision=f"{VERSION + 1:04d}", before=f"{VERSION:04d}")
        (steps / f"v{VERSION + 1:04d}_next.py").write_text(f"{step}    raise RuntimeError('halfway')\n")
        monkeypatch.setattr(schema, "FOLDER", tmp_path)
        monkeypatch.setattr(schema, "VERSION", VERSION + 1)
        was = contents(store)
        with pytest.raises(RuntimeError, match="halfway"):
            store.prepare()
        assert contents(store) == was  # with the columns as they were
        (steps / f"v{VERSION + 1:04d}_next.py").write_text(step)
        for before in (VERSION, VERSION + 1):
            with store.begin() as connection:
                assert migrate(connection) == before
        with store.read() as connection:
            notes = (
                connection.execute(sa.select(sa.column("note", sa.String)).select_from(schema.plants)).scalars().all()
            )
            assert set(notes) == {"none"}
            assert connection.execute(sa.select(schema.eras.c.era)).first() is not None
            columns = sa.inspect(connection).get_columns("eras", schema=schema.schema_of(connection))
            assert "created" not in [column["name"] for column in columns]


def test_a_store_that_is_ready_needs_no_alembic(tmp_path: Path) -> None:
    with stores.opened("sqlite", tmp_path) as store:
        script = "import sys; from eccaht.service.store import Store; Store(sys.argv[1]).prepare(); print(*sys.modules)"
        run = subprocess.run([sys.executable, "-c", script, str(store.url)], capture_output=True, text=True, check=True)
    assert "sqlalchemy" in run.stdout.split()
    assert "alembic" not in run.stdout.split()


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
        while oldest() < limit - 2_000_000:  # deleted beside all else
            await asyncio.sleep(0.01)
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
