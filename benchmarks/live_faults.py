"""The service under everything that goes wrong at once: is every acknowledged row stored once, and every alarm sent?

No part of the default run. Plants deliver a row a second, by HTTP until it is acknowledged and by MQTT through a broker
of the benchmark's own, with rows from the future among them. Meanwhile broker, database and service are killed at
random, the clock of the service jumps, its disk is full, and clients flood it. Afterwards the store is compared with
what was sent: every row in its window, every event with those of a watch without disturbance, every alert with what the
receivers got, and what /healthz said with what was so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import httpx
import sqlalchemy as sa

from benchmarks.jobs import Job, Row
from benchmarks.live_faults_checks import compared
from benchmarks.live_faults_parts import (
    Arrived,
    answers,
    broker,
    clock_library,
    database,
    free_port,
    receivers,
    service,
)
from benchmarks.live_faults_plants import LATENESS, SECOND, Plant, Stream, make_plants, streams_of
from benchmarks.live_faults_senders import Balanced, Sender, by_mqtt
from benchmarks.live_faults_troubles import Troubles, set_clock
from benchmarks.live_service import SENSORS, make_model, make_token
from benchmarks.tables import Column, Table, thousands, three_digits
from eccaht.service.store import Store, schema

PLANTS = {"http": 30, "mqtt": 10}
STORES = {"sqlite": 1, "postgresql": 1, "postgresql, two services": 2}  # and how many services share it
SECONDS, QUICK = 600.0, 30.0
IN_FLIGHT = 5  # messages of a plant that are lost if broker and service die together, fewer than are sent again
_FLOOD = "flood00"
_SETTLED = 300.0  # seconds at most until all is stored and sent at the end


def jobs(quick: bool, duration: float | None) -> list[Job]:
    """One job for each store, and one for two services on it."""
    seconds = duration or (QUICK if quick else SECONDS)
    return [Job(f"live faults {store} {seconds:g} s", partial(run, store, seconds)) for store in STORES]


def tables(rows: list[Row]) -> list[Table]:
    """What went wrong, and what was lost, doubled, wrong or hidden."""
    troubles = [Column("store", "store", right=False), Column("seconds", "seconds", three_digits)]
    troubles += [Column(f"killed_{name}", f"{name} killed") for name in ("broker", "database", "service")]
    troubles += [
        Column("jumps", "clock jumps"),
        Column("fills", "disk full"),
        Column("flood_rows", "flood's rows", thousands),
    ]
    troubles += [Column("refused", "refused for now", thousands), Column("waiting", "s until settled", three_digits)]
    kept = [Column("store", "store", right=False), Column("rows", "rows acknowledged", thousands)]
    kept += [Column("lost", "lost"), Column("windows", "windows", thousands), Column("wrong", "doubled or wrong")]
    kept += [Column("orders", "orders"), Column("orders_lost", "lost"), Column("unsaid", "unwatched without a word")]
    kept += [Column("blind", "missing without a word"), Column("events", "events", thousands)]
    kept += [Column("other_events", "lost, doubled or other"), Column("no_data", "without data")]
    kept += [Column("away", "store away s", three_digits), Column("asked", "/healthz asked", thousands)]
    kept += [Column("shown", "shown"), Column("hidden", "hidden"), Column("false_sick", "false alarms")]
    alerts = [Column("store", "store", right=False), Column("alerts", "alerts by each channel")]
    alerts += [Column("without_alert", "events without"), Column("hooks_once", "webhooks once")]
    alerts += [Column("hooks_again", "again with the same key"), Column("hooks_missing", "missing")]
    alerts += [Column("mails_once", "mails once"), Column("mails_doubtful", "doubtful"), Column("mails_twice", "twice")]
    alerts += [Column("mails_missing", "missing"), Column("unsettled", "not settled")]
    notes = [f"{PLANTS['http']} plants by HTTP, {PLANTS['mqtt']} by MQTT, {SENSORS} sensors each, a window a second."]
    if clock_library() is None:
        notes.append("The clock did not jump: libfaketime is absent (Debian: faketime).")
    return [
        Table("live_faults", "What went wrong", troubles, rows, notes),
        Table("live_faults_kept", "What was kept", kept, rows),
        Table("live_faults_alerts", "Alerts of these runs", alerts, rows),
    ]


def run(store: str, seconds: float) -> list[Row]:
    """One run; what the programs wrote stays in ECCAHT_BENCH_KEEP, if that names a folder."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return [asyncio.run(_run(Path(folder), store, seconds))]
        finally:
            if (kept := os.environ.get("ECCAHT_BENCH_KEEP")) is not None:
                shutil.copytree(folder, Path(kept) / store)


async def _run(folder: Path, store: str, seconds: float) -> Row:
    (folder / "plant.model").write_bytes((model := make_model()).to_bytes())
    plants, flood, arrived = make_plants(PLANTS), Plant(_FLOOD), Arrived()
    found, bus = None if store == "sqlite" else database(folder), broker(folder)
    if bus is None or (found is None and store != "sqlite"):
        raise RuntimeError("there is no mosquitto or no PostgreSQL: install them")
    programs, url = [bus[0], *(found[:1] if found else ())], found[1] if found else f"sqlite:///{folder}/live.db"
    clock = folder / "clock" if clock_library() is not None else None
    if clock is not None:
        set_clock(clock, 0)
    async with receivers(arrived) as ports:
        try:
            for program in programs:
                program.start()
            if found is not None:
                await answers(url)
            token, config = make_token(url), folder / "live.toml"
            config.write_text(_config([*plants, flood], url, bus[1], ports))
            reached = [free_port() for _ in range(STORES[store])]
            services = [service(f"service{k}", folder, config, port, clock) for k, port in enumerate(reached, 1)]
            programs += services
            for program in services:
                program.start()
            troubles = Troubles(programs, services, url, clock)
            load, orders = await _load(plants, flood, seconds, troubles, reached, token, bus[1])
            for program in services:
                program.end()
            kept = await asyncio.to_thread(compared, url, model, [*plants, flood], arrived, orders)
        finally:
            for program in reversed(programs):
                program.end()
    killed = Counter({f"killed_{program.name.rstrip('12')}": 0 for program in programs})
    for program in programs:
        killed[f"killed_{program.name.rstrip('12')}"] += program.kills
    return {"store": store, "seconds": seconds, **killed, **load, **kept, **troubles.health.judged()}


def _config(plants: list[Plant], url: str, bus: int, ports: tuple[int, int]) -> str:
    lines = ["[store]", f'url = "{url}"']
    lines += ["[alerts]", 'timeout = "10s"', 'first = "1s"', 'longest = "5s"', "tries = 100"]
    lines += ["[alerts.webhooks.hook]", f'url = "http://127.0.0.1:{ports[0]}/"', "[alerts.mails.post]"]
    lines += ['host = "127.0.0.1"', f"port = {ports[1]}", 'tls = "none"']
    lines += ['sender = "a@example.org"', 'recipients = ["b@example.org"]']
    for plant in plants:
        lines += [f"[plants.{plant.name}]", 'model = "plant.model"', 'false_alarms = "1/30d"']
        if plant.kind == "mqtt":
            lines += [f'lateness = "{LATENESS}s"', f"[plants.{plant.name}.sources.bus]", 'kind = "mqtt"']
            lines += ['host = "127.0.0.1"', f"port = {bus}", 'topic = "rows/{plant}"', f"in_flight = {IN_FLIGHT}"]
    return "\n".join(lines) + "\n"


async def _load(
    plants: list[Plant], flood: Plant, seconds: float, troubles: Troubles, ports: list[int], token: str, bus: int
) -> tuple[Row, set[tuple[str, int]]]:
    """Send, disturb, and wait until all that was acknowledged is stored."""
    over, headers = asyncio.Event(), {"Authorization": f"Bearer {token}"}
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
    bases = [f"http://127.0.0.1:{port}" for port in ports]
    balanced = Balanced(ports, limits)
    async with httpx.AsyncClient(headers=headers, timeout=60.0, transport=balanced, base_url=bases[0]) as client:
        await _ready(bases, headers, PLANTS["mqtt"])
        first = int(time.time()) + 2
        streams, sender = streams_of(plants, first, round(seconds)), Sender(client, first)
        sending = _senders(streams, sender, bus)
        late = [plant for plant in plants if plant.kind == "http"][1:]
        works = (troubles.jump(over), troubles.fill(over), troubles.ask(bases[0], over))
        burdens = [sender.flood(flood, over), sender.be_late(late, over), sender.half_open(over)]
        burdens.append(sender.order(late, over))
        more = [asyncio.create_task(work) for work in (*works, *burdens)]
        ended = asyncio.Event()
        keeper = asyncio.create_task(troubles.keep_up(ended))
        await asyncio.sleep(max(first - time.time(), 0.0))
        await troubles.kill(client, first + seconds)
        over.set()
        await asyncio.wait_for(asyncio.gather(*more, *sending), _SETTLED)
        waiting = await _settled(troubles.url, [stream.plant for stream in streams], first + round(seconds))
        ended.set()
        await keeper
    refused = sum(count for status, count in sender.answers.items() if status != 200)
    counts = {"jumps": troubles.jumps if troubles.clock else None, "fills": troubles.fills}
    return {**counts, "flood_rows": len(flood.acknowledged), "refused": refused, "waiting": waiting}, sender.orders


def _senders(streams: list[Stream], sender: Sender, bus: int) -> list[asyncio.Future[None]]:
    by_http = [stream for stream in streams if stream.plant.kind == "http"]
    right = {id(stream.plant): stream for stream in reversed(streams) if stream.plant.kind == "mqtt"}
    others = [stream for stream in streams if stream.plant.kind == "mqtt" and right[id(stream.plant)] is not stream]
    works = [sender.by_http(stream) for stream in by_http]
    works += [by_mqtt(bus, "gateway", list(right.values()), sender.first), by_mqtt(bus, "other", others, sender.first)]
    return [asyncio.ensure_future(work) for work in works]


async def _ready(bases: list[str], headers: dict[str, str], sources: int) -> None:
    """Wait until the services listen to the broker, which keeps messages for them from then on."""
    async with httpx.AsyncClient(headers=headers, timeout=60.0) as client:
        while True:
            states: list[str] = []
            with contextlib.suppress(httpx.TransportError):
                for base in bases:
                    plants = (await client.get(f"{base}/api/plants")).json()["plants"]
                    states += [source["state"] for plant in plants for source in plant["sources"].values()]
            if states.count("running") >= sources:
                return
            await asyncio.sleep(0.5)


async def _settled(url: str, plants: list[Plant], end: int) -> float:
    """Wait until each plant has its last window and no alert waits to be sent; return how long that took."""
    begun, store, box = time.monotonic(), Store(url), schema.outbox.c
    names, windows = {plant.name for plant in plants}, schema.windows.c

    def read() -> bool:
        with store.read() as connection:
            last = sa.select(sa.func.count(sa.distinct(windows.plant))).where(
                windows.start >= (end - 1) * SECOND, windows.plant.in_(names)
            )
            waits = box.status.in_(["queued", "sending"]) | ((box.status == "doubtful") & (box.channel == "hook"))
            waiting = connection.execute(sa.select(sa.func.count()).where(waits)).scalar_one()
            return connection.execute(last).scalar_one() == len(names) and not waiting

    while time.monotonic() - begun < _SETTLED:
        with contextlib.suppress(sa.exc.DBAPIError):
            if await asyncio.to_thread(read):
                break
        await asyncio.sleep(1.0)
    store.close()
    return time.monotonic() - begun
