"""Readings from asyncua's own server: times and status of the source, restarts, and a busy service."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asyncua import ua
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from asyncua.server.server import Server
from asyncua.ua.status_codes import StatusCodes
from cryptography.x509.oid import ExtendedKeyUsageOID

from eccaht.checks import check_source
from eccaht.plants.intake import Rows
from eccaht.service.rows import Busy
from eccaht.service.sources import make_feed, read_settings
from eccaht.service.sources.opcua import OpcUaFeed
from tests.service.source_tools import Recorder, free_port, running, target, until


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("asyncua")
    before, logger.level = logger.level, logging.CRITICAL
    yield
    logger.setLevel(before)


class Plant:
    """A server with two nodes, made once because that takes seconds, and the moment of the next values."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner, self.server = asyncio.Runner(), Server()
        self.url = f"opc.tcp://127.0.0.1:{free_port()}/plant"
        self.moment = datetime.now(UTC).replace(microsecond=0)
        self.nodes: dict[str, Any] = {}

    async def prepare(self) -> None:
        await self.server.init()
        self.server.set_endpoint(self.url)
        self.server.set_security_policy(
            [ua.SecurityPolicyType.NoSecurity, ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt]
        )
        await self._certify("server", "urn:freeopcua:python:server")
        await self.server.load_certificate(str(self.folder / "server.der"))
        await self.server.load_private_key(str(self.folder / "server.pem"))
        await self._certify("client", "urn:eccaht:client")
        space = await self.server.register_namespace("urn:eccaht:test")
        for name in "ab":
            node = ua.NodeId.from_string(f"ns={space};s=Pump.{name}")
            self.nodes[name] = await self.server.nodes.objects.add_variable(node, name, 0.0)

    async def _certify(self, name: str, uri: str) -> None:
        key, certificate = self.folder / f"{name}.pem", self.folder / f"{name}.der"
        usage = ExtendedKeyUsageOID.SERVER_AUTH if name == "server" else ExtendedKeyUsageOID.CLIENT_AUTH
        await setup_self_signed_certificate(key, certificate, uri, "localhost", [usage], {})

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        for name in "ab":
            await self.write(name, 0.0, at=datetime.now(UTC) - timedelta(hours=1))
        async with self.server:
            yield

    async def write(self, name: str, value: Any, status: str = "Good", at: datetime | None = None) -> int:
        """Write a value at a later moment; its time in microseconds."""
        if at is None:
            self.moment += timedelta(milliseconds=100)
            at = self.moment
        variant = ua.Variant(value, ua.VariantType.Double)
        code = ua.StatusCode(getattr(StatusCodes, status))
        stamp = ua.DateTime.fromtimestamp(at.timestamp(), UTC)
        await self.nodes[name].write_value(ua.DataValue(variant, code, SourceTimestamp=stamp, ServerTimestamp=stamp))
        return round(at.timestamp() * 1e6)

    def feed(self, sink: Recorder, **settings: Any) -> OpcUaFeed:
        nodes = {name: f"ns=2;s=Pump.{name}" for name in "ab"}
        document = {"kind": "opcua", "url": self.url, "nodes": nodes, "interval": "20ms", "timeout": "60s", **settings}
        feed = make_feed("plc", read_settings(document, "plc"), target(), sink)
        assert isinstance(feed, OpcUaFeed)
        return feed


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    made = Plant(tmp_path_factory.mktemp("opcua"))
    with made.runner:
        made.runner.run(made.prepare())
        yield made


async def connected(feed: OpcUaFeed) -> None:
    await until(lambda: feed.health.state == "running", "connected")


def test_values_come_with_the_times_of_their_source_and_bad_ones_are_missing(plant: Plant) -> None:
    async def main() -> tuple[Recorder, dict[str, int], OpcUaFeed]:
        sink = Recorder()
        feed = plant.feed(sink)
        async with plant.up(), running(feed):
            await connected(feed)
            times = {status: await plant.write("a", 5.0, status) for status in STATUSES}
            await until(lambda: len({t for _, t, s in sink.cells if s == "a"}) >= len(STATUSES))
            same = [await plant.write("b", 7.0) for _ in range(3)]  # the value stays, its time moves on
            await until(lambda: set(same) <= set(sink.values("b")))
        return sink, times, feed

    sink, times, feed = plant.runner.run(main())
    found = {status: sink.cells["north", time, "a"] for status, time in times.items()}
    np.testing.assert_equal(found, STATUSES)
    assert feed.health.counts == {"old values at the connection left out": 2}  # an hour old when we came
    assert check_source(sink.excerpt()) == {}


STATUSES = {
    "Good": 5.0,
    "GoodClamped": 5.0,
    "UncertainEngineeringUnitsExceeded": 5.0,
    "UncertainLastUsableValue": np.nan,
    "UncertainSubstituteValue": np.nan,
    "BadSensorFailure": np.nan,
    "BadNoCommunication": np.nan,
}


def test_a_server_that_is_restarted_is_found_again_and_every_row_arrives(plant: Plant) -> None:
    async def main() -> tuple[Recorder, dict[int, float]]:
        sink, sent = Recorder(), dict[int, float]()
        feed = plant.feed(sink)
        async with running(feed):
            for _ in range(3):
                async with plant.up():
                    await connected(feed)
                    for _ in range(20):
                        value = float(len(sent) + 1)
                        sent[await plant.write("a", value)] = value
                        await asyncio.sleep(0.002)
                    await until(lambda: sink.values("a").keys() >= sent.keys(), "all rows")
                await until(lambda: feed.health.state == "broken", "the feed notices")
        return sink, sent

    sink, sent = plant.runner.run(main())
    assert sink.values("a") == sent
    assert [state.state for state in sink.states].count("running") >= 3


def test_a_busy_service_holds_the_server_back_which_keeps_the_changes(plant: Plant) -> None:
    async def main() -> tuple[Recorder, dict[int, float]]:
        busy, sent = [True], dict[int, float]()

        def before(_: Rows) -> None:
            if busy[0]:
                raise Busy("full", after=0.01)

        sink = Recorder(before)
        feed = plant.feed(sink)
        async with plant.up(), running(feed):
            await connected(feed)
            for k in range(200):
                sent[await plant.write("a", float(k + 1))] = float(k + 1)
                if k == 20:
                    await until(lambda: feed.health.state == "waiting")
            assert not sink.rows
            busy[0] = False
            await until(lambda: sink.values("a").keys() >= sent.keys(), "all rows")
        return sink, sent

    sink, sent = plant.runner.run(main())
    assert sink.values("a") == sent
    assert set(sink.times.values()) == {1}


def test_all_nodes_can_be_read_at_once_so_that_a_value_that_stays_is_a_reading_as_well(plant: Plant) -> None:
    async def main() -> Recorder:
        sink = Recorder()
        feed = plant.feed(sink, read_every="20ms")
        async with plant.up():
            await plant.write("a", 3.0)
            await plant.write("b", 4.0, "BadSensorFailure")
            async with running(feed):
                await until(lambda: len(sink.values("a")) >= 5)
        return sink

    sink = plant.runner.run(main())
    assert set(sink.values("a").values()) == {3.0}
    assert sink.values("b") == {}
    assert all(rows.names == ("a", "b") for rows in sink.rows)


def test_a_node_that_is_not_there_is_reported_by_its_sensor(plant: Plant) -> None:
    async def main() -> Recorder:
        sink = Recorder()
        feed = plant.feed(sink, nodes={"a": "ns=2;s=Pump.a", "b": "ns=2;s=Pump.typo"})
        async with plant.up(), running(feed):
            await until(lambda: feed.health.state == "broken")
        return sink

    broken = next(state for state in plant.runner.run(main()).states if state.state == "broken")
    assert "refuses node 'ns=2;s=Pump.typo' of 'b': BadNodeIdUnknown" in broken.detail


@pytest.mark.parametrize("known", [True, False])
def test_readings_come_over_an_encrypted_channel(plant: Plant, known: bool) -> None:
    files = {"certificate": str(plant.folder / "client.der"), "key": str(plant.folder / "client.pem")}
    if known:
        files["server_certificate"] = str(plant.folder / "server.der")

    async def main() -> tuple[Recorder, int]:
        sink = Recorder()
        feed = plant.feed(sink, policy="Basic256Sha256", **files)
        async with plant.up(), running(feed):
            await until(lambda: feed.health.state == "running", "connected")
            time = await plant.write("a", 2.5)
            await until(lambda: sink.values("a"))
        return sink, time

    sink, time = plant.runner.run(main())
    assert sink.values("a") == {time: 2.5}
