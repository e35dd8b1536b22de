"""The service under load: plants that deliver a row a second each by HTTP, and open pages that listen to all of them.

No part of the default run: it takes as long as `--duration` says. The service is a process of its own with a store of
SQLite; who delivers and who listens share another process. A delay is from the moment before a row is sent to the
moment in which a page has the window that the row completes.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table, thousands, three_digits
from eccaht.arrays import Array
from eccaht.data.source import Arrays
from eccaht.model.calibration import calibrate
from eccaht.model.model import Model
from eccaht.randomness import rng_for

PLANTS, SENSORS, PAGES = 200, 50, 50
SECONDS, QUICK = 600.0, 20.0
CONNECTIONS = 50  # that deliver
HISTORY = 1800  # rows
_WARM = 5  # seconds until delays are counted
_ENDED = 10.0  # seconds for what is on its way at the end


def jobs(quick: bool, duration: float | None) -> list[Job]:
    """One job."""
    plants, pages = (20, 5) if quick else (PLANTS, PAGES)
    seconds = duration or (QUICK if quick else SECONDS)
    label = f"live {plants} plants, {pages} pages, {seconds:g} s"
    return [Job(label, partial(run, plants, pages, seconds))]


def tables(rows: list[Row]) -> list[Table]:
    """What was lost, how long it took, and memory."""
    columns = [
        Column("plants", "plants"),
        Column("pages", "pages"),
        Column("seconds", "seconds", three_digits),
        Column("windows", "windows", thousands),
        Column("lost", "lost", thousands),
        Column("missed", "not on a page", thousands),
        Column("median", "delay median ms", three_digits),
        Column("p99", "99 % ms", three_digits),
        Column("busy", "refused", thousands),
        Column("cpu", "CPU %", three_digits),
        Column("own_cpu", "bench's CPU %", three_digits),
        Column("rss_first", "MB after 10 s", three_digits),
        Column("rss_last", "MB at the end", three_digits),
    ]
    notes = [f"{SENSORS} sensors a plant, a window a second, one model; CPU and memory are those of the service."]
    over_time = [Column("second", "second"), Column("mb", "MB")]
    course = [{"second": s, "mb": mb} for row in rows for s, mb in row["rss"]]
    return [
        Table("live", "The service under load", columns, rows, notes),
        Table("live_memory", "Memory over time", over_time, course, on_screen=False),
    ]


def readings(rows: int, name: str) -> Array:
    """Sensors in five sections that share a factor each, (rows, SENSORS)."""
    rng = rng_for(0, "live", name)
    shared = np.repeat(rng.standard_normal((rows, 5)), SENSORS // 5, axis=1)
    return np.asarray(20.0 + shared + rng.standard_normal((rows, SENSORS)))


def names() -> list[str]:
    return [f"s{k:02d}" for k in range(SENSORS)]


def make_model() -> Model:
    times = np.datetime64("2026-01-01", "us") + np.arange(HISTORY) * np.timedelta64(1, "s")
    source = Arrays(readings(HISTORY, "history"), times, names(), zone="UTC")
    return calibrate(source, window="1s")


@dataclass
class Seen:
    """What pages got."""

    sent: dict[tuple[str, str], float] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)  # of each page
    busy: int = 0
    begun: float = 0.0


def run(plants: int, pages: int, seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "plant.model"
        make_model().save(model)
        config = Path(folder) / "live.toml"
        listed = "".join(f'[plants."p{k:03d}"]\nmodel = "plant.model"\nfalse_alarms = "1/30d"\n' for k in range(plants))
        limits = "[security]\nrate = 100000\nburst = 100000\n"
        config.write_text(f"{limits}[listen]\nport = 0\n{listed}")
        arguments = [sys.executable, "-m", "eccaht", "serve", "--config", str(config)]
        url = f"sqlite:///{folder}/live.db"
        arguments += ["--store", url]
        token = make_token(url)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        errors = (Path(folder) / "errors").open("w+")
        server = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split(":")[2].split("/")[0])
            return [asyncio.run(_load(_Service(port, server.pid, token), plants, pages, seconds))]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


async def _load(service: _Service, plants: int, pages: int, seconds: float) -> Row:
    pid = service.pid
    await _ready(service, plants)
    seen, stopping = Seen(windows=[0] * pages, begun=time.monotonic()), asyncio.Event()
    values = readings(int(seconds) + 60, "now").round(3).tolist()
    listeners = [asyncio.create_task(_listen(service, k, seen, stopping)) for k in range(pages)]
    await asyncio.sleep(1.0)
    memory: list[tuple[float, float]] = []
    used, own = _cpu(pid), time.process_time()
    watcher = asyncio.create_task(_watch(pid, memory, stopping))
    parts = [list(range(k, plants, CONNECTIONS)) for k in range(min(CONNECTIONS, plants))]
    begun = time.monotonic()
    sent = sum(await asyncio.gather(*(_deliver(service, part, values, seconds, seen) for part in parts)))
    taken = time.monotonic() - begun
    busy, own_busy = 100.0 * (_cpu(pid) - used) / taken, 100.0 * (time.process_time() - own) / taken
    await asyncio.sleep(min(_ENDED, seconds))
    stored = sum(plant["windows"] for plant in (await _get(service, "/api/plants"))["plants"])
    stopping.set()
    for task in (*listeners, watcher):
        task.cancel()
    await asyncio.gather(*listeners, watcher, return_exceptions=True)
    delays = np.array(seen.delays) * 1e3
    expected = sent - plants  # the last row of each plant completes nothing
    return {
        "plants": plants,
        "pages": pages,
        "seconds": taken,
        "windows": stored,
        "lost": expected - stored,
        "missed": sum(expected - count for count in seen.windows),
        "median": float(np.median(delays)),
        "p99": float(np.quantile(delays, 0.99)),
        "busy": seen.busy,
        "cpu": busy,
        "own_cpu": own_busy,
        "rss_first": next((mb for second, mb in memory if second >= min(10.0, seconds / 2)), None),
        "rss_last": memory[-1][1],
        "rss": memory,
    }


@dataclass(frozen=True)
class _Service:
    port: int
    pid: int
    token: str

    @property
    def head(self) -> str:
        return f"Host: localhost\r\nAuthorization: Bearer {self.token}\r\n"


def make_token(url: str) -> str:
    from eccaht.live.security import tokens
    from eccaht.live.store import Store
    from eccaht.live.store.store import now

    store = Store(url)
    store.prepare()
    with store.begin() as connection:
        token = tokens.create(connection, "bench", ["admin"], now=now(), seconds=None)
    store.close()
    return token


async def _deliver(service: _Service, plants: list[int], values: list[list[float]], seconds: float, seen: Seen) -> int:
    """Deliver a row a second of each of these plants; return how many rows were acknowledged."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    start, first, sent, columns = time.monotonic(), int(time.time()), 0, names()
    offsets = {plant: (plant % 200) / 200.0 for plant in plants}
    for second in range(int(seconds)):
        for plant in plants:
            await asyncio.sleep(max(start + second + offsets[plant] - time.monotonic(), 0.0))
            row = {"time": first + second, "values": dict(zip(columns, values[second + plant % 60], strict=True))}
            body = json.dumps(row).encode()
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(first + second - 1))
            seen.sent[f"p{plant:03d}", stamp] = time.monotonic()
            while True:
                path = f"/api/plants/p{plant:03d}/rows"
                status = await _ask(reader, writer, service, "POST", path, body)
                if status[0] == 200:
                    break
                if status[0] not in (429, 503):
                    raise RuntimeError(f"{path}: {status[0]} {status[1]!r}")
                seen.busy += 1
                await asyncio.sleep(0.2)
            sent += 1
    writer.close()
    return sent


async def _ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    service: _Service,
    method: str,
    path: str,
    body: bytes = b"",
) -> tuple[int, bytes]:
    kind = "Content-Type: application/x-ndjson\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\n{service.head}{kind}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return int(answer.split(b" ", 2)[1]), await reader.readexactly(length)


async def _get(service: _Service, path: str) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port, limit=1 << 24)
    _, content = await _ask(reader, writer, service, "GET", path)
    writer.close()
    return json.loads(content)


async def _ready(service: _Service, plants: int) -> None:
    while True:
        try:
            if (await _get(service, "/healthz"))["plants"] == plants:
                return
        except (OSError, asyncio.IncompleteReadError):
            pass
        await asyncio.sleep(0.5)


async def _chunks(service: _Service) -> AsyncIterator[bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(f"GET /api/stream HTTP/1.1\r\n{service.head}\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    while content := await reader.read(1 << 16):
        yield content


async def _listen(service: _Service, number: int, seen: Seen, stopping: asyncio.Event) -> None:
    """A page: the first one reads its messages, the others count theirs."""
    rest = b""
    async for content in _chunks(service):
        if stopping.is_set():
            return
        now = time.monotonic()
        text = rest + content
        end = text.rfind(b"\n\n") + 2
        whole, rest = text[:end], text[end:]
        seen.windows[number] += whole.count(b"event: window\n")
        if number == 0:
            for line in whole.split(b"\n"):
                if line.startswith(b'data: {"plant":') and b'"evidence"' in line:
                    document = json.loads(line[6:])
                    sent = seen.sent.pop((document["plant"], document["time"]), None)
                    if sent is not None and now - seen.begun > _WARM:
                        seen.delays.append(now - sent)


async def _watch(pid: int, memory: list[tuple[float, float]], stopping: asyncio.Event) -> None:
    begun = time.monotonic()
    while not stopping.is_set():
        status = Path(f"/proc/{pid}/status").read_text()
        kilobytes = int(status.partition("VmRSS:")[2].split()[0])
        memory.append((round(time.monotonic() - begun, 1), kilobytes / 1000))
        await asyncio.sleep(5.0)


def _cpu(pid: int) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
