"""Whatever ends the service and whatever comes twice: each window and each event is stored once, as if nothing was."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from eccaht.base.randomness import rng_for
from eccaht.plants.intake import Rows
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session
from eccaht.service.rows import Busy
from eccaht.service.runtime.engine import Runtime
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from tests.service import plants, stores

WINDOWS, WRONG = 90, slice(40, 60)
EVERY = "1/2000w"
Kept = tuple[list[Any], list[Any]]


def deliveries(seed: int, lateness: float) -> list[Rows]:
    """Rows in parts: out of order, twice, too late, some with one sensor at a time."""
    rng = rng_for(seed, "deliveries")
    times, values = plants.recording(WINDOWS, wrong=WRONG)
    values[rng.random(values.shape) < 0.02] = np.nan
    order = np.arange(len(times)) + (rng.uniform(0, 2.0 * lateness, len(times)) if lateness else 0.0)
    rows = list(np.argsort(order, kind="stable"))
    late = rng.choice(len(rows) - 80, 3, replace=False)
    for place in late.tolist():
        rows.insert(place + 60, rows.pop(place))
    found, start = [], 0
    while start < len(rows):
        part = rows[start : start + int(rng.integers(1, 12))]
        start += len(part)
        if rng.random() < 0.2:
            found += [Rows(times[part], (name,), values[part][:, [k]]) for k, name in enumerate(plants.NAMES)]
        else:
            found.append(plants.rows_of(times[part], values[part]))
        if rng.random() < 0.15:
            found.append(found[-1])
    return found


def settings() -> Settings:
    return Settings(limits={"waiting": 50})


async def begun(store: Store) -> Runtime:
    engine = Runtime(store, settings())
    await engine.start()
    return engine


async def with_plant(store: Store, lateness: float) -> Runtime:
    engine = await begun(store)
    digest, _ = await engine.add_model(plants.content(), "plant.model", "test")
    await engine.put_plant("p", digest, PlantOptions(false_alarms=EVERY, lateness=lateness), "test")
    return engine


async def delivered(engine: Runtime, rows: Rows) -> None:
    """As a source does it: again and again until it is taken."""
    for _ in range(200):
        try:
            await engine.submit("p", rows, source="test")
            return
        except Busy:
            await asyncio.sleep(0)
    raise AssertionError("never taken")


def kept(store: Store) -> Kept:
    with store.read() as connection:
        windows = schema.windows.c
        taken = sa.select(windows.start, windows["values"], windows.rows, windows.late, windows.number, windows.state)
        events = sa.select(schema.events.c.number, schema.events.c.time, schema.events.c.document)
        return (
            [tuple(row) for row in connection.execute(taken.order_by(windows.start))],
            [tuple(row) for row in connection.execute(events.order_by(schema.events.c.number))],
        )


def undisturbed(store: Store, parts: list[Rows], lateness: float) -> Kept:
    async def run() -> None:
        engine = await with_plant(store, lateness)
        for part in parts:
            await delivered(engine, part)
        await engine.stop()

    asyncio.run(run())
    found = kept(store)
    stores.emptied(store)
    return found


@contextmanager
def failing(store: Store, seed: int, share: float) -> Iterator[list[str]]:
    """A share of all statements and commits fails, some of the commits after they were carried out."""
    rng, failed = rng_for(seed, "failures"), list[str]()

    def fail(what: str, chance: float) -> None:
        if rng.random() < chance:
            failed.append(what)
            raise sa.exc.OperationalError(what, None, Exception("the cable was pulled"))

    def before(*_: Any) -> None:
        fail("statement", share)

    begin = Store.begin

    @contextmanager
    def unsure(self: Store) -> Iterator[sa.Connection]:
        with begin(self) as connection:
            yield connection
        fail("after the commit", 4 * share)

    sa.event.listen(store.engine, "before_cursor_execute", before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "begin", unsure)
        try:
            yield failed
        finally:
            sa.event.remove(store.engine, "before_cursor_execute", before)


@pytest.mark.parametrize("lateness", [0.0, 3.0])
def test_failures_and_kills_change_nothing(store: Store, lateness: float) -> None:
    parts = deliveries(7, lateness)
    expected = undisturbed(store, parts, lateness)
    assert {"alarm", "over", "late"} <= {document["event"] for _, _, document in expected[1]}

    async def run() -> int:
        rng = rng_for(3, "kills")
        await (await with_plant(store, lateness)).stop()
        engine, kills = await begun(store), 0
        with failing(store, 5, 0.02) as failed:
            for part in parts:
                await delivered(engine, part)
                if rng.random() < 0.05:  # as after SIGKILL: nothing of it is used again
                    await abandoned(engine)
                    engine, kills = await begun_again(store), kills + 1
                    await delivered(engine, part)  # not acknowledged, so it comes again
        await engine.stop()
        return kills if len(set(failed)) == 2 else 0

    assert asyncio.run(run()) > 3
    assert kept(store) == expected


async def begun_again(store: Store) -> Runtime:
    for _ in range(100):
        try:
            return await begun(store)
        except sa.exc.OperationalError:
            continue
    raise AssertionError("never begun")


async def abandoned(engine: Runtime) -> None:
    """End the thread without a checkpoint."""
    engine.worker.keep_all = lambda: None  # type: ignore[method-assign]
    await engine.stop()


def test_the_windows_are_those_of_the_library(store: Store) -> None:
    """The same rows by way of a recording and a session give the same windows and events."""
    times, values = plants.recording(WINDOWS, wrong=WRONG)
    model = plants.model()
    from eccaht.plants.data.source import Arrays

    prepared = model.prepare(Arrays(values, times, plants.NAMES, zone="UTC"))
    session, events = Session(PlantWatch(model, false_alarm_every=2000.0)), list[Event]()
    session.notices.on = True
    for sample in itertools.islice(prepared.samples(), WINDOWS - 1):  # the service does not know that it ends
        events += session.take(sample, model.clock)
    found = undisturbed(store, [plants.rows_of(times[k : k + 7], values[k : k + 7]) for k in range(0, 360, 7)], 0.0)
    assert [row[0] for row in found[0]] == prepared.starts.astype(np.int64)[:-1].tolist()
    stored = np.array([np.frombuffer(row[1], "<f8") for row in found[0]])
    np.testing.assert_allclose(stored, prepared.values[:-1], rtol=1e-12, atol=1e-12)
    assert [(e["event"], e["time"], tuple(e["named"])) for _, _, e in found[1]] == [
        (event.event, event.time, event.named) for event in events
    ]


def test_orders_survive_a_kill(store: Store) -> None:
    """A shelved sensor stays shelved and an acknowledged alarm acknowledged, whatever comes before a checkpoint."""
    times, values = plants.recording(WINDOWS, wrong=slice(40, WINDOWS))
    cut = 60 * plants.ROWS

    async def run() -> None:
        engine = await with_plant(store, 0.0)
        await engine.submit("p", plants.rows_of(times[:cut], values[:cut]), source="test")
        await engine.order("p", "acknowledge", "me")
        await engine.order("p", "shelve d 1h", "me")
        with pytest.raises(ValueError, match="no sensor 'x'"):
            await engine.order("p", "shelve x 1h", "me")
        await abandoned(engine)
        engine = await begun(store)
        view = engine.view("p")
        assert view.acknowledged
        assert set(view.shelved) == {"d"}
        assert view.alarm is not None
        assert view.alarm.names == ("b",)
        await engine.submit("p", plants.rows_of(times[cut:], values[cut:]), source="test")
        await engine.stop()

    asyncio.run(run())
    kinds = [row[2]["event"] for row in kept(store)[1]]
    assert kinds.count("alarm") == kinds.count("acknowledged") == kinds.count("shelved") == 1
    with store.read() as connection:
        orders = list(connection.execute(sa.select(schema.audit.c.document).where(schema.audit.c.action == "order")))
    assert [order.document["order"] for order in orders] == ["acknowledge", "shelve d 1h"]


def test_late_readings_rewrite_nothing_and_are_known_after_a_restart(store: Store) -> None:
    """A hundred rows too late are stored as what they are, beside windows of many readings that stay as they were."""
    times, values = plants.recording(120)
    late = plants.rows_of(times[:400:4] + np.timedelta64(1, "us"), values[:400:4])

    def seen() -> list[bytes]:
        with store.read() as connection:
            windows = schema.windows.c
            return list(connection.execute(sa.select(windows.seen).order_by(windows.start)).scalars())

    async def run() -> list[tuple[int, int]]:
        engine, found = await with_plant(store, 0.0), []
        await engine.submit("p", plants.rows_of(times, values), source="test")
        before = seen()
        for _ in range(2):
            taken = await engine.submit("p", late, source="test")
            found.append((taken.late, taken.duplicate))
            await abandoned(engine)
            engine = await begun(store)
        await engine.stop()
        assert seen() == before
        return found

    assert asyncio.run(run()) == [(100, 0), (0, 100)]
    with store.read() as connection:
        contents = connection.execute(sa.select(schema.late_readings.c.seen)).scalars().all()
    assert len(contents) == 100
    assert sum(map(len, contents)) <= 100 * 16
