"""Sources and the engine together: what a file, a table and a broker bring gives the windows of rows handed in."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.feeds import Feeds
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from tests.service import plants, stores
from tests.service.source_tools import open_port, publisher, until

WINDOWS = 40
Windows = dict[int, list[float]]
Put = Callable[[int, int], Awaitable[None]]  # rows from one number to another
TIMES, VALUES = plants.recording(WINDOWS)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Store]:
    with stores.opened("sqlite", tmp_path) as store:
        yield store


def kept(store: Store) -> Windows:
    with store.read() as connection:
        columns = schema.windows.c
        found = connection.execute(sa.select(columns.start, columns["values"])).all()
    return {row.start: np.frombuffer(row[1], "<f8").tolist() for row in found}


async def begun(store: Store, sources: dict[str, dict[str, Any]]) -> tuple[Runtime, Feeds]:
    engine = Runtime(store, Settings())
    await engine.start()
    if not engine.views():
        digest, _ = await engine.add_model(plants.content(), "plant.model", "test")
        await engine.put_plant("p", digest, PlantOptions(lateness=4.0, sources=sources), "test")
    feeds = Feeds(engine)
    await feeds.start()
    return engine, feeds


def expected(store: Store) -> Windows:
    async def main() -> None:
        engine, _ = await begun(store, {})
        await engine.submit("p", plants.rows_of(TIMES, VALUES), source="test")
        await engine.stop()

    asyncio.run(main())
    found = kept(store)
    stores.emptied(store)
    return found


def moments(times: NDArray[np.datetime64]) -> list[int]:
    return times.astype("datetime64[us]").astype(np.int64).tolist()


def of_file(folder: Path) -> tuple[dict[str, Any], Put]:
    path = folder / "log.csv"
    path.write_text("time," + ",".join(plants.NAMES) + "\n")

    async def put(first: int, last: int) -> None:
        with path.open("a") as file:
            for time, values in zip(TIMES[first:last], VALUES[first:last].tolist(), strict=True):
                file.write(f"{time}Z," + ",".join(map(repr, values)) + "\n")

    return {"kind": "file", "path": str(path), "poll": "20ms"}, put


def of_table(folder: Path) -> tuple[dict[str, Any], Put]:
    url = f"sqlite:///{folder / 'plant.db'}"
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("create table readings (time integer, sensor text, value real)"))

    async def put(first: int, last: int) -> None:
        rows = [
            {"t": time, "s": name, "v": value}
            for time, values in zip(moments(TIMES[first:last]), VALUES[first:last].tolist(), strict=True)
            for name, value in zip(plants.NAMES, values, strict=True)
        ]
        with engine.begin() as connection:
            connection.execute(sa.text("insert into readings values (:t, :s, :v)"), rows)

    document = {"kind": "sql", "url": url, "table": "readings", "layout": "long", "first": "oldest", "poll": "20ms"}
    return document | {"overlap": "10s", "batch": 50}, put


def of_broker(_: Path) -> tuple[dict[str, Any], Put]:
    if not open_port("localhost", 1883):
        pytest.skip("no MQTT broker listens on localhost:1883")
    root = f"eccaht-test/{uuid4().hex}"

    async def put(first: int, last: int) -> None:
        async with publisher("localhost") as publish:
            for time, values in zip(moments(TIMES[first:last]), VALUES[first:last].tolist(), strict=True):
                for name, value in zip(plants.NAMES, values, strict=True):
                    await publish(f"{root}/{name}", {"time": time, "value": value})

    return {"kind": "mqtt", "topic": f"{root}/{{sensor}}", "client_id": uuid4().hex, "wait": "10ms"}, put


@pytest.mark.parametrize("made", [of_file, of_table, of_broker])
def test_windows_are_those_of_rows_handed_in_whatever_stops_in_between(
    made: Callable[[Path], tuple[dict[str, Any], Put]], sqlite: Store, tmp_path: Path
) -> None:
    document, put = made(tmp_path)
    whole = expected(sqlite)
    half, end = len(TIMES) // 2, len(TIMES)

    async def main() -> None:
        engine, feeds = await begun(sqlite, {"bus": document})
        await until(lambda: [s.state for s in engine.view("p").sources.values()] == ["running"], "connected")
        await put(0, half)
        await until(lambda: len(kept(sqlite)) >= 10)
        await feeds.stop()
        await engine.stop()
        await put(half, half + 20)  # while no service runs
        engine, feeds = await begun(sqlite, {})
        await put(half + 20, end)
        await until(lambda: len(kept(sqlite)) == len(whole), "all windows")
        assert engine.counts["late"] == 0
        await feeds.stop()
        await engine.stop()

    asyncio.run(main())
    found = kept(sqlite)
    assert found.keys() == whole.keys()
    for start, values in whole.items():
        np.testing.assert_allclose(found[start], values, rtol=1e-12)


def test_a_source_that_cannot_start_is_shown_as_broken(sqlite: Store) -> None:
    async def main() -> str:
        engine, feeds = await begun(sqlite, {"plc": {"kind": "opcua", "url": "opc.tcp://x", "nodes": {"a": "?"}}})
        state = engine.view("p").sources["plc"]
        await feeds.stop()
        await engine.stop()
        assert state.state == "broken"
        return state.detail

    assert "is no node id" in asyncio.run(main())
