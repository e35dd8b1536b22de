"""Readings from a real MQTT broker: acknowledged once stored, nothing lost when broker or service go away."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiomqtt
import numpy as np
import pytest

from eccaht.checks import check_source
from eccaht.live.rows import Busy, Rows
from eccaht.live.sources import make_feed, read_settings
from eccaht.live.sources.mqtt import Gate, MqttFeed, topics
from tests.live.source_tools import SECOND, START, Recorder, free_port, open_port, running, target, until

HOST, PORT = "localhost", 1883
MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


@pytest.fixture
def root() -> str:
    if not open_port(HOST, PORT):
        pytest.skip(f"no MQTT broker listens on {HOST}:{PORT}")
    return f"eccaht-test/{uuid4().hex}"


def feed_of(sink: Recorder, topic: str, **settings: Any) -> MqttFeed:
    document = {"kind": "mqtt", "host": HOST, "port": PORT, "topic": topic, "wait": "20ms", **settings}
    document.setdefault("client_id", f"eccaht-{uuid4().hex[:12]}")
    feed = make_feed("bus", read_settings(document, "bus"), target(), sink)
    assert isinstance(feed, MqttFeed)
    return feed


@asynccontextmanager
async def publisher(port: int = PORT) -> AsyncIterator[Callable[..., Any]]:
    async with aiomqtt.Client(HOST, port) as client:

        async def publish(topic: str, document: Any, *, qos: int = 1, retain: bool = False) -> None:
            payload = document if isinstance(document, bytes) else json.dumps(document).encode()
            await client.publish(topic, payload, qos=qos, retain=retain)

        yield publish


async def connected(feed: MqttFeed) -> None:
    await until(lambda: feed.health.state == "running", "connected")


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_topics_of_single_sensors_and_rows_of_many_arrive_with_their_times(root: str, protocol: str) -> None:
    async def main() -> tuple[Recorder, Recorder]:
        single, many = Recorder(), Recorder()
        one = feed_of(single, f"{root}/{{plant}}/{{sensor}}", protocol=protocol, names={"A": "a"})
        other = feed_of(many, f"{root}/all/{{plant}}", protocol=protocol, names={"B": "b"})
        async with running(one), running(other), publisher() as publish:
            await connected(one)
            await connected(other)
            for k in range(30):
                moment = START // SECOND + k
                await publish(f"{root}/north/A", {"time": moment, "value": k})
                await publish(
                    f"{root}/north/b", {"time": 1000 * moment, "value": -k, "quality": "bad" if k == 7 else "good"}
                )
                await publish(f"{root}/south/a", 99)
                await publish(f"{root}/all/north", {"time": moment, "a": k, "B": -k})
            await until(lambda: len(single.values("b")) == 29 and len(many.values("b")) == 30)
            await publish(f"{root}/all/north", b"{")
            await until(lambda: other.health.counts["bad payloads"] == 1)
        return single, many

    single, many = asyncio.run(main())
    times = [START + k * SECOND for k in range(30)]
    assert single.values("a") == many.values("a") == dict(zip(times, range(30), strict=True))
    assert single.values("b") == {time: -k for k, time in enumerate(times) if k != 7}
    assert np.isnan(single.cells["north", times[7], "b"])
    assert check_source(single.excerpt()) == {}


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_retained_value_is_no_new_reading(root: str, protocol: str) -> None:
    async def main() -> tuple[Recorder, MqttFeed]:
        sink = Recorder()
        feed = feed_of(sink, f"{root}/{{sensor}}", protocol=protocol)
        async with publisher() as publish:
            await publish(f"{root}/a", 1, retain=True)
            async with running(feed):
                await connected(feed)
                await publish(f"{root}/b", 2, retain=True)  # sent to those who listen as any other
                await until(lambda: sink.values("b"))
                await until(lambda: protocol == "5" or feed.health.counts["retained messages left out"] == 1)
            for sensor in "ab":
                await publish(f"{root}/{sensor}", b"", retain=True)
        return sink, feed

    sink, _ = asyncio.run(main())
    assert list(sink.values("b").values()) == [2.0]
    assert sink.values("a") == {}


def test_messages_are_acknowledged_after_they_are_stored_so_a_killed_service_loses_none(root: str) -> None:
    """The first service takes rows and dies before they are stored; the second gets all of them."""

    async def main() -> Recorder:
        identity = f"eccaht-{uuid4().hex[:12]}"
        reached = asyncio.Event()

        async def never() -> None:
            reached.set()
            await asyncio.Event().wait()

        dying = Recorder(lambda _: never())
        first = feed_of(dying, f"{root}/{{sensor}}", client_id=identity)
        async with publisher() as publish:
            async with running(first):
                await connected(first)
                for k in range(10):
                    await publish(f"{root}/a", {"time": START // SECOND + k, "value": k})
                await reached.wait()
            for k in range(10, 20):  # while no service runs
                await publish(f"{root}/a", {"time": START // SECOND + k, "value": k})
            sink = Recorder()
            second = feed_of(sink, f"{root}/{{sensor}}", client_id=identity)
            async with running(second):
                await until(lambda: len(sink.values("a")) == 20)
            third_sink = Recorder()
            async with running(feed_of(third_sink, f"{root}/{{sensor}}", client_id=identity)) as _:
                await publish(f"{root}/a", {"time": START // SECOND + 20, "value": 20})
                await until(lambda: third_sink.values("a"))
        assert list(third_sink.values("a").values()) == [20.0]  # what was stored does not come again
        assert not dying.rows
        return sink

    sink = asyncio.run(main())
    assert sink.values("a") == {START + k * SECOND: k for k in range(20)}


def test_a_busy_service_holds_the_broker_back_and_memory_is_bounded(root: str) -> None:
    async def main() -> tuple[Recorder, int]:
        busy, largest = [True], 0

        def before(rows: Rows) -> None:
            nonlocal largest
            largest = max(largest, len(rows.times))
            if busy[0]:
                raise Busy("full", after=0.01)

        sink = Recorder(before)
        feed = feed_of(sink, f"{root}/{{sensor}}", in_flight=20)
        async with running(feed), publisher() as publish:
            await connected(feed)
            for k in range(300):
                await publish(f"{root}/a", {"time": START // SECOND + k, "value": k})
            await until(lambda: feed.health.state == "waiting")
            assert not sink.rows
            busy[0] = False
            await until(lambda: len(sink.values("a")) == 300)
            await until(lambda: feed.health.state == "running")
        return sink, largest

    sink, largest = asyncio.run(main())
    assert set(sink.times.values()) == {1}
    assert largest <= 20


# -- a broker that is killed -----------------------------------------------------------------------------


class Broker:
    """A Mosquitto of our own, which drops nothing and keeps its sessions in a file if that is asked for."""

    def __init__(self, folder: Path, *, persistent: bool) -> None:
        self.port, self._folder = free_port(), folder
        self._file = folder / "mosquitto.conf"
        kept = f"persistence true\npersistence_location {folder}/\nautosave_on_changes true\nautosave_interval 1\n"
        user = "user root\n" if os.getuid() == 0 else ""
        rules = f"allow_anonymous true\nmax_queued_messages 0\n{user}{kept if persistent else ''}"
        self._file.write_text(f"listener {self.port} 127.0.0.1\n{rules}")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert MOSQUITTO is not None
        self.process = subprocess.Popen([MOSQUITTO, "-c", str(self._file)], stderr=subprocess.DEVNULL)

    def stop(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(10)
            self.process = None


@pytest.fixture(params=[True])
def broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Broker]:
    if MOSQUITTO is None:
        pytest.skip("mosquitto is not installed")
    server = Broker(tmp_path, persistent=request.param)
    server.start()
    yield server
    server.stop(signal.SIGKILL)


def test_a_broker_that_is_stopped_and_killed_loses_nothing_that_it_accepted(broker: Broker) -> None:
    async def main() -> tuple[Recorder, MqttFeed]:
        sink = Recorder()
        feed = feed_of(sink, "plant/{sensor}", port=broker.port, session="1h")
        sent = 0
        async with running(feed):
            for how in (signal.SIGTERM, signal.SIGKILL, None):
                await until(lambda: open_port("127.0.0.1", broker.port), "the broker listens")
                await connected(feed)
                async with publisher(broker.port) as publish:
                    for _ in range(50):
                        await publish("plant/a", {"time": START // SECOND + sent, "value": sent})
                        sent += 1
                if how is signal.SIGKILL:  # a broker that is killed may forget what it has not written yet
                    await until(lambda: len(sink.values("a")) == sent)  # noqa: B023
                if how is not None:
                    broker.stop(how)
                    await until(lambda: feed.health.state == "broken", "the feed notices")
                    broker.start()
            await until(lambda: len(sink.values("a")) == sent, "all rows")
        return sink, feed

    sink, _ = asyncio.run(main())
    assert sink.values("a") == {START + k * SECOND: k for k in range(150)}
    states = [state.state for state in sink.states]
    assert states.count("broken") >= 2
    assert states[-1] == "running"


@pytest.mark.parametrize("broker", [False], indirect=True)  # to write all to a file takes long
@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_flood_waits_at_the_broker_and_not_in_memory(broker: Broker, protocol: str, qos: int) -> None:
    flood, most = 3000, 20

    async def main() -> tuple[Recorder, int]:
        go, largest = asyncio.Event(), 0
        sink = Recorder(lambda _: go.wait())
        feed = feed_of(sink, "plant/{sensor}", port=broker.port, protocol=protocol, in_flight=most, wait="1ms")
        waiting = Gate._read

        def watched(gate: Gate) -> None:
            nonlocal largest
            waiting(gate)
            largest = max(largest, len(gate._client.messages))

        Gate._read = watched  # type: ignore[method-assign, assignment]
        try:
            await until(lambda: open_port("127.0.0.1", broker.port), "the broker listens")
            async with running(feed):
                await connected(feed)
                lines = "".join(f'{{"time": {START + k}, "value": {k}}}\n' for k in range(flood))
                command = ["mosquitto_pub", "-p", str(broker.port), "-l", "-q", str(qos), "-t", "plant/a"]
                await asyncio.to_thread(subprocess.run, command, input=lines.encode(), check=True)
                assert not sink.rows
                go.set()
                await until(lambda: len(sink.times) == flood, "all rows")
        finally:
            Gate._read = waiting  # type: ignore[method-assign]
        return sink, largest

    if shutil.which("mosquitto_pub") is None:
        pytest.skip("mosquitto_pub is not installed")
    sink, largest = asyncio.run(main())
    assert set(sink.times.values()) == {1}
    assert largest <= 2 * most + 1


@pytest.mark.parametrize(
    ("template", "topic", "sensor"),
    [
        ("plant/{plant}/{sensor}", "plant/north/t1", "t1"),
        ("+/{plant}/s_{sensor}/value", "x/north/s_t1/value", "t1"),
        ("a.b/{sensor}/#", "a.b/t1/x/y", "t1"),
    ],
)
def test_templates_become_filters_and_patterns(template: str, topic: str, sensor: str) -> None:
    filtered, pattern = topics(template, "north")
    match = pattern.fullmatch(topic)
    assert match is not None
    assert match["sensor"] == sensor
    assert aiomqtt.Topic(topic).matches(filtered)
    assert pattern.fullmatch("aXb/t1/x/y/../z/q") is None
