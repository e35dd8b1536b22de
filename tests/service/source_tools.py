"""What the tests of sources share: a sink that records, a plant, and a feed that runs for the length of a block."""

import asyncio
import atexit
import json
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.data.recorded import Expected
from eccaht.plants.data.source import Arrays
from eccaht.plants.intake import Rows
from eccaht.service.broker import connected, make_client
from eccaht.service.rows import Receipt, SourceState
from eccaht.service.sources.feed import Backoff, Feed, Target
from eccaht.service.sources.parsing import readings_of, rows_of

START = 1_790_000_000_000_000  # microseconds: a moment in 2026
SECOND = 1_000_000


class Recorder:
    """A sink that keeps what it is given; `before` is called first and may raise or wait."""

    most_rows = 1000

    def __init__(self, before: Callable[[Rows], Any] = lambda _: None) -> None:
        self.rows: list[Rows] = []
        self.times: Counter[tuple[str, int]] = Counter()
        self.cells: dict[tuple[str, int, str], float] = {}
        self.states: list[SourceState] = []
        self.positions: dict[tuple[str, str], dict[str, Any]] = {}
        self.before = before

    async def submit(self, plant: str, rows: Rows, *, source: str) -> Receipt:
        assert source
        waiting = self.before(rows)
        if waiting is not None:
            await waiting
        self.rows.append(rows)
        for time, values in zip(rows.times.astype(np.int64).tolist(), rows.values.tolist(), strict=True):
            self.times[plant, time] += 1
            for name, value in zip(rows.names, values, strict=True):
                if np.isnan(self.cells.get((plant, time, name), np.nan)):
                    self.cells[plant, time, name] = value
        return Receipt(len(rows.times), 0, 0, 0)

    def source_state(self, plant: str, source: str, state: SourceState) -> None:
        assert plant
        assert source
        self.states.append(state)

    async def position(self, plant: str, source: str) -> dict[str, Any] | None:
        return self.positions.get((plant, source))

    async def set_position(self, plant: str, source: str, document: dict[str, Any]) -> None:
        self.positions[plant, source] = document

    def values(self, sensor: str, plant: str = "north") -> dict[int, float]:
        """The readings of a sensor by their time."""
        return {t: v for (p, t, s), v in self.cells.items() if (p, s) == (plant, sensor) and not np.isnan(v)}

    async def take_over(self, plant: str) -> None:
        """No other service has the plant."""

    async def hand_over(self, plant: str) -> None:
        """No other service takes the plant."""

    def excerpt(self) -> Arrays:
        """What came, as a source; rows of one time are one row."""
        merged = rows_of(reading for part in self.rows for reading in readings_of(part))
        return Arrays(merged.values, merged.times, merged.names, zone="UTC")


def target(*sensors: str, name: str = "north", zone: str | None = "UTC") -> Target:
    return Target(name, Clock(zone), Expected(sensors or ("a", "b"), {}, TimeRule(("time",)), zone=zone))


@asynccontextmanager
async def publisher(host: str, port: int = 1883, name: str = "") -> AsyncIterator[Callable[..., Any]]:
    """A function that publishes with QoS 1, and returns once the broker has the message."""
    async with connected(make_client(name or secrets.token_hex(8)), host, port) as broker:

        async def publish(topic: str, document: Any, *, qos: int = 1, retain: bool = False) -> None:
            payload = document if isinstance(document, bytes) else json.dumps(document).encode()
            await broker.publish(topic, payload, qos=qos, retain=retain)

        yield publish


@asynccontextmanager
async def running(feed: Feed) -> AsyncIterator[asyncio.Task[None]]:
    """Run a feed, with short pauses, until the block ends."""
    feed.backoff = Backoff(Random(0), first=0.05, longest=0.2)
    task = asyncio.ensure_future(feed.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], Any], what: str = "", seconds: float = 60.0) -> None:
    """Wait until a condition holds."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"it did not come to pass in {seconds} s: {what}") from None


def open_port(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def free_port() -> int:
    """A port below those that the system hands out by itself: no other program gets it before, or between, its uses.

    Other tests see that it is taken, because this process keeps the UDP port of the same number.
    """
    while True:
        port, mark = 16_000 + secrets.randbelow(16_000), socket.socket(type=socket.SOCK_DGRAM)
        try:
            mark.bind(("127.0.0.1", port))
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", port))
        except OSError:
            mark.close()
        else:
            atexit.register(mark.close)
            return port
