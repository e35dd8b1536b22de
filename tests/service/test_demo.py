"""The simulated plant: each of its faults is found soon, with the right sensors, and all is quiet in between."""

import asyncio
from itertools import islice
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from eccaht.plants.intake import Rows
from eccaht.service import demo
from eccaht.service.runtime.engine import Runtime
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema

_FAULTS, _SOON, _DRIFTED = 12, 15, 40  # seconds until a fault is found, and a drift, which begins with nothing
_BEGIN = ("alarm", "stuck", "silent", "range")


def test_faults_are_found_with_the_right_sensors_and_nothing_else_is(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'demo.db'}")
    faults = list(islice(demo.faults(0), _FAULTS))
    assert faults[0].first < 60
    assert {fault.kind for fault in faults} == {"step", "drift", "stuck"}
    rows = np.array([row for row, _ in islice(demo.readings(0), demo.PAST + faults[-1].last)])
    start = np.datetime64("2026-05-01T08:00", "us")
    times = start + (np.arange(len(rows)) - demo.PAST) * np.timedelta64(1, "s")

    async def run() -> None:
        engine = Runtime(store, Settings())
        await engine.start()
        digest, _ = await engine.add_model(demo.calibrated(0).to_bytes(), demo.MODEL, "test")
        await engine.put_plant(demo.PLANT, digest, PlantOptions(false_alarms=demo.FALSE_ALARMS), "test")
        for k in range(0, len(rows), 100):
            await engine.submit(demo.PLANT, Rows(times[k : k + 100], demo.NAMES, rows[k : k + 100]), source="test")
        await engine.stop()

    asyncio.run(run())
    with store.read() as connection:
        found = sa.select(schema.events).where(schema.events.c.kind.in_((*_BEGIN, "joined")))
        events = connection.execute(found.order_by(schema.events.c.number)).all()
    store.close()
    second = {row.number: (row.time - int(start.astype(np.int64))) // 1_000_000 for row in events}
    begun = [row.number for row in events if row.kind in _BEGIN]
    exact = 0
    for fault in faults:
        mine = [row for row in events if fault.first <= second[row.number] < fault.last]
        assert second[mine[0].number] - fault.first < (_DRIFTED if fault.kind == "drift" else _SOON)
        wrong, named = (
            {demo.NAMES[k] for k in fault.sensors},
            {name for row in mine for name in row.document["sensors"]},
        )
        assert wrong <= named
        exact += wrong == named
        begun = [number for number in begun if not fault.first <= second[number] < fault.last]
    assert exact >= 0.75 * _FAULTS
    assert begun == []  # nothing begins while nothing is wrong
    alarms = [row.document for row in events if row.kind == "alarm" and "stuck" not in row.document["kinds"]]
    known = [alarm["confidence"] for alarm in alarms if alarm["confidence"] is not None]  # the model was drilled
    assert len(known) >= len(alarms) - 1


def test_the_truth_is_told_beside_the_answer() -> None:
    fault = next(demo.faults(0))
    told = [truth for _, truth in islice(demo.readings(0), demo.PAST + fault.last)][demo.PAST :]
    names = [demo.NAMES[k].split(" [")[0] for k in fault.sensors]
    for second, truth in enumerate(told):
        assert all(name in truth for name in names)
        assert ("no sensor is wrong" in truth) == (second < fault.first)
    assert f"{fault.last - 1 - fault.first} s" in told[-1]
