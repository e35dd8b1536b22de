"""A consumer group on librdkafka's mock cluster: services share plants and take over from each other."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import sqlalchemy as sa
from confluent_kafka import Producer

from eccaht.checks import check_source
from eccaht.plants.intake import Rows
from eccaht.service.rows import Busy, UnknownPlant
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.feeds import Feeds
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.sources import make_feed, read_settings
from eccaht.service.sources.feed import Target
from eccaht.service.sources.kafka import KafkaFeed
from eccaht.service.store import Store, schema
from tests.service import plants as recorded, stores
from tests.service.receivers import CLOSED
from tests.service.source_tools import SECOND, START, Recorder, running, target, until

Kept = dict[tuple[str, int], bytes]  # values of windows by plant and start
BATCH = 40  # messages taken at once
PLANTS = [f"plant{k}" for k in range(6)]


@dataclass
class Cluster:
    """The mock cluster, which lives as long as its producer."""

    producer: Producer
    servers: str

    def send(self, topic: str, plant: str | None, document: Any) -> None:
        payload = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.producer.produce(topic, key=plant, value=payload)

    def rows(self, topic: str, *seconds: int, plants: list[str] = PLANTS) -> None:
        for k in seconds:
            for plant in plants:
                self.send(topic, plant, {"time": START // SECOND + k, "a": k, "b": -k})
        self.producer.flush(60)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 2})
    broker = next(iter(producer.list_topics(timeout=60).brokers.values()))
    yield Cluster(producer, f"{broker.host}:{broker.port}")
    producer.flush(60)


def plants(name: str) -> Target:
    if name not in PLANTS:
        raise UnknownPlant(name)
    return target(name=name)


def feed_of(cluster: Cluster, sink: Any, topic: str, **settings: Any) -> KafkaFeed:
    document = {
        "kind": "kafka",
        "servers": cluster.servers,
        "topic": topic,
        "wait": "50ms",
        "session": "4s",
        **settings,
    }
    document.setdefault("group", f"of-{topic}")
    feed = make_feed("bus", read_settings(document, "bus"), plants, sink)
    assert isinstance(feed, KafkaFeed)
    return feed


class Sharing(Recorder):
    """A sink of a service that shares its plants; `wrong` lists when two services watched one at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.watched, self.wrong = set[str](), list[str]()
        self.other: Sharing | None = None

    async def submit(self, plant: str, rows: Rows, *, source: str) -> Any:
        if plant not in self.watched:
            self.wrong.append(f"{plant}: rows without taking it over")
        return await super().submit(plant, rows, source=source)

    async def take_over(self, plant: str) -> None:
        if self.other is not None and plant in self.other.watched:
            self.wrong.append(f"{plant}: taken over before the other one let it go")
        self.watched.add(plant)

    async def hand_over(self, plant: str) -> None:
        self.watched.remove(plant)


# -- what happens: the scenarios run side by side, because each waits for seconds until the group has settled ----------


async def known_and_others(cluster: Cluster, topic: str) -> tuple[Recorder, KafkaFeed]:
    sink = Recorder()
    cluster.rows(topic, *range(20))
    cluster.send(topic, "nowhere", {"a": 1})
    cluster.send(topic, None, {"a": 1})
    cluster.send(topic, "plant0", b"\xff")
    cluster.send(topic, "plant0", b"")
    cluster.send(topic, "plant1", {"a": 1.5})  # at the time of the message
    cluster.producer.flush(60)
    feed = feed_of(cluster, sink, topic)
    async with running(feed):
        await until(lambda: feed.health.counts.total() == 4 and len(sink.times) == 121)
    return sink, feed


async def two_services(cluster: Cluster, topic: str) -> tuple[Sharing, Sharing]:
    one, two = Sharing(), Sharing()
    one.other, two.other = two, one
    cluster.rows(topic, *range(10))

    def total() -> int:
        return len(one.times.keys() | two.times.keys())

    async with running(feed_of(cluster, one, topic)):
        await until(lambda: total() == 60)
        async with running(second := feed_of(cluster, two, topic)):
            await until(lambda: second.health.state == "running", "the second joined")
            sent = 10
            while not (one.watched and two.watched):  # both have plants once a row of each came
                cluster.rows(topic, sent)
                sent += 1
                await until(lambda: total() == 6 * sent)  # noqa: B023
        assert two.watched == set()
        cluster.rows(topic, *range(sent, sent + 10))
        await until(lambda: total() == 6 * (sent + 10), "the first took over")
    return one, two


async def a_busy_service(cluster: Cluster, topic: str) -> tuple[Recorder, Recorder]:
    busy = [True]

    def before(_: Rows) -> None:
        if busy[0]:
            raise Busy("full", after=0.01)

    cluster.rows(topic, *range(50))
    stuck, sink = Recorder(before), Recorder()
    first = feed_of(cluster, stuck, topic)
    async with running(first):
        await until(lambda: first.health.state == "waiting")
    busy[0] = False
    async with running(feed_of(cluster, sink, topic)):
        await until(lambda: len(sink.times) == 300)
    return stuck, sink


async def a_refusing_service(cluster: Cluster, topic: str) -> tuple[Recorder, Recorder]:
    """What a service took that refuses the rows of one plant, and what the next one got of the same group."""

    class Refusing(Recorder):
        async def submit(self, plant: str, rows: Rows, *, source: str) -> Any:
            if plant == "plant3":
                raise ValueError("the plant is full")
            return await super().submit(plant, rows, source=source)

    cluster.rows(topic, *range(5))
    refusing, sink = Refusing(), Recorder()
    first = feed_of(cluster, refusing, topic)
    async with running(first):
        await until(lambda: first.health.state == "broken", "rows were refused")
    async with running(feed_of(cluster, sink, topic)):
        await until(lambda: len(sink.values("a", "plant3")) == 5, "the refused rows come again")
    return refusing, sink


async def a_killed_service(cluster: Cluster, topic: str, folder: Path) -> tuple[int, Counter[str]]:
    """How many seconds were sent, and how often each row was stored by the one that was killed and the other."""
    paths = [folder / "one", folder / "two"]
    command = [sys.executable, "-m", "tests.service.kafka_member"]
    members = [subprocess.Popen([*command, str(path), cluster.servers, topic, "0.05"]) for path in paths]
    sent = 0
    try:
        async with asyncio.timeout(60):
            while not all(stored(path) for path in paths):  # until both have plants
                cluster.rows(topic, *range(sent, sent + 10))
                sent += 10
                await asyncio.sleep(0.1)
        members[0].kill()
        cluster.rows(topic, *range(sent, sent + 20))
        sent += 20
        await until(lambda: len(stored(*paths)) == len(PLANTS) * sent, "all rows")
    finally:
        for member in members:
            member.kill()
            member.wait(60)
    return sent, stored(*paths)


async def two_engines(cluster: Cluster, topic: str, folder: Path) -> tuple[Kept, Kept]:
    """Windows of plants that two services with one store watched, of which one stopped, and as they should be."""
    times, values = recorded.recording(30)
    rows, half = recorded.rows_of(times, values), len(times) // 2
    document = {"kind": "kafka", "servers": cluster.servers, "topic": topic, "group": f"of-{topic}", "session": "4s"}

    def send(first: int, last: int) -> None:
        for time, row in zip(times.astype(np.int64).tolist()[first:last], values[first:last].tolist(), strict=True):
            for plant in PLANTS:
                cluster.send(topic, plant, {"time": time, "values": dict(zip(recorded.NAMES, row, strict=True))})
        cluster.producer.flush(60)

    async def begun(store: Store, port: int) -> tuple[Runtime, Feeds]:
        engine = Runtime(store, Settings(sources={"bus": document}, listen={"port": port}))
        await engine.start()
        if not engine.views():
            digest, _ = await engine.add_model(recorded.content(), "plant.model", "test")
            for plant in [*PLANTS, "direct"]:
                await engine.put_plant(plant, digest, PlantOptions(), "test")
        feeds = Feeds(engine)
        await feeds.start()
        return engine, feeds

    with stores.opened("postgresql", folder) as store, closing(Store(stores.POSTGRES, store._schema)) as same:
        one, feeds = await begun(store, 1)
        two, others = await begun(same, 2)
        await one.submit("direct", rows, source="test")
        sent = 0
        async with asyncio.timeout(60):
            while not (fed_by(one) and fed_by(two)) and sent < half:
                send(sent, sent + 1)
                sent += 1
                await asyncio.sleep(0.5)
        shared = bool(fed_by(one) and fed_by(two))
        await feeds.stop()
        await one.stop()
        send(sent, len(times))
        done = len([start for plant, start in windows(store) if plant == "direct"])
        await until(lambda: len(windows(store)) == done * (len(PLANTS) + 1), "all windows")
        assert fed_by(two) == set(PLANTS)
        assert shared
        await others.stop()
        await two.stop()
        found = windows(store)
    direct = {start: value for (plant, start), value in found.items() if plant == "direct"}
    return found, {(plant, start): value for plant in [*PLANTS, "direct"] for start, value in direct.items()}


def fed_by(engine: Runtime) -> set[str]:
    return {plant for plant, view in engine.views().items() if any(s.state == "running" for s in view.sources.values())}


def windows(store: Store) -> Kept:
    columns = schema.windows.c
    with store.read() as connection:
        found = connection.execute(sa.select(columns.plant, columns.start, columns["values"])).all()
    return {(row[0], row[1]): bytes(row[2]) for row in found}


async def no_broker(cluster: Cluster, topic: str) -> Recorder:
    sink = Recorder()
    feed = feed_of(Cluster(cluster.producer, f"127.0.0.1:{CLOSED}"), sink, topic)
    async with running(feed):
        await until(lambda: feed.health.state == "broken")
        feed.health.bring("plant0")  # a plant that gets the reports
        await until(lambda: [state.state for state in sink.states].count("broken") >= 2)
    return sink


def stored(*paths: Path) -> Counter[str]:
    return Counter(line for path in paths if path.exists() for line in path.read_text().splitlines())


@pytest.fixture(scope="module")
def outcomes(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each scenario gave, or the error that it ended by."""
    folder = tmp_path_factory.mktemp("kafka")

    async def main() -> dict[str, Any]:
        scenarios: dict[str, Coroutine[Any, Any, Any]] = {
            made.__name__: made(cluster, f"t{uuid4().hex}")
            for made in (known_and_others, two_services, a_busy_service, a_refusing_service, no_broker)
        }
        scenarios["two_engines"] = two_engines(cluster, f"t{uuid4().hex}", folder)
        scenarios["a_killed_service"] = a_killed_service(cluster, f"t{uuid4().hex}", folder)
        return dict(zip(scenarios, await asyncio.gather(*scenarios.values(), return_exceptions=True), strict=True))

    return asyncio.run(main())


def outcome(outcomes: dict[str, Any], name: str) -> Any:
    if isinstance(outcomes[name], BaseException):
        raise outcomes[name]
    return outcomes[name]


# -- what must hold of it ---------------------------------------------------------------------------------------------


def test_offsets_are_not_committed_past_rows_that_are_refused(outcomes: dict[str, Any]) -> None:
    refusing, sink = outcome(outcomes, "a_refusing_service")
    assert not refusing.values("a", "plant3")
    assert sink.values("a", "plant3") == {START + k * SECOND: k for k in range(5)}
    (detail,) = {state.detail.partition(";")[0] for state in refusing.states if state.state == "broken"}
    assert detail == "the service refuses rows of plant3: the plant is full"


def test_messages_of_known_plants_arrive_others_and_bad_ones_are_counted(outcomes: dict[str, Any]) -> None:
    sink, feed = outcome(outcomes, "known_and_others")
    counted = {"messages of plants that are not here": 1, "messages without the name of a plant as key": 1}
    assert feed.health.counts == {**counted, "bad payloads": 2}
    assert set(sink.times.values()) == {1}
    assert sink.values("b", "plant3") == {START + k * SECOND: -k for k in range(20)}
    assert check_source(sink.excerpt()) == {}


def test_two_services_share_the_plants_and_when_one_leaves_the_other_takes_over(outcomes: dict[str, Any]) -> None:
    one, two = outcome(outcomes, "two_services")
    assert one.wrong == two.wrong == []
    assert two.rows


def test_two_engines_with_one_store_share_plants_and_every_window_is_there_once(outcomes: dict[str, Any]) -> None:
    found, expected = outcome(outcomes, "two_engines")
    assert found == expected


def test_a_busy_service_commits_nothing_and_loses_nothing(outcomes: dict[str, Any]) -> None:
    stuck, sink = outcome(outcomes, "a_busy_service")
    assert not stuck.rows
    assert set(sink.times.values()) == {1}


def test_a_service_that_is_killed_is_replaced_and_no_row_is_lost(outcomes: dict[str, Any]) -> None:
    sent, found = outcome(outcomes, "a_killed_service")
    assert set(found) == {f"{plant} {START + k * SECOND}" for plant in PLANTS for k in range(sent)}
    assert found.total() - len(found) <= BATCH  # only what was stored and not yet committed comes again


def test_brokers_that_cannot_be_reached_are_tried_again(outcomes: dict[str, Any]) -> None:
    sink = outcome(outcomes, "no_broker")
    assert {state.state for state in sink.states} == {"connecting", "broken"}
    assert "next try within" in sink.states[-1].detail or sink.states[-1].state == "connecting"
