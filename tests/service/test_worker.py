"""The thread that stores: those who deliver side by side share a transaction, one who delivers alone does not wait."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa

from eccaht.service.runtime import worker
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.worker import Job, Jobs
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store
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
