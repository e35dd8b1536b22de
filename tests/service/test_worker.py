"""The thread that stores: those who deliver side by side share a transaction, one who delivers alone does not wait."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
import sqlalchemy as sa

from eccaht.service.runtime import worker
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.worker import Job, Jobs
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store
from tests.service import plants
from tests.service.source_tools import until


class Counting(Jobs):
    """Counts how often the thread waits for more."""

    lingered = 0

    def get(self, timeout: float | None = 0.0) -> Job | None:
        self.lingered += timeout == worker.LINGER
        return super().get(timeout)


@asynccontextmanager
async def held(engine: Runtime) -> AsyncIterator[None]:
    """The thread stands still for the length of a block."""
    there, go = threading.Event(), threading.Event()

    def wait(_: sa.Connection) -> None:
        there.set()
        go.wait()

    order = asyncio.create_task(engine._do(wait, None, group=False))
    await until(there.is_set, "the thread stands still")
    try:
        yield
    finally:
        go.set()
        await order


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


def test_deliveries_side_by_side_share_a_transaction(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "COLLECTED", 60.0)  # however slow the machine is
    (time, *_), (row, *_) = plants.recording(1)
    names, begun = [f"p{k}" for k in range(20)], 0

    def count(*_: object) -> None:
        nonlocal begun
        begun += 1

    async def run() -> None:
        engine = await with_plants(store, names)
        async with held(engine):
            rows = plants.rows_of(np.array([time]), row[None])
            tasks = [asyncio.create_task(engine.submit(name, rows, source="test")) for name in names]
            await until(lambda: all(engine.worker.jobs.of(name) for name in names))
            sa.event.listen(store.engine, "begin", count)
        try:
            await asyncio.gather(*tasks)
        finally:
            sa.event.remove(store.engine, "begin", count)
        await engine.stop()

    asyncio.run(run())
    assert begun == 1
