"""The simulated plant: quiet before its first fault, which is found soon, with the right sensors."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from eccaht.datasets.example import TAGS
from eccaht.live import demo
from eccaht.live.engine import Engine
from eccaht.live.rows import Rows
from eccaht.live.settings import PlantOptions, Settings
from eccaht.live.store import Store, schema


def test_the_first_faults_are_found_with_the_right_sensors(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'demo.db'}")
    first, second = islice(demo.faults(0), 2)
    assert first.first < 60
    rows = np.array(list(islice(demo.readings(0), demo.PAST + second.last)))
    start = np.datetime64("2026-05-01T08:00", "us")
    times = start + (np.arange(len(rows)) - demo.PAST) * np.timedelta64(1, "s")

    async def run() -> None:
        engine = Engine(store, Settings())
        await engine.start()
        digest, _ = await engine.add_model(demo.calibrated(0).to_bytes(), demo.MODEL, "test")
        await engine.put_plant(demo.PLANT, digest, PlantOptions(false_alarms=demo.FALSE_ALARMS), "test")
        for k in range(0, len(rows), 100):
            await engine.submit(demo.PLANT, Rows(times[k : k + 100], TAGS, rows[k : k + 100]), source="test")
        await engine.stop()

    asyncio.run(run())
    with store.read() as connection:
        alarm = sa.select(schema.events).where(schema.events.c.kind == "alarm").order_by(schema.events.c.number)
        alarms = connection.execute(alarm).all()
    store.close()
    assert len(alarms) == 2
    for fault, row in zip((first, second), alarms, strict=True):
        after = (row.time - int(start.astype(np.int64))) / 1e6 - fault.first
        assert 0 <= after < 30
        assert {TAGS[k] for k in fault.sensors} == set(row.document["named"])
