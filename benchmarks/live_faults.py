"""Broker, database and service killed in turn at random, under load: is every acknowledged window stored once?

No part of the default run. Plants deliver a row a second, by HTTP until it is acknowledged and by MQTT through a broker
of the benchmark's own. Afterwards the store is compared with what was sent: every window with its values, every event
with those of a watch that nobody disturbed, every alert with what the receivers got.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiomqtt
import httpx
import sqlalchemy as sa

from benchmarks.jobs import Job, Row
from benchmarks.live import SENSORS, make_model, make_token, names, readings
from benchmarks.live_faults_checks import compared
from benchmarks.live_faults_parts import Arrived, Program, answers, broker, database, free_port, receivers, service
from benchmarks.tables import Column, Table, thousands, three_digits
from eccaht.arrays import Array
from eccaht.live.store import Store, schema
from eccaht.randomness import rng_for

PLANTS = {"http": 30, "mqtt": 10}
SECONDS, QUICK = 600.0, 30.0
LATENESS = 30  # seconds that windows of MQTT wait for what the broker lost and is sent again
OVERLAP = 10.0  # seconds of rows that are sent again after the broker was away
FAULT, PERIOD, SHIFT = 20, 60, 8.0  # seconds that two sensors are wrong, how often, and by how much
_SETTLED = 240.0  # seconds at most until all is stored and sent at the end
_MOST = 100  # rows of one delivery


def jobs(quick: bool, duration: float | None) -> list[Job]:
    """One job."""
    seconds = duration or (QUICK if quick else SECONDS)
    return [Job(f"live faults {seconds:g} s", partial(run, seconds))]


def tables(rows: list[Row]) -> list[Table]:
    """What was killed, and what was lost, doubled or wrong."""
    killed = [Column("seconds", "seconds", three_digits), Column("store", "store")]
    killed += [Column(f"killed_{name}", f"{name} killed") for name in ("broker", "database", "service")]
    killed += [Column("windows", "windows", thousands), Column("lost", "lost"), Column("wrong", "doubled or wrong")]
    killed += [Column("events", "events"), Column("other_events", "lost, doubled or other")]
    alerts = [Column("alerts", "alerts by each channel"), Column("hooks_once", "webhooks once")]
    alerts += [Column("hooks_again", "again with the same key"), Column("hooks_missing", "missing")]
    alerts += [Column("mails_once", "mails once"), Column("mails_doubtful", "doubtful"), Column("mails_twice", "twice")]
    alerts += [Column("mails_missing", "missing"), Column("unsettled", "not settled")]
    notes = [f"{PLANTS['http']} plants by HTTP, {PLANTS['mqtt']} by MQTT, {SENSORS} sensors each, a window a second."]
    return [
        Table("live_faults", "Killed at random under load", killed, rows, notes),
        Table("live_faults_alerts", "Alerts of that run", alerts, rows),
    ]


def run(seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [asyncio.run(_run(Path(folder), seconds))]


@dataclass
class Plant:
    """What one plant sends, and how much of it was acknowledged."""

    name: str
    values: Array
    acknowledged: int = 0
    body: list[str] = field(default_factory=list)


async def _run(folder: Path, seconds: float) -> Row:
    (folder / "plant.model").write_bytes((model := make_model()).to_bytes())
    plants = _plants(round(seconds))
    found, bus = database(folder), broker(folder)
    if bus is None:
        raise RuntimeError("there is no mosquitto: install it")
    programs, arrived = [bus[0]], Arrived()
    url = f"sqlite:///{folder}/live.db"
    async with receivers(arrived) as ports:
        try:
            bus[0].start()
            if found is not None:
                url = found[1]
                programs.append(found[0])
                found[0].start()
                await answers(url)
            token, port, config = make_token(url), free_port(), folder / "live.toml"
            config.write_text(_config(plants, url, port, bus[1], ports))
            programs.append(service(folder, config))
            programs[-1].start()
            await _ready(f"http://127.0.0.1:{port}", token, PLANTS["mqtt"])
            first = int(time.time()) + 2
            await _load(plants, first, seconds, programs, f"http://127.0.0.1:{port}", token, bus[1])
            waiting = await _settled(url, plants, seconds)
            programs[-1].end()
            kept = compared(url, model, {plant.name: plant.values for plant in plants}, first, arrived)
        finally:
            for program in reversed(programs):
                program.end()
    killed = {f"killed_{program.name}": program.kills for program in programs}
    return {"seconds": seconds, "store": sa.make_url(url).get_backend_name(), **killed, **kept, "waiting": waiting}


def _plants(seconds: int) -> list[Plant]:
    """Two sensors of each plant are wrong now and then."""
    rng, plants = rng_for(0, "live faults"), []
    everything = readings(seconds + 100, "faults")
    for k, kind in enumerate(kind for kind, count in PLANTS.items() for _ in range(count)):
        values = everything[k : k + seconds].copy()
        for begin in range(10 + int(rng.integers(0, PERIOD - FAULT)), seconds - FAULT, PERIOD):
            wrong = rng.choice(SENSORS, 2, replace=False)
            values[begin : begin + FAULT, wrong] += SHIFT
        plants.append(Plant(f"{kind}{k:02d}", values.round(3)))
    return plants


def _config(plants: list[Plant], url: str, port: int, bus: int, ports: tuple[int, int]) -> str:
    lines = ["[store]", f'url = "{url}"', "[listen]", f"port = {port}"]
    lines += ["[security]", "rate = 100000", "burst = 100000"]
    lines += ["[alerts]", 'timeout = "2s"', 'first = "1s"', 'longest = "5s"', "tries = 100"]
    lines += ["[alerts.webhooks.hook]", f'url = "http://127.0.0.1:{ports[0]}/"', "[alerts.mails.post]"]
    lines += ['host = "127.0.0.1"', f"port = {ports[1]}", 'tls = "none"']
    lines += ['sender = "a@example.org"', 'recipients = ["b@example.org"]']
    for plant in plants:
        lines += [f"[plants.{plant.name}]", 'model = "plant.model"', 'false_alarms = "1/30d"']
        if plant.name.startswith("mqtt"):
            lines += [f'lateness = "{LATENESS}s"', f"[plants.{plant.name}.sources.bus]", 'kind = "mqtt"']
            lines += ['host = "127.0.0.1"', f"port = {bus}", 'topic = "rows/{plant}"']
    return "\n".join(lines) + "\n"


async def _ready(base: str, token: str, sources: int) -> None:
    """Wait until the service listens to the broker, which keeps messages for it from then on."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, base_url=base) as client:
        while True:
            with contextlib.suppress(httpx.TransportError):
                plants = (await client.get("/api/plants")).json()["plants"]
                states = [source["state"] for plant in plants for source in plant["sources"].values()]
                if states.count("running") == sources:
                    return
            await asyncio.sleep(0.5)


async def _load(
    plants: list[Plant], first: int, seconds: float, programs: list[Program], base: str, token: str, bus: int
) -> None:
    by_http = [plant for plant in plants if plant.name.startswith("http")]
    by_mqtt = [plant for plant in plants if plant.name.startswith("mqtt")]
    over = asyncio.Event()
    limits = httpx.Limits(max_connections=len(by_http) + 1, max_keepalive_connections=len(by_http) + 1)
    async with httpx.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=60.0, limits=limits, base_url=base
    ) as client:
        senders = [asyncio.create_task(_by_http(client, plant, first)) for plant in by_http]
        senders.append(asyncio.create_task(_by_mqtt(bus, by_mqtt, first)))
        keeper = asyncio.create_task(_kept_up(programs[-1], over))
        await asyncio.sleep(max(first - time.time(), 0.0))
        await _kill(programs, first + seconds, client)
        await asyncio.wait_for(asyncio.gather(*senders), _SETTLED)
        over.set()
        await keeper


async def _kill(programs: list[Program], end: float, client: httpx.AsyncClient) -> None:
    """Kill one, sometimes two at once, and bring them back; the service is brought back by who keeps it up.

    The next one is mostly killed after the service works again, and sometimes while it starts.
    """
    rng = rng_for(0, "kills")
    while time.time() < end - 10.0:
        await asyncio.sleep(float(rng.uniform(1.0, 8.0)))
        chosen = rng.choice(len(programs), 2 if rng.random() < 0.25 else 1, replace=False)
        victims = [programs[k] for k in chosen.tolist()]
        for victim in victims:
            if victim.runs:
                victim.kill()
        await asyncio.sleep(float(rng.uniform(0.2, 3.0)))
        for victim in victims:
            if victim.name != "service":
                victim.start()
        if rng.random() < 0.8:
            await _healthy(client)


async def _healthy(client: httpx.AsyncClient) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < 30.0:
        with contextlib.suppress(httpx.TransportError):
            if (await client.get("/healthz")).status_code == 200:
                return
        await asyncio.sleep(0.3)


async def _kept_up(program: Program, over: asyncio.Event) -> None:
    """Start the service again whenever it has ended, as systemd would."""
    while not over.is_set():
        if not program.runs:
            program.start()
        await asyncio.sleep(1.0)


async def _by_http(client: httpx.AsyncClient, plant: Plant, first: int) -> None:
    """Rows as their seconds come, and again until they are acknowledged; one more at the end completes the last."""
    count, columns = len(plant.values), names()
    offset = (int(plant.name[4:]) % 100) / 100.0
    while plant.acknowledged <= count:
        k = plant.acknowledged
        await asyncio.sleep(max(first + k + offset - time.time(), 0.0))
        upto = min(max(int(time.time() - first - offset) + 1, k + 1), k + _MOST, count + 1)
        body = "\n".join(_row(plant, min(row, count - 1), first + row, columns) for row in range(k, upto))
        try:
            answer = await client.post(
                f"/api/plants/{plant.name}/rows", content=body, headers={"Content-Type": "application/x-ndjson"}
            )
        except httpx.TransportError:
            await asyncio.sleep(0.3)
            continue
        if answer.status_code == 200:
            plant.acknowledged = upto
        elif answer.status_code in (429, 503):
            await asyncio.sleep(0.3)
        else:
            raise RuntimeError(f"{plant.name}: {answer.status_code} {answer.text}")


async def _by_mqtt(port: int, plants: list[Plant], first: int) -> None:
    """A gateway: what the broker acknowledged shortly before it went away is sent again once it is back."""
    count, done, columns = len(plants[0].values), 0, names()
    while done < count + 1:
        with contextlib.suppress(aiomqtt.MqttError, OSError):
            async with aiomqtt.Client("127.0.0.1", port, identifier="gateway", timeout=5.0) as client:
                again = max(done - round(OVERLAP), 0)
                async for k in _seconds(again, count, first):
                    moment = first + (k if k < count else count + LATENESS + 10)  # the last one completes all
                    for plant in plants:
                        body = _row(plant, min(k, count - 1), moment, columns)
                        await client.publish(f"rows/{plant.name}", body, qos=1, timeout=5.0)
                    done = max(done, k + 1)
        await asyncio.sleep(0.3)


async def _seconds(begin: int, count: int, first: int) -> AsyncIterator[int]:
    for k in range(begin, count + 1):
        await asyncio.sleep(max(first + k - time.time(), 0.0))
        yield k


def _row(plant: Plant, k: int, moment: int, columns: list[str]) -> str:
    return json.dumps({"time": moment, "values": dict(zip(columns, plant.values[k].tolist(), strict=True))})


async def _settled(url: str, plants: list[Plant], seconds: float) -> float:
    """Wait until all windows are stored and no alert waits to be sent; return how long that took."""
    begun, store, box = time.monotonic(), Store(url), schema.outbox.c
    expected = len(plants) * round(seconds)

    def read() -> tuple[int, int]:
        with store.read() as connection:
            windows = connection.execute(sa.select(sa.func.count()).select_from(schema.windows)).scalar_one()
            waits = box.status.in_(["queued", "sending"]) | ((box.status == "doubtful") & (box.channel == "hook"))
            return windows, connection.execute(sa.select(sa.func.count()).where(waits)).scalar_one()

    while time.monotonic() - begun < _SETTLED:
        if await asyncio.to_thread(read) == (expected, 0):
            break
        await asyncio.sleep(1.0)
    store.close()
    return time.monotonic() - begun
