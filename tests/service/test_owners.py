"""One plant has one owner: of several services on one store, whatever is killed, stopped or left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from eccaht.service.runtime import owners
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.owners import Elsewhere
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from tests.service import plants, stores
from tests.service.guarded import bearer, make
from tests.service.programs import program
from tests.service.test_exactly_once import abandoned
from tests.service.test_no_data import parts
from tests.service.test_worker import held

OPTIONS = PlantOptions(false_alarms="1/2000w")
WRONG = slice(30, 60)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Store]:
    """An empty store that services can share."""
    with stores.opened("postgresql", tmp_path) as store:
        yield store


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services look often, and count as dead soon."""
    monkeypatch.setattr(owners, "BEAT", 0.02)
    monkeypatch.setattr(owners, "DEAD", 1.5)


@asynccontextmanager
async def service(store: Store, port: int) -> AsyncIterator[Runtime]:
    engine = Runtime(store, Settings(listen={"port": port}))
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def made(engine: Runtime, *names: str) -> None:
    digest, _ = await engine.add_model(plants.content(), "plant.model", "test")
    for name in names:
        await engine.put_plant(name, digest, OPTIONS, "test")


async def delivered(engine: Runtime, first: int, last: int, plant: str = "p") -> None:
    times, values = plants.recording(last, wrong=WRONG)
    for rows in parts(first, last, values, times, size=plants.ROWS):
        await engine.submit(plant, rows, source="test")


async def comes(condition: Callable[[], object], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    with store.read() as connection:
        return [dict(row._mapping) for row in connection.execute(sa.select(table))]


def numbers(store: Store) -> list[int]:
    return sorted(row["number"] for row in rows(store, schema.events))


def test_an_idle_service_that_ends_takes_nothing_back(shared: Store) -> None:
    """Its checkpoint is old: an acknowledgement stays, and the next event has the next number."""

    async def run() -> bool:
        async with service(shared, 1) as first:
            await made(first, "p")
            await delivered(first, 0, 50)
            async with service(shared, 2):
                await delivered(first, 50, 52)
                await first.order("p", "acknowledge", "ops")
            await abandoned(first)
        async with service(shared, 1) as again:
            acknowledged = again.view("p").acknowledged
            await delivered(again, 52, 90)
            return acknowledged

    assert asyncio.run(run())
    assert numbers(shared) == list(range(1, len(numbers(shared)) + 1))
    assert {"alarm", "acknowledged", "over"} <= {row["kind"] for row in rows(shared, schema.events)}
    assert len(rows(shared, schema.windows)) == 89


def test_orders_and_rows_are_refused_where_the_plant_is_not_watched(shared: Store) -> None:
    async def run() -> None:
        async with service(shared, 1) as first:
            await made(first, "p")
            await delivered(first, 0, 40)
            async with service(shared, 2) as second:
                assert second.view("p").watched_by == first.name
                for asked in (second.order("p", "shelve a 2h", "ops"), delivered(second, 40, 41)):
                    with pytest.raises(Elsewhere, match=r"watched by .*:1 at http://127\.0\.0\.1:1") as error:
                        await asked
                    assert error.value.address == "http://127.0.0.1:1"
            assert not first.view("p").shelved

    asyncio.run(run())


@pytest.mark.usefixtures("impatient")
def test_what_a_service_shows_of_others_plants_follows_them(shared: Store) -> None:
    async def run() -> None:
        async with service(shared, 1) as first, service(shared, 2) as second:
            await made(first, "p")
            await comes(lambda: "p" in second.views())
            with second.hub.listen("p") as messages:
                await delivered(first, 0, 50)
                await comes(lambda: second.view("p").windows == first.view("p").windows)
                shown = b"".join([await anext(messages) for _ in range(2)])
            assert second.view("p").state == first.view("p").state == "changed"
            assert b"event: window" in shown

    asyncio.run(run())


@pytest.mark.usefixtures("impatient")
def test_the_plants_of_a_dead_service_are_taken_and_its_late_steps_are_not_stored(shared: Store) -> None:
    """The owner stands still for longer than it counts as alive, with a delivery in its hands."""

    async def run() -> None:
        async with service(shared, 1) as first, service(shared, 2) as second:
            await made(first, "p")
            await delivered(first, 0, 40)
            async with held(first):
                late = asyncio.create_task(delivered(first, 40, 41))
                await comes(lambda: second.owns("p"))
                await delivered(second, 40, 60)
            with pytest.raises(Elsewhere):
                await late
            await comes(lambda: not first.owns("p") and first.view("p").windows == second.view("p").windows)
            await comes(lambda: first.view("p").watched_by == second.name)

    asyncio.run(run())
    assert len(rows(shared, schema.windows)) == 59
    assert numbers(shared) == list(range(1, len(numbers(shared)) + 1))


def test_a_plant_that_nobody_watches_says_so(shared: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> str | None:
        async with service(shared, 1) as first:
            await made(first, "p")
            await delivered(first, 0, 5)
            async with service(shared, 2) as second:
                monkeypatch.setattr(owners, "DEAD", 0.0)
                monkeypatch.setattr(second.worker.owners, "take", lambda *_, **__: False)  # it has no room
                second.worker.look()
                return second.view("p").no_data

    assert str(asyncio.run(run())).startswith("no service watches it")


@pytest.mark.usefixtures("impatient")
def test_services_share_the_plants_evenly_and_take_those_of_one_that_ends(shared: Store) -> None:
    names = [f"p{k}" for k in range(6)]

    async def run() -> list[list[int]]:
        found = []

        def owned(*services: Runtime) -> list[int]:
            return [sum(engine.owns(name) for name in names) for engine in services]

        async with service(shared, 1) as first:
            await made(first, *names)
            async with service(shared, 2) as second:
                await comes(lambda: owned(first, second) == [3, 3])
                async with service(shared, 3) as third:
                    await comes(lambda: owned(first, second, third) == [2, 2, 2])
                    found.append(owned(first, second, third))
                await comes(lambda: owned(first, second) == [3, 3])
            await comes(lambda: owned(first) == [6])
            for name in names:
                await delivered(first, 0, 5, name)
        return found

    assert asyncio.run(run()) == [[2, 2, 2]]
    assert len(rows(shared, schema.windows)) == 6 * 4


def test_a_plant_that_was_removed_can_be_made_again(store: Store) -> None:
    async def run() -> None:
        async with service(store, 1) as engine:
            await made(engine, "p")
            await delivered(engine, 0, 3)
            await engine.remove_plant("p", "test")
            await made(engine, "p")
            await delivered(engine, 0, 3)

    asyncio.run(run())
    assert len(rows(store, schema.windows)) == 2


def test_an_event_gets_the_next_number_whatever_a_checkpoint_says(store: Store) -> None:
    async def run() -> None:
        async with service(store, 1) as engine:
            await made(engine, "p")
            await delivered(engine, 0, 50)
            old = engine.worker._plants["p"].checkpoint()
            await engine.order("p", "acknowledge", "ops")
            await abandoned(engine)
        with store.begin() as connection:  # as a backup that was taken meanwhile may have it
            connection.execute(sa.update(schema.checkpoints).values(**old))
        async with service(store, 1) as engine:
            await delivered(engine, 50, 90)

    asyncio.run(run())
    assert numbers(store) == list(range(1, len(numbers(store)) + 1))


def test_a_second_service_on_the_same_file_is_refused(tmp_path: Path) -> None:
    with program(tmp_path) as first:
        command = [sys.executable, "-m", "eccaht", "serve", "--store", first.url, "--port", "0"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 2
    assert second.stderr.strip().splitlines()[-1].startswith("eccaht: another service uses sqlite:///")


# -- real services -----------------------------------------------------------------------------------------


@dataclass
class Real:
    """A service as a program of its own on a store that others use too."""

    process: subprocess.Popen[str]
    base: str


@contextmanager
def real(store: Store, name: str | None) -> Iterator[Real]:
    url = store.url.set(drivername="postgresql").render_as_string(hide_password=False)
    command = [sys.executable, "-m", "eccaht", "serve", "--port", "0", "--store", url]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "ECCAHT_STORE__SCHEMA": name or "", "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("http")
        yield Real(process, line.strip().rstrip("/"))
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def document(first: int, last: int) -> list[dict[str, Any]]:
    times, values = plants.recording(last, wrong=WRONG)
    chosen = range(first * plants.ROWS, last * plants.ROWS)
    return [{"time": str(times[k]), "values": dict(zip(plants.NAMES, values[k].tolist(), strict=True))} for k in chosen]


def test_real_services_behind_one_address_forward_and_take_over(shared: Store) -> None:
    """Rows and orders go to either service, and the one that watches the plant is killed."""
    headers = bearer(make(shared, "admin", "admin", "ingest", "operate", "read"))
    with ExitStack() as stack:
        both = [stack.enter_context(real(shared, shared._schema)) for _ in range(2)]
        client = stack.enter_context(httpx.Client(headers=headers, timeout=60.0))
        digest = client.post(f"{both[0].base}/api/models?name=m", content=plants.content()).json()["digest"]
        given = {"model": digest, "false_alarms": "1/2000w"}
        assert client.put(f"{both[0].base}/api/plants/p", json=given).status_code == 200
        _until(lambda: client.get(f"{both[1].base}/api/plants/p").status_code == 200)
        for k in range(50):
            answer = client.post(f"{both[k % 2].base}/api/plants/p/rows", json=document(k, k + 1))
            assert answer.status_code == 200, answer.text
        (watching,) = {client.get(f"{each.base}/api/plants/p").json()["watched_by"] for each in both}
        port = watching.rpartition(":")[2]
        owner, other = sorted(both, key=lambda each: not each.base.endswith(f":{port}"))
        answer = client.post(f"{other.base}/api/plants/p/acknowledge", json={})
        assert [event["event"] for event in answer.json()["events"]] == ["acknowledged"]
        owner.process.kill()
        began = time.monotonic()
        _until(lambda: client.post(f"{other.base}/api/plants/p/rows", json=document(50, 90)).status_code == 200)
        assert time.monotonic() - began < 60.0
        assert client.get(f"{other.base}/api/plants/p").json()["watched_by"] != watching
    assert len(rows(shared, schema.windows)) == 89
    assert numbers(shared) == list(range(1, len(numbers(shared)) + 1))


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to pass")
