"""A plant of which few sensors are read: a gateway asks which, reads them and sends them, whatever is killed."""

import asyncio
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants.intake import Rows
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.plant import budget_for, planned_for
from eccaht.service.runtime.views import next_document
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from tests.service import plants
from tests.service.service import PLANT, running
from tests.service.stores import emptied
from tests.service.test_exactly_once import abandoned

WINDOWS, WRONG = 70, slice(45, 70)
OPTIONS = PlantOptions(false_alarms="1/2000w", readings=2)


def rows_of(window: int, times: NDArray[np.datetime64], values: Array, names: list[str]) -> Rows:
    """All rows of a window, with the readings of these sensors."""
    inside = slice(window * plants.ROWS, (window + 1) * plants.ROWS)
    return Rows(times[inside], tuple(names), values[inside][:, [plants.NAMES.index(name) for name in names]])


def gateway(store: Store, killed: tuple[int, ...] = (), mute: str = "") -> tuple[list[list[str]], list[Any]]:
    """What was asked for in each window, and the events; mute: a sensor that does not answer."""

    async def run() -> list[list[str]]:
        engine, asked = Runtime(store, Settings()), []
        await engine.start()
        digest, _ = await engine.add_model(plants.content(), "plant.model", "test")
        await engine.put_plant("p", digest, OPTIONS, "test")
        times, values = plants.recording(WINDOWS, wrong=WRONG)
        for window in range(WINDOWS):
            if window in killed:
                await abandoned(engine)
                engine = Runtime(store, Settings())
                await engine.start()
            asked.append([each["sensor"] for each in next_document(engine.view("p"))["sensors"]])
            read = [name for name in asked[-1] if name != mute] or ["a"]
            await engine.submit("p", rows_of(window, times, values, read), source="gateway")
        await engine.stop()
        return asked

    asked = asyncio.run(run())
    with store.read() as connection:
        found = connection.execute(sa.select(schema.events.c.document).order_by(schema.events.c.number))
        return asked, list(found.scalars())


def test_few_sensors_are_read_none_is_called_silent_and_a_fault_is_found(store: Store) -> None:
    asked, events = gateway(store)
    assert {len(names) for names in asked} == {2}
    assert {name for names in asked for name in names} == {*plants.NAMES}
    assert [event["event"] for event in events if event["event"] in ("silent", "no-data", "late", "gap")] == []
    alarm = next(event for event in events if event["event"] == "alarm")
    assert len(alarm["asked"]) == 2
    assert any("b" in event["named"] for event in events)
    suspected = [names for names in asked[WRONG.start + 5 :] if "b" in names]
    assert len(suspected) >= 0.5 * (WINDOWS - WRONG.start - 5)


def test_a_killed_service_goes_on_asking_where_it_was(store: Store) -> None:
    whole = gateway(store)
    emptied(store)
    assert gateway(store, killed=(1, 20, 47, 63)) == whole


def test_a_sensor_that_is_asked_for_and_does_not_answer_is_silent(store: Store) -> None:
    _, events = gateway(store, mute="c")
    assert ["c"] in [event["sensors"] for event in events if event["event"] == "silent"]


def test_the_plan_is_that_of_a_watch_in_python() -> None:
    model = plants.model()
    ours, theirs = planned_for(model, OPTIONS), model.watch(readings=2, progress=False).session.watch.plan
    assert theirs is not None
    np.testing.assert_allclose(ours.heights, theirs.heights)


def test_costs_need_readings_and_names_that_there_are() -> None:
    with pytest.raises(ValueError, match="readings"):
        budget_for(plants.model(), PlantOptions(costs={"a": 2.0}))
    with pytest.raises(ValueError, match="no sensor 'z'"):
        budget_for(plants.model(), PlantOptions(readings=2, costs={"z": 2.0}))


def test_a_gateway_asks_by_http(tmp_path: Any) -> None:
    with running("sqlite", tmp_path, options={"readings": 2, "false_alarms": "1/2000w"}) as service:
        path, ingest = f"/api/plants/{PLANT}", service.headers["ingest"]
        found = service.client.get(f"{path}/next", headers=ingest).json()
        assert len(found["sensors"]) == 2
        assert found["window"] < found["deadline"]
        assert service.client.get(f"{path}/next", headers={}).status_code == 401
        plant = service.client.get(path, headers=service.headers["read"]).json()
        assert plant["asked"] == found["sensors"]
        assert "reading 2 of 5 sensors" in plant["false_alarm_rate"]
