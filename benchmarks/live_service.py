"""The service that `live` measures, as a process of its own, and how the other processes talk to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.plants.data.source import Arrays
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model

SENSORS = 50
HISTORY = 1800  # rows
_LARGEST = 1 << 24  # bytes of an answer's line


@dataclass(frozen=True)
class Service:
    """Where it listens, its process, and a token."""

    port: int
    pid: int
    token: str

    @property
    def head(self) -> str:
        """What each request begins with after its first line."""
        return f"Host: localhost\r\nAuthorization: Bearer {self.token}\r\n"


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


def make_token(url: str) -> str:
    from eccaht.service.security import guard
    from eccaht.service.store import Store
    from eccaht.service.store.store import now

    store = Store(url)
    store.prepare()
    with store.begin() as connection:
        token = guard.create(connection, "bench", ["admin"], now=now(), seconds=None)
    store.close()
    return token


@contextmanager
def started(plants: int) -> Iterator[Service]:
    """The service with so many plants of one model, and a store of SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        make_model().save(Path(folder) / "plant.model")
        config, url = Path(folder) / "live.toml", f"sqlite:///{folder}/live.db"
        listed = "".join(f'[plants."p{k:03d}"]\nmodel = "plant.model"\nfalse_alarms = "1/30d"\n' for k in range(plants))
        config.write_text(f"[listen]\nport = 0\n{listed}")
        token, environment = make_token(url), {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        arguments = [sys.executable, "-m", "eccaht", "serve", "--config", str(config), "--store", url]
        with (Path(folder) / "errors").open("w+") as errors:
            server = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
            try:
                assert server.stdout is not None
                port = int(server.stdout.readline().split(":")[2].split("/")[0])
                service = Service(port, server.pid, token)
                asyncio.run(_ready(service, plants))
                yield service
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(60)


async def _ready(service: Service, plants: int) -> None:
    while True:
        try:
            if (await get(service, "/healthz"))["plants"] == plants:
                return
        except (OSError, asyncio.IncompleteReadError):
            pass
        await asyncio.sleep(0.5)


class Connection:
    """A connection that is kept, for one request after the other."""

    def __init__(self, service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._service, self._reader, self._writer = service, reader, writer

    @classmethod
    async def to(cls, service: Service) -> Connection:
        """Open one."""
        return cls(service, *await asyncio.open_connection("127.0.0.1", service.port, limit=_LARGEST))

    async def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/x-ndjson"
    ) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        typed = f"Content-Type: {kind}\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._service.head}{typed}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return int(answer.split(b" ", 2)[1]), await self._reader.readexactly(length)

    async def post(self, plant: str, body: bytes, kind: str = "application/x-ndjson") -> int:
        """Deliver rows until they are acknowledged; return how often that was refused for now."""
        refused = 0
        while True:
            status, text = await self.ask("POST", f"/api/plants/{plant}/rows", body, kind)
            if status == 200:
                return refused
            if status not in (429, 503):
                raise RuntimeError(f"{plant}: {status} {text[:300]!r}")
            refused += 1
            await asyncio.sleep(0.2)

    def close(self) -> None:
        """Close it."""
        self._writer.close()


async def get(service: Service, path: str) -> Any:
    """An answer in JSON."""
    connection = await Connection.to(service)
    _, content = await connection.ask("GET", path)
    connection.close()
    return json.loads(content)


def cpu(pid: int) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Megabytes that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000
