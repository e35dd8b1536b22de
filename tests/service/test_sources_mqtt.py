"""Readings from a real MQTT broker: acknowledged once stored, nothing lost when broker or service go away."""

import asyncio
import gc
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from paho.mqtt.client import topic_matches_sub

from eccaht.checks import check_source
from eccaht.plants.intake import Rows
from eccaht.service.broker import Broker
from eccaht.service.rows import Busy
from eccaht.service.sources import make_feed, read_settings
from eccaht.service.sources.mqtt import MqttFeed, topics
from tests.service.mosquitto import DROPS_NOTHING, SHIPPED, Mosquitto, mosquitto
from tests.service.receivers import certified
from tests.service.source_tools import SECOND, START, Recorder, open_port, publisher, running, target, until

HOST, PORT = "localhost", 1883


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


async def connected(feed: MqttFeed) -> None:
    await until(lambda: feed.health.state == "running", "connected")


def test_topics_of_single_sensors_and_rows_of_many_arrive_with_their_times(root: str) -> None:
    async def main() -> tuple[Recorder, Recorder]:
        single, many = Recorder(), Recorder()
        one = feed_of(single, f"{root}/{{plant}}/{{sensor}}", names={"A": "a"})
        other = feed_of(many, f"{root}/all/{{plant}}", names={"B": "b"})
        async with running(one), running(other), publisher(HOST) as publish:
            await connected(one)
            await connected(other)
            for k in range(30):
                moment = START // SECOND + k
                await publish(f"{root}/north/A", {"time": moment, "value": k})
                await publish(
                    f"{root}/north/b", {"time": 1000 * moment, "value": -k, "quality": "bad" if k == 7 else "good"}
                )
                await publish(f"{root}/south/a", 99)
                await publish(f"{root}/north/mode", b"AUTO")  # a sensor that the model does not have
                await publish(f"{root}/all/north", {"time": moment, "a": k, "B": -k})
            await until(lambda: len(single.values("b")) == 29 and len(many.values("b")) == 30)
            await publish(f"{root}/all/north", b"{")
            await until(lambda: other.health.counts["bad payloads"] == 1)
            assert not one.health.counts
        return single, many

    single, many = asyncio.run(main())
    times = [START + k * SECOND for k in range(30)]
    assert single.values("a") == many.values("a") == dict(zip(times, range(30), strict=True))
    assert single.values("b") == {time: -k for k, time in enumerate(times) if k != 7}
    assert np.isnan(single.cells["north", times[7], "b"])
    assert check_source(single.excerpt()) == {}


def test_a_retained_value_is_no_new_reading(root: str) -> None:
    async def main() -> tuple[Recorder, MqttFeed]:
        sink = Recorder()
        feed = feed_of(sink, f"{root}/{{sensor}}")
        async with publisher(HOST) as publish:
            await publish(f"{root}/a", 1, retain=True)
            async with running(feed):
                await connected(feed)
                await publish(f"{root}/b", 2, retain=True)  # sent to those who listen as any other
                await until(lambda: sink.values("b"))
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
        async with publisher(HOST) as publish:
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
                # the next messages are read once those before them are acknowledged
                await publish(f"{root}/a", {"time": START // SECOND + 20, "value": 20})
                await until(lambda: len(sink.values("a")) == 21)
            third_sink = Recorder()
            async with running(feed_of(third_sink, f"{root}/{{sensor}}", client_id=identity)):
                await publish(f"{root}/a", {"time": START // SECOND + 21, "value": 21})
                await until(lambda: 21.0 in third_sink.values("a").values())
        assert set(third_sink.values("a").values()) <= {20.0, 21.0}  # what was acknowledged does not come again
        assert not dying.rows
        return sink

    sink = asyncio.run(main())
    assert sink.values("a") == {START + k * SECOND: k for k in range(21)}


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
        async with running(feed), publisher(HOST) as publish:
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


def test_rows_that_are_refused_stay_at_the_broker(root: str) -> None:
    """The service refuses rows, and the source stops with the reason; the next service gets all of them."""

    def refuse(_: Rows) -> None:
        raise ValueError("the plant is full")

    async def main() -> tuple[Recorder, Recorder]:
        identity, refusing, sink = uuid4().hex, Recorder(refuse), Recorder()
        first = feed_of(refusing, f"{root}/{{sensor}}", client_id=identity)
        async with publisher(HOST) as publish:
            async with running(first):
                await connected(first)
                await publish(f"{root}/a", b"{")  # no row at all: counted and acknowledged, or it would come for ever
                for k in range(10):
                    await publish(f"{root}/a", {"time": START // SECOND + k, "value": k})
                await until(lambda: first.health.state == "broken")
            assert not refusing.rows
            async with running(feed_of(sink, f"{root}/{{sensor}}", client_id=identity)):
                await until(lambda: len(sink.values("a")) == 10, "the refused rows")
        return refusing, sink

    refusing, sink = asyncio.run(main())
    assert sink.values("a") == {START + k * SECOND: k for k in range(10)}
    broken = next(state for state in refusing.states if state.state == "broken")
    assert broken.detail.startswith("the service refuses rows of north: the plant is full; next try within ")


def test_a_broker_is_read_over_tls_and_one_with_another_certificate_is_not(tmp_path: Path) -> None:
    _, certificate = certified(tmp_path)
    secured = f"{DROPS_NOTHING}certfile {certificate}\nkeyfile {tmp_path / 'key.pem'}\n"

    async def main(broker: Mosquitto) -> Recorder:
        sink = Recorder()
        document = {"host": "127.0.0.1", "port": broker.port, "tls": True}
        other = feed_of(Recorder(), "plant/{sensor}", **document)
        feed = feed_of(sink, "plant/{sensor}", ca_file=certificate, **document)
        await until(broker.listens)
        async with running(other), running(feed):
            await connected(feed)
            await until(lambda: "CERTIFICATE_VERIFY_FAILED" in other.health.detail)
            lines = "".join(f'{{"time": {START + k}, "value": {k}}}\n' for k in range(500))
            command = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(broker.port), "--cafile", certificate]
            command += ["-l", "-q", "1", "-t", "plant/a"]
            await asyncio.to_thread(subprocess.run, command, input=lines.encode(), check=True)
            await until(lambda: len(sink.times) == 500, "all rows")
        return sink

    if shutil.which("mosquitto_pub") is None:
        pytest.skip("mosquitto_pub is not installed")
    with mosquitto(tmp_path, secured) as broker:
        assert set(asyncio.run(main(broker)).times.values()) == {1}
    gc.collect()  # nothing was left open


# -- a broker that is killed -----------------------------------------------------------------------------


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path, DROPS_NOTHING) as server:
        yield server


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path, SHIPPED) as server:
        yield server


def test_a_broker_that_is_stopped_and_killed_loses_nothing_that_it_accepted(lasting: Mosquitto) -> None:
    async def main() -> tuple[Recorder, MqttFeed]:
        sink = Recorder()
        feed = feed_of(sink, "plant/{sensor}", port=lasting.port, session="1h")
        sent = 0
        async with running(feed):
            for how in (signal.SIGTERM, signal.SIGKILL, None):
                await until(lasting.listens, "the broker listens")
                await connected(feed)
                async with publisher(HOST, lasting.port) as publish:
                    for _ in range(50):
                        await publish("plant/a", {"time": START // SECOND + sent, "value": sent})
                        sent += 1
                if how is signal.SIGKILL:  # a broker that is killed may forget what it has not written yet
                    await until(lambda: len(sink.values("a")) == sent)  # noqa: B023
                if how is not None:
                    lasting.stop(how)
                    await until(lambda: feed.health.state == "broken", "the feed notices")
                    lasting.start()
            await until(lambda: len(sink.values("a")) == sent, "all rows")
        return sink, feed

    sink, _ = asyncio.run(main())
    assert sink.values("a") == {START + k * SECOND: k for k in range(150)}
    states = [state.state for state in sink.states]
    assert states.count("broken") >= 2
    assert states[-1] == "running"


@pytest.mark.parametrize("qos", [0, 1])
def test_a_flood_waits_at_the_broker_and_not_in_memory(
    broker: Mosquitto, qos: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    flood, most, largest = 3000, 20, 0
    reading = Broker._read

    def watched(link: Broker) -> None:
        nonlocal largest
        reading(link)
        largest = max(largest, len(link._messages))

    async def main() -> Recorder:
        go = asyncio.Event()
        sink = Recorder(lambda _: go.wait())
        feed = feed_of(sink, "plant/{sensor}", port=broker.port, in_flight=most, wait="1ms")
        await until(broker.listens, "the broker listens")
        async with running(feed):
            await connected(feed)
            lines = "".join(f'{{"time": {START + k}, "value": {k}}}\n' for k in range(flood))
            command = ["mosquitto_pub", "-p", str(broker.port), "-l", "-q", str(qos), "-t", "plant/a"]
            await asyncio.to_thread(subprocess.run, command, input=lines.encode(), check=True)
            assert not sink.rows
            go.set()
            await until(lambda: len(sink.times) == flood, "all rows")
        return sink

    if shutil.which("mosquitto_pub") is None:
        pytest.skip("mosquitto_pub is not installed")
    monkeypatch.setattr(Broker, "_read", watched)
    assert set(asyncio.run(main()).times.values()) == {1}
    assert largest <= 2 * most


def test_a_long_queue_that_comes_before_the_broker_answers_is_read(tmp_path: Path) -> None:
    """Messages of QoS 0 that waited are all sent at once, whatever may be under way, before the subscription stands."""

    async def main(broker: Mosquitto) -> Recorder:
        sink, given = Recorder(), {"port": broker.port, "in_flight": 20, "client_id": "one"}
        await until(broker.listens)
        async with running(first := feed_of(sink, "plant/{sensor}", **given)):
            await connected(first)
        lines = "".join(f'{{"time": {START + k}, "value": {k}}}\n' for k in range(1000))
        command = ["mosquitto_pub", "-p", str(broker.port), "-l", "-t", "plant/a"]
        await asyncio.to_thread(subprocess.run, command, input=lines.encode(), check=True)
        async with running(feed_of(sink, "plant/{sensor}", **given)):
            await until(lambda: len(sink.times) == 1000, "all rows")
        return sink

    if shutil.which("mosquitto_pub") is None:
        pytest.skip("mosquitto_pub is not installed")
    with mosquitto(tmp_path, f"{DROPS_NOTHING}queue_qos0_messages true\n") as broker:
        assert set(asyncio.run(main(broker)).times.values()) == {1}


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
    assert topic_matches_sub(filtered, topic)
    assert pattern.fullmatch("aXb/t1/x/y/../z/q") is None
