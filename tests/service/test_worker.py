"""The thread that stores: those who deliver side by side share a transaction, one who delivers alone does not wait."""

from __future__ import annotations

import asyncio
import hashlib

import sqlalchemy as sa

from eccaht.service.runtime import past, worker
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.worker import Job, Jobs
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from eccaht.service.store.store import add_model
from tests.service import plants


class Counting(Jobs):
    """Counts how often the thread waits for more."""

    lingered = 0

    def get(self, timeout: float | None = 0.0) -> Job | None:
        self.lingered += timeout == worker.LINGER
        return super().get(timeout)


async def with_plants(store: Store, names: list[str]) -> Runtime:
    engine = Runtime(store, Settings())
    engine.worker.jobs = Counting()
    await engine.start()
    digest, _ = await engine.add_model(plants.content(), "m", "test")
    for name in names:
        await engine.put_plant(name, digest, PlantOptions(), "test")
    return engine


def test_one_delivery_after_the_other_is_hardly_ever_held_up(store: Store) -> None:
    times, values = plants.recording(30)

    async def run() -> int:
        engine = await with_plants(store, ["p"])
        for k in range(100):
            await engine.submit("p", plants.rows_of(times[k : k + 1], values[k : k + 1]), source="test")
        await engine.stop()
        assert isinstance(engine.worker.jobs, Counting)
        return engine.worker.jobs.lingered

    assert asyncio.run(run()) <= 7  # after 0, 1, 3, 7, 15, 31 and 63 others


def test_deliveries_side_by_side_share_transactions(store: Store) -> None:
    times, values = plants.recording(10)
    names, begun = [f"p{k}" for k in range(20)], 0

    def count(*_: object) -> None:
        nonlocal begun
        begun += 1

    async def run() -> int:
        engine = await with_plants(store, names)

        async def send(name: str) -> None:
            for k in range(len(times)):
                await engine.submit(name, plants.rows_of(times[k : k + 1], values[k : k + 1]), source="test")

        sa.event.listen(store.engine, "begin", count)
        try:
            await asyncio.gather(*(send(name) for name in names))
            found = begun
        finally:
            sa.event.remove(store.engine, "begin", count)
        await engine.stop()
        return found

    assert asyncio.run(run()) <= len(names) * len(times) / 4


def test_a_plant_of_an_earlier_version_waits_for_a_new_model_and_keeps_its_past(store: Store) -> None:
    """Neither its model nor its checkpoint can be read any more; the other plants are watched all the same."""
    times, values = plants.recording(60, wrong=slice(30, 60))
    half = 45 * plants.ROWS
    old, new = hashlib.sha256(b"old").hexdigest(), hashlib.sha256(plants.content()).hexdigest()

    async def run() -> None:
        engine = await with_plants(store, ["old", "other"])
        await engine.submit("old", plants.rows_of(times[:half], values[:half]), source="test")
        position, number = engine.view("old").position, last_alarm("old")
        await engine.stop()
        with store.begin() as connection:
            add_model(connection, old, "m", b"old", "test")
            for table in (schema.plants, schema.eras):
                mine = table.c.name if table is schema.plants else table.c.plant
                connection.execute(sa.update(table).where(mine == "old").values(digest=old))
            checkpoint = sa.update(schema.checkpoints).where(schema.checkpoints.c.plant == "old")
            connection.execute(checkpoint.values(content=b"old"))
        engine = Runtime(store, Settings())
        await engine.start()
        assert set(engine.views()) == {"other"}
        await engine.put_plant("old", new, PlantOptions(), "test")
        view = engine.view("old")
        assert (view.position, view.era, view.windows) == (position, 2, 0)
        with store.read() as connection:
            found = past.incident_document(connection, view, number)
            assert found["why"] == ["An earlier version made the model m of this incident."]
        await engine.submit("old", plants.rows_of(times[half:], values[half:]), source="test")
        assert last_alarm("old") > number
        await engine.stop()

    def last_alarm(plant: str) -> int:
        with store.read() as connection:
            return int(past.incident_rows(connection, plant, None, 1)[0][0]["number"])

    asyncio.run(run())
