"""No row blinds a plant, and one that has no data says so: on its page, in its events and as an alert."""

import asyncio
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from eccaht.plants import Event, Hearing
from eccaht.plants.intake import Rows
from eccaht.service.alerts.outbox import rows_for
from eccaht.service.rows import Busy
from eccaht.service.runtime import engine as engines
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.views import PlantView
from eccaht.service.runtime.worker import Job, Jobs
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from tests.service import plants
from tests.service.source_tools import until
from tests.service.test_exactly_once import abandoned
from tests.service.test_worker import held

HOURS = np.timedelta64(3_600_000_000, "us")
OPTIONS = PlantOptions(false_alarms="1/2000w")


def outgoing(plant: str, event: Event) -> list[dict[str, Any]]:
    return rows_for(plant, event.document(), ["ops"], 0)


async def begun(store: Store, **limits: int) -> Runtime:
    engine = Runtime(store, Settings(limits=limits), outgoing=outgoing)
    await engine.start()
    return engine


async def with_plant(store: Store, options: PlantOptions = OPTIONS, **limits: int) -> Runtime:
    engine = await begun(store, **limits)
    digest, _ = await engine.add_model(plants.content(), "plant.model", "test")
    await engine.put_plant("p", digest, options, "test")
    return engine


def one(time: np.datetime64, value: float = 10.0) -> Rows:
    return plants.rows_of(np.array([time]), np.full((1, len(plants.NAMES)), value))


def parts(first: int, last: int, values: Any, times: Any, size: int = 3) -> list[Rows]:
    """The rows of some windows, so many at a time."""
    places = range(first * plants.ROWS, last * plants.ROWS, size)
    ends = [*places[1:], last * plants.ROWS]
    return [plants.rows_of(times[a:b], values[a:b]) for a, b in zip(places, ends, strict=True)]


def events(store: Store, *kinds: str) -> list[tuple[str, str]]:
    with store.read() as connection:
        found = connection.execute(sa.select(schema.events.c.document).order_by(schema.events.c.number)).scalars()
        return [(event["event"], event["text"]) for event in found if not kinds or event["event"] in kinds]


def alerts(store: Store) -> list[str]:
    with store.read() as connection:
        return list(connection.execute(sa.select(schema.outbox.c.kind).order_by(schema.outbox.c.id)).scalars())


@pytest.mark.parametrize("when", ["of the clock", "of the other rows"])
def test_a_row_from_the_future_blinds_no_plant(store: Store, when: str) -> None:
    """200 windows of good rows, one row 20 hours ahead, good rows again, then a sensor 20 deviations off."""
    times, values = plants.recording(300, wrong=slice(250, 300))
    ahead = np.datetime64("now", "us") + 20 * HOURS if when == "of the clock" else times[-1] + 20 * HOURS

    async def run() -> PlantView:
        engine = await with_plant(store)
        for rows in [*parts(0, 200, values, times, 35), one(ahead), *parts(200, 225, values, times)]:
            await engine.submit("p", rows, source="test")
        await abandoned(engine)
        engine = await begun(store)
        for rows in parts(225, 300, values, times):
            await engine.submit("p", rows, source="test")
        view = engine.view("p")
        await engine.stop()
        return view

    view = asyncio.run(run())
    assert (view.late, view.held, view.no_data, view.windows) == (0, 1, None, 299)
    assert view.state == "changed"
    (alarm,) = events(store, "alarm")
    assert "b (" in alarm[1]


def test_a_row_of_another_day_is_left_out_and_counted(store: Store) -> None:
    async def run() -> PlantView:
        engine = await with_plant(store)
        taken = await engine.submit("p", one(np.datetime64("now", "us") + 80 * HOURS), source="test")
        assert (taken.rows, taken.ahead, taken.held) == (1, 1, 0)
        view = engine.view("p")
        await engine.stop()
        return view

    assert asyncio.run(run()).ahead == 1


def test_a_plant_whose_rows_are_mostly_late_says_so_until_they_are_not(store: Store) -> None:
    times, values = plants.recording(100)
    jump = [plants.rows_of(times[a : a + 4] + 10 * HOURS, values[a : a + 4]) for a in range(0, 16, 4)]

    async def run() -> tuple[PlantView, PlantView]:
        engine = await with_plant(store)
        for rows in [*parts(0, 20, values, times), *jump]:  # a source whose clock was set wrong, for a while
            await engine.submit("p", rows, source="test")
        assert engine.view("p").no_data is None
        for rows in parts(20, 60, values, times):
            await engine.submit("p", rows, source="test")
        blind = engine.view("p")
        await abandoned(engine)
        engine = await begun(store)
        assert engine.view("p").no_data == blind.no_data
        for rows in parts(4, 60, values, times + 10 * HOURS):
            await engine.submit("p", rows, source="test")
        seeing = engine.view("p")
        await engine.stop()
        return blind, seeing

    blind, seeing = asyncio.run(run())
    assert blind.no_data is not None
    assert "came too late for their windows" in blind.no_data
    assert seeing.no_data is None
    assert [kind for kind, _ in events(store, "no-data", "data-back")] == ["no-data", "data-back"]
    assert alerts(store) == ["no-data", "data-back"]


def test_a_plant_all_of_whose_rows_are_ahead_of_the_clock_says_so(store: Store) -> None:
    times, values = plants.recording(40)
    ahead = np.datetime64("now", "us") - times[0] + 5 * HOURS

    async def run() -> PlantView:
        engine = await with_plant(store)
        for rows in [*parts(0, 10, values, times), *parts(10, 40, values, times + ahead)]:
            await engine.submit("p", rows, source="test")
        view = engine.view("p")
        await engine.stop()
        return view

    view = asyncio.run(run())
    assert view.no_data is not None
    assert "in the future" in view.no_data
    assert (view.held, view.late, view.ahead) == (120, 0, 0)  # none of them is lost


def test_a_new_plant_whose_rows_are_ahead_of_this_machine_says_that_they_wait(store: Store) -> None:
    """As where the clock of the service is behind, from the first row on; and after a restart."""
    times, values = plants.recording(40)
    ahead = np.datetime64("now", "us") - times[0] + 2 * HOURS

    async def run() -> list[PlantView]:
        engine, found = await with_plant(store), []
        for first in (0, 20):
            for rows in parts(first, first + 20, values, times + ahead):
                await engine.submit("p", rows, source="test")
            found.append(engine.view("p"))
            await abandoned(engine)
            engine = await begun(store)
        await engine.stop()
        return found

    first, second = asyncio.run(run())
    assert (first.shown, first.held) == ("no-data", 80)
    assert "in the future and wait" in str(first.no_data)
    assert (second.held, second.windows) == (160, 0)


def test_silence_is_reported_once_and_ends_with_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "LISTENED", 0.001)
    times, values = plants.recording(40)

    async def run() -> None:
        engine = await with_plant(store)
        for rows in parts(0, 10, values, times):
            await engine.submit("p", rows, source="test")
        stream = engine.hub.listen("p")
        engine.worker._plants["p"].hearing.heard = -1e9
        with stream as messages:
            async for message in messages:
                if b"no-data" in message:
                    break
        for rows in parts(10, 30, values, times):
            await engine.submit("p", rows, source="test")
        assert engine.view("p").no_data is None
        await engine.stop()

    asyncio.run(run())
    silence, back = events(store, "no-data", "data-back")
    last = "2026-03-01 08:00:19.500000"  # of the rows that were sent
    assert silence[1] == f"no data: no row since {last}: check what sends them"
    assert back == ("data-back", "data back: the plant is watched again")


def test_silence_is_counted_from_the_last_row_in_time() -> None:
    moment = 0.0
    hearing = Hearing(4.0, 60.0, lambda: moment)
    hearing.took(0, 4)
    moment = 599.0
    assert not hearing.listen(0)
    moment = 600.0
    assert hearing.listen(0)
    assert hearing.reason == "no row since the watch began: check what sends them"
    assert not hearing.listen(0)
    hearing.took(0, 4)
    assert hearing.listen(0)
    assert hearing.reason is None


def test_silence_of_a_plant_that_never_had_a_row_names_its_sources(store: Store) -> None:
    sources = {"f": {"kind": "file", "path": "none.csv"}}

    async def run() -> str | None:
        engine = await with_plant(store, PlantOptions(sources=sources))
        engine.worker._plants["p"].hearing.heard = -1e9
        await engine._do(lambda found: (found.listen(), None), "p")
        found = engine.view("p").no_data
        await engine.stop()
        return found

    assert str(asyncio.run(run())).startswith("no row since the service started")


def test_a_plant_with_too_many_rows_that_wait_takes_more(store: Store) -> None:
    times, values = plants.recording(60)

    async def run() -> PlantView:
        engine = await with_plant(store, PlantOptions(false_alarms="1/2000w", lateness=3600.0), pending=50)
        for rows in parts(0, 60, values, times):
            await engine.submit("p", rows, source="test")
        view = engine.view("p")
        await engine.stop()
        return view

    view = asyncio.run(run())
    assert view.late == 0
    assert view.windows >= 45
    with store.read() as connection:
        assert (connection.execute(sa.select(sa.func.count()).select_from(schema.pending)).scalar() or 0) < 30


def raw(store: Store) -> list[tuple[int, list[float]]]:
    """The windows in the units of the readings, of whatever era."""
    model = plants.model()
    with store.read() as connection:
        found = connection.execute(sa.select(schema.windows).order_by(schema.windows.c.start)).all()
    return [
        (row.start, (np.frombuffer(row.values, "<f8") * model.scale + model.center).round(9).tolist()) for row in found
    ]


def changed(store: Store, changes: dict[int, tuple[bytes, PlantOptions]]) -> None:
    """Deliver an incident, with changes of the plant after some deliveries."""
    times, values = plants.recording(100, wrong=slice(30, 50))

    async def run() -> None:
        engine = await with_plant(store, PlantOptions(false_alarms="1/2000w", lateness=7.0))
        for number, rows in enumerate([*parts(0, 100, values, times), one(times[-1] + 20 * plants.STEP)]):
            await engine.submit("p", rows, source="test")
            if number in changes:
                content, options = changes[number]
                digest, _ = await engine.add_model(content, "m", "test")
                await engine.put_plant("p", digest, options, "test")
        await engine.stop()

    asyncio.run(run())


def test_another_false_alarm_rate_takes_all_along(store: Store) -> None:
    rate = {54: (plants.content(), PlantOptions(false_alarms="1/5000w", lateness=7.0))}  # while the alarm is on
    changed(store, rate)
    assert len(raw(store)) == 100
    assert [kind for kind, _ in events(store, "alarm", "over")] == ["alarm", "over"]
    with store.read() as connection:
        assert connection.execute(sa.select(schema.plants.c.era)).scalar() == 1
        rows = connection.execute(sa.select(schema.windows.c.rows)).scalars()
        assert set(rows) == {plants.ROWS}


def test_another_model_takes_along_what_waits_and_ends_the_alarm(store: Store) -> None:
    changed(store, {54: (plants.other_content(), PlantOptions(false_alarms="1/2000w", lateness=7.0))})
    found = events(store, "alarm", "over")
    assert [kind for kind, _ in found][:2] == ["alarm", "over"]
    assert "another model" in found[1][1]
    assert alerts(store)[:2] == ["alarm", "over"]
    with store.read() as connection:
        windows = connection.execute(sa.select(schema.windows).order_by(schema.windows.c.start)).all()
    assert [row.rows for row in windows] == [plants.ROWS] * 100  # none of the rows that waited is missing
    assert {row.era for row in windows} == {1, 2}
    numbers = [number for (number,) in _numbers(store)]
    assert numbers == list(range(1, len(numbers) + 1))


def _numbers(store: Store) -> list[Any]:
    with store.read() as connection:
        return list(connection.execute(sa.select(schema.events.c.number).order_by(schema.events.c.number)).all())


def test_plants_take_turns() -> None:
    async def run() -> list[str]:
        jobs, future = Jobs(), asyncio.get_running_loop().create_future()
        for plant in ["busy"] * 1000 + ["calm", "other", "calm"]:
            jobs.put(Job(lambda: None, future, plant))
        assert (jobs.of("busy"), jobs.of("calm"), jobs.of("none")) == (1000, 2, 0)
        jobs.end()
        return [job.plant or "" for job in iter(jobs.get, None)]

    order = asyncio.run(run())
    assert order[:6] == ["busy", "calm", "other", "busy", "calm", "busy"]
    assert len(order) == 1003


def test_one_plant_cannot_take_all_places(store: Store) -> None:
    """While nothing is stored, one plant may fill half of the places, and orders find one all the same."""

    async def run() -> tuple[int, int]:
        engine = await with_plant(store, waiting=20)
        digest, _ = await engine.add_model(plants.content(), "plant.model", "test")
        await engine.put_plant("q", digest, OPTIONS, "test")
        times, values = plants.recording(40)
        async with held(engine):
            sent = [engine.submit("p", rows, source="test") for rows in parts(0, 20, values, times)]
            tasks = [asyncio.create_task(each) for each in sent]
            await until(lambda: sum(task.done() for task in tasks) >= len(tasks) - 10)
            other = asyncio.create_task(engine.submit("q", one(times[0]), source="test"))
            await until(lambda: engine.worker.jobs.of("q") == 1)
            refused = sum(task.done() and isinstance(task.exception(), Busy) for task in tasks)
        await other
        done = await asyncio.gather(*tasks, return_exceptions=True)
        await engine.stop()
        return refused, sum(not isinstance(each, Busy) for each in done)

    refused, taken = asyncio.run(run())
    assert (refused, taken) == (len(range(0, 80, 3)) - 10, 10)
