"""The broker as deploy/ sets it up, killed again and again between publishers and a service: no window is missing."""

import asyncio
import signal
from contextlib import AsyncExitStack, closing
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from eccaht.plants.intake import Rows
from eccaht.service.rows import Receipt
from eccaht.service.runtime.engine import Runtime
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.sources import Target, make_feed, read_settings
from eccaht.service.sources.mqtt import MqttFeed
from eccaht.service.store import Store, schema
from tests.service import plants
from tests.service.mosquitto import SHIPPED, Mosquitto, mosquitto
from tests.service.source_tools import publisher, running, until

WINDOWS, KILLS = 120, 9
TIMES, VALUES = plants.recording(WINDOWS)
EVERY = len(TIMES) // (KILLS + 1)


def document(k: int) -> dict[str, object]:
    values = dict(zip(plants.NAMES, VALUES[k].tolist(), strict=True))
    return {"time": int(TIMES[k].astype(np.int64)), "values": values}


async def publish(broker: Mosquitto, first: int, last: int) -> None:
    """As a gateway has to: after each connection what was not acknowledged, and before that its last message again."""
    k = first
    while k < last:
        try:
            await until(broker.listens)
            async with publisher("127.0.0.1", broker.port) as send:
                for again in range(max(k - 1, 0), last):
                    await send("rows", document(again))
                    k = again + 1
        except ConnectionError:
            continue


class Noted:
    """The engine, and which rows it has stored."""

    def __init__(self, engine: Runtime) -> None:
        self._engine, self.times = engine, set[int]()
        self.most_rows, self.source_state = engine.most_rows, engine.source_state
        self.position, self.set_position = engine.position, engine.set_position
        self.take_over, self.hand_over = engine.take_over, engine.hand_over

    async def submit(self, plant: str, rows: Rows, *, source: str) -> Receipt:
        taken = await self._engine.submit(plant, rows, source=source)
        self.times.update(rows.times.astype(np.int64).tolist())
        return taken


async def killed_again_and_again(store: Store, broker: Mosquitto) -> None:
    engine = Runtime(store, Settings())
    await engine.start()
    digest, _ = await engine.add_model(plants.content(), "m", "test")
    await engine.put_plant("p", digest, PlantOptions(), "test")
    for kill in range(KILLS + 1):
        await one_round(Noted(engine), broker, kill)
    await engine.stop()


async def one_round(sink: Noted, broker: Mosquitto, kill: int) -> None:
    """Rows before and after a kill, during which the service listens or is away as well."""
    settings = read_settings({"kind": "mqtt", "port": broker.port, "topic": "rows", "wait": "10ms"}, "bus")
    feed = make_feed("bus", settings, Target.of("p", plants.model()), sink)
    assert isinstance(feed, MqttFeed)
    first, half, last = (EVERY * kill, EVERY * kill + EVERY // 2, EVERY * (kill + 1))

    def stored(until: int) -> bool:
        return int(TIMES[until - 1].astype(np.int64)) in sink.times

    async with AsyncExitStack() as service:
        await until(broker.listens)
        await service.enter_async_context(running(feed))
        await until(lambda: feed.health.state == "running", "connected")
        await publish(broker, first, half)
        if kill % 2 == 0:
            await until(lambda: stored(half), "what was on its way")
            await service.aclose()
        if kill < KILLS:
            broker.stop(signal.SIGKILL)  # at once after its last acknowledgement
            broker.start()
        await publish(broker, half, last)
        if kill == KILLS:
            await until(lambda: stored(last), "all that is left")


STARTS = TIMES[:: plants.ROWS].astype(np.int64).tolist()[: WINDOWS - 1]  # the last one is not complete


def starts(store: Store) -> list[int]:
    with store.read() as connection:
        return list(connection.execute(sa.select(schema.windows.c.start).order_by(schema.windows.c.start)).scalars())


def test_no_window_is_missing_after_nine_kills_of_the_broker(tmp_path: Path) -> None:
    with mosquitto(tmp_path, SHIPPED) as broker, closing(Store(f"sqlite:///{tmp_path / 'live.db'}")) as store:
        store.prepare()
        asyncio.run(killed_again_and_again(store, broker))
        missing = sorted({*STARTS} - {*starts(store)})
        assert len(missing) == 0
        with store.read() as connection:
            assert set(connection.execute(sa.select(schema.windows.c.rows)).scalars()) == {plants.ROWS}
