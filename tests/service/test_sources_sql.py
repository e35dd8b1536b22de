"""Tables of SQLite and PostgreSQL, polled by time: late rows, restarts, and a server that ends the connection."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from eccaht.checks import check_source
from eccaht.service.sources import make_feed, read_settings
from eccaht.service.sources.sql import SqlFeed
from tests.service import stores
from tests.service.source_tools import SECOND, START, Recorder, running, target, until

MOMENT = datetime.fromtimestamp(START // SECOND, UTC)


@dataclass
class Database:
    """A database with a schema of our own."""

    url: str
    schema: str | None
    engine: sa.Engine

    @property
    def name(self) -> str:
        return self.engine.dialect.name

    def run(self, statement: str, rows: Any = None) -> None:
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement.replace("TABLE_", self.prefix)), rows)

    @property
    def prefix(self) -> str:
        return f"{self.schema}." if self.schema else ""

    def feed(self, sink: Recorder, table: str, **settings: Any) -> SqlFeed:
        document = {"kind": "sql", "url": self.url, "table": table, "schema": self.schema, "poll": "20ms", **settings}
        feed = make_feed("db", read_settings(document, "db"), target(), sink)
        assert isinstance(feed, SqlFeed)
        return feed

    def stamp(self, k: float) -> Any:
        """The time of a row as this database holds it."""
        moment = MOMENT + timedelta(seconds=k)
        return moment if self.name == "postgresql" else moment.strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.fixture(params=stores.KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with stores.located(request.param, tmp_path) as (url, schema):
        driver = sa.make_url(url)
        if driver.drivername == "postgresql":
            driver = driver.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(driver, poolclass=sa.NullPool)
        made = Database(url, schema, engine)
        if schema:
            made.run(f"create schema {schema}")
        engine.connect().close()
        yield made
        engine.dispose()


def wide(database: Database, *seconds: float) -> None:
    rows = [{"t": database.stamp(k), "a": k, "b": None if k % 5 == 3 else -k} for k in seconds]
    database.run("insert into TABLE_wide (time, a, b) values (:t, :a, :b)", rows)


def make_wide(database: Database) -> None:
    kind = "timestamptz" if database.name == "postgresql" else "text"
    database.run(f"create table TABLE_wide (time {kind}, a double precision, b double precision, comment text)")


def expected(*seconds: float) -> dict[int, float]:
    return {START + round(k * SECOND): float(k) for k in seconds}


def test_a_wide_table_is_read_in_pages_and_late_rows_and_restarts_lose_and_repeat_nothing(database: Database) -> None:
    make_wide(database)
    wide(database, *range(100))

    async def first(sink: Recorder) -> None:
        feed = database.feed(sink, "wide", first="oldest", batch=30, overlap="30s")
        async with running(feed):
            await until(lambda: len(sink.values("a")) == 100, "what is there")
            wide(database, 100, 101, 103)
            await until(lambda: len(sink.values("a")) == 103, "new rows")
            wide(database, 102, 80.5)  # committed after later ones
            await until(lambda: len(sink.values("a")) == 105, "late rows")

    async def second(sink: Recorder) -> None:
        feed = database.feed(sink, "wide", first="oldest", batch=30, overlap="30s")
        async with running(feed):
            wide(database, 104)
            await until(lambda: START + 104 * SECOND in sink.values("a"))

    sink = Recorder()
    asyncio.run(first(sink))
    assert sink.values("a") == expected(*range(104), 80.5)
    assert set(sink.times.values()) == {1}
    assert np.isnan(sink.cells["north", START + 3 * SECOND, "b"])
    assert check_source(sink.excerpt()) == {}
    after = Recorder()
    after.positions = sink.positions
    asyncio.run(second(after))
    assert min(t for _, t in after.times) >= START + 60 * SECOND  # the overlap and a twentieth, not all
    assert START + 104 * SECOND in after.values("a")


def test_a_long_table_of_several_plants_with_quality(database: Database) -> None:
    kind = "timestamp" if database.name == "postgresql" else "text"
    database.run(f"create table TABLE_long (at {kind}, unit text, tag text, val double precision, q integer)")
    settings = {"layout": "long", "time": "at", "sensor": "tag", "value": "val", "quality": "q", "batch": 10}
    settings |= {"plant_column": "unit", "quality_codes": "opc-classic", "first": "oldest"}

    def plain(k: int) -> Any:
        moment = (MOMENT + timedelta(seconds=k)).replace(tzinfo=None)
        return moment.isoformat() if database.name == "sqlite" else moment

    def put(*seconds: int) -> None:
        rows = [
            {
                "t": plain(k),
                "u": unit,
                "s": tag,
                "v": k,
                "q": 0 if k == 4 else 192,
            }
            for k in seconds
            for unit in ("north", "south")
            for tag in ("a", "b")
        ]
        database.run("insert into TABLE_long values (:t, :u, :s, :v, :q)", rows)

    async def main() -> Recorder:
        sink = Recorder()
        put(*range(40))
        feed = database.feed(sink, "long", **settings)
        async with running(feed):
            await until(lambda: len(sink.values("b")) == 39)
            put(*range(40, 60))
            await until(lambda: len(sink.values("b")) == 59)
        return sink

    sink = asyncio.run(main())
    seconds = [k for k in range(60) if k != 4]
    assert sink.values("a") == sink.values("b") == expected(*seconds)
    assert np.isnan(sink.cells["north", START + 4 * SECOND, "a"])
    assert set(sink.times.values()) == {1}


def test_a_new_source_begins_with_the_newest_row_and_numbers_are_times_as_well(database: Database) -> None:
    database.run("create table TABLE_wide (time bigint, a double precision)")

    def put(*seconds: int) -> None:
        rows = [{"t": START // 1000 + 1000 * k, "a": k} for k in seconds]
        database.run("insert into TABLE_wide values (:t, :a)", rows)

    async def main() -> tuple[Recorder, SqlFeed]:
        sink = Recorder()
        put(*range(10))
        feed = database.feed(sink, "wide")
        async with running(feed):
            await until(lambda: sink.rows)
        put(10, 11)  # while no service runs
        feed = database.feed(sink, "wide")
        async with running(feed):
            await until(lambda: len(sink.values("a")) == 3)
        return sink, feed

    sink, feed = asyncio.run(main())
    assert sink.values("a") == expected(9, 10, 11)
    assert "1 sensors without a column" in feed.health.now().detail


def test_a_table_that_is_missing_or_has_other_columns_is_waited_for(database: Database) -> None:
    async def main() -> Recorder:
        sink = Recorder()
        feed = database.feed(sink, "wide", first="oldest", time="stamp")
        async with running(feed):
            await until(lambda: feed.health.state == "broken")
            make_wide(database)
            wide(database, 1)
            await until(lambda: "has no column 'stamp'" in sink.states[-1].detail)
            database.run("alter table TABLE_wide rename column time to stamp")
            await until(lambda: sink.values("a") == expected(1))
        return sink

    states = [state.state for state in asyncio.run(main()).states]
    assert states[-1] == "running"


def test_a_row_that_cannot_be_read_is_counted_and_one_from_the_future_does_not_move_the_place(
    database: Database,
) -> None:
    make_wide(database)

    async def main() -> tuple[Recorder, SqlFeed]:
        sink = Recorder()
        wide(database, 0, 1)
        wide(database, 3_000_000_000)  # some hundred years on: the engine leaves it out
        feed = database.feed(sink, "wide", first="oldest", overlap="1s")
        async with running(feed):
            await until(lambda: len(sink.values("a")) >= 2)
            wide(database, *range(2, 20))
            await until(lambda: len([t for t in sink.values("a") if t < START + 100 * SECOND]) == 20)
        return sink, feed

    sink, feed = asyncio.run(main())
    assert feed.health.counts["bad rows"] in (0, 1)
    assert max(t for _, t in sink.times if t < START + 100 * SECOND) == START + 19 * SECOND


def test_connections_that_the_server_ends_are_made_again(database: Database) -> None:
    if database.name != "postgresql":
        pytest.skip("SQLite has no server")
    make_wide(database)

    def kill() -> None:
        own = "select pg_terminate_backend(pid) from pg_stat_activity where query like :q and pid <> pg_backend_pid()"
        with database.engine.begin() as connection:
            connection.execute(sa.text(own), {"q": f"%{database.schema}.wide%"})

    async def main() -> Recorder:
        sink = Recorder()
        feed = database.feed(sink, "wide", first="oldest")
        async with running(feed):
            for start in (0, 10, 20):
                wide(database, *range(start, start + 10))
                await until(lambda: len(sink.values("a")) == start + 10)  # noqa: B023
                broken = sum(state.state == "broken" for state in sink.states)
                kill()
                await until(lambda: sum(state.state == "broken" for state in sink.states) > broken)  # noqa: B023
        return sink

    sink = asyncio.run(main())
    assert sink.values("a") == expected(*range(30))
    assert set(sink.times.values()) == {1}
