"""A plant whose state or model cannot be read stays: it is built anew from its windows, or shown as broken."""

import asyncio
from typing import Any

import httpx
import numpy as np
import pytest
import sqlalchemy as sa

from eccaht.plants.intake import Rows
from eccaht.service.api.app import make_app
from eccaht.service.rows import Busy
from eccaht.service.settings import Settings
from eccaht.service.store import Store, schema
from tests.service import plants
from tests.service.asking import Client
from tests.service.guarded import bearer, make
from tests.service.test_exactly_once import abandoned
from tests.service.test_no_data import alerts, begun, events, parts, with_plant

WRONG = slice(30, 80)


def some(first: int, last: int) -> list[Rows]:
    times, values = plants.recording(last, wrong=WRONG)
    return parts(first, last, values, times, plants.ROWS)


def damage(store: Store, table: sa.Table) -> None:
    with store.begin() as connection:
        connection.execute(sa.update(table).values(content=b"no archive"))


async def watched(store: Store) -> None:
    engine = await with_plant(store)
    for rows in some(0, 50):
        await engine.submit("p", rows, source="test")
    await abandoned(engine)


def test_a_damaged_state_is_built_anew_from_the_windows(store: Store) -> None:
    async def run() -> list[tuple[str, int]]:
        await watched(store)
        damage(store, schema.checkpoints)
        found = []
        for first, last in ((50, 60), (60, 70)):  # and it is said once
            engine = await begun(store)
            for rows in some(first, last):
                await engine.submit("p", rows, source="test")
            found.append((engine.view("p").state, engine.view("p").windows))
            await engine.stop()
        return found

    assert asyncio.run(run()) == [("changed", 59), ("changed", 69)]
    ((_, text),) = events(store, "caution")
    assert "built anew from 49 windows" in text
    assert alerts(store) == ["alarm", "caution"]
    with store.read() as connection:
        numbers = sorted(connection.execute(sa.select(schema.events.c.number)).scalars())
        windows = sorted(connection.execute(sa.select(schema.windows.c.number)).scalars())
    assert numbers == list(range(1, len(numbers) + 1))
    assert windows == list(range(1, 70))


def test_a_plant_whose_model_cannot_be_read_stays_as_broken(store: Store) -> None:
    asyncio.run(watched(store))
    with store.read() as connection:
        (content,) = connection.execute(sa.select(schema.models.c.content)).scalars()
    damage(store, schema.models)

    async def refused() -> None:
        engine = await begun(store)
        with pytest.raises(Busy, match="plant p cannot be watched: ") as error:
            await engine.submit("p", some(50, 51)[0], source="test")
        assert error.value.broken
        await engine.stop()

    asyncio.run(refused())
    (said,) = events(store, "no-data")
    assert said[1].startswith("no data: ")
    assert alerts(store) == ["alarm", "no-data"]
    shown = asked(store, "/api/plants", "/healthz", "/metrics", "/api/plants/p")
    (row,) = shown[0].json()["plants"]
    assert (row["name"], row["state"], row["no_data"]) == ("p", "broken", said[1].removeprefix("no data: "))
    assert (shown[1].json()["plants"], shown[1].json()["without_data"]) == (1, 1)
    assert 'eccaht_state{plant="p",state="broken"} 1.0' in shown[2].text
    assert 'eccaht_plants{state="broken"} 1.0' in shown[2].text
    assert shown[3].status_code == 503
    with store.begin() as connection:
        connection.execute(sa.update(schema.models).values(content=content))

    async def mended() -> np.datetime64 | None:
        engine = await begun(store)
        for rows in some(50, 60):
            await engine.submit("p", rows, source="test")
        position = engine.view("p").position
        await engine.stop()
        return position

    assert asyncio.run(mended()) is not None


def asked(store: Store, *paths: str) -> list[httpx.Response]:
    """What a service on the store answers."""
    headers = bearer(make(store, "reader", "read"))
    url = store.url.set(drivername=store.url.get_backend_name()).render_as_string(hide_password=False)
    settings: dict[str, Any] = {"url": url, "schema": store._schema}
    client = Client(make_app(Settings(store=settings)))
    with client:
        found = [client.get(path, headers=headers) for path in paths]
    client.close()
    return found
