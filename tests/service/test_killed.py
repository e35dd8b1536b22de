"""The real program, killed while rows come in by HTTP: every row that it acknowledged counts once."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from eccaht.base.randomness import rng_for
from eccaht.service.store import Store, schema
from tests.service import plants
from tests.service.guarded import bearer, make

WINDOWS, KILLS, PART = 100, 2, 3


class Program:
    """`eccaht serve` as a process that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        (folder / "plant.model").write_bytes(plants.content())
        self.url = f"sqlite:///{folder / 'live.db'}"
        config = folder / "live.toml"
        config.write_text('[plants.p]\nmodel = "plant.model"\nfalse_alarms = "1/2000w"\n')
        self._command = [sys.executable, "-m", "eccaht", "serve", "--config", str(config), "--store", self.url]
        self._process: subprocess.Popen[str] | None = None
        self._errors = (folder / "errors").open("a")
        store = Store(self.url)
        store.prepare()
        self.headers = bearer(make(store, "test", "admin"))
        store.close()
        self.base = ""

    def start(self) -> None:
        self._process = subprocess.Popen(
            [*self._command, "--port", "0"], stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        assert self._process.stdout is not None
        self.base = self._process.stdout.readline().strip().rstrip("/")

    def end(self, how: int) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        os.kill(self._process.pid, how)
        code = self._process.wait(60)
        self._process.stdout.close()
        return code

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.end(signal.SIGKILL)
        self._errors.close()


@contextlib.contextmanager
def program(folder: Path) -> Iterator[Program]:
    made = Program(folder)
    made.start()
    try:
        yield made
    finally:
        made.close()


def test_every_row_that_was_acknowledged_counts_once(tmp_path: Path) -> None:
    times, values = plants.recording(WINDOWS)
    texts = [f"{time}Z" for time in times.astype("datetime64[us]").astype(str)]
    rng, acknowledged = rng_for(0, "kill"), 0
    ended = threading.Event()
    with program(tmp_path) as served, httpx.Client(headers=served.headers, timeout=60.0) as client:

        def kill() -> None:
            for _ in range(KILLS):
                time.sleep(float(rng.uniform(0.3, 0.8)))
                served.end(signal.SIGKILL)
                served.start()
            ended.set()

        killer = threading.Thread(target=kill)
        killer.start()
        for k in range(0, len(texts), PART):
            part = [
                {"time": text, "values": dict(zip(plants.NAMES, row, strict=True))}
                for text, row in zip(texts[k : k + PART], values[k : k + PART].tolist(), strict=True)
            ]
            send(client, served, part)
            acknowledged += len(part)
            if not ended.is_set():
                time.sleep(0.01)
        killer.join()
        send(client, served, part)  # once more, which counts for nothing: the last program may still be starting
        assert served.end(signal.SIGTERM) in (0, 143)
        store = Store(served.url)
        with store.read() as connection:
            rows = list(connection.execute(sa.select(schema.windows).order_by(schema.windows.c.start)))
            checkpoint = connection.execute(sa.select(schema.checkpoints.c.windows)).scalar()
        store.close()
    assert acknowledged == len(texts)
    assert [row.start for row in rows] == times[:: plants.ROWS].astype("int64").tolist()[:-1]
    assert {row.rows for row in rows} == {plants.ROWS}
    assert [row.number for row in rows] == list(range(1, WINDOWS))
    assert checkpoint == WINDOWS - 1  # SIGTERM leaves nothing to be taken again


def send(client: httpx.Client, served: Program, part: list[dict[str, Any]]) -> None:
    """As a source does it: until it is acknowledged."""
    for _ in range(1200):
        with contextlib.suppress(httpx.TransportError):
            answer = client.post(f"{served.base}/api/plants/p/rows", json=part)
            if answer.status_code == 200:
                return
            assert answer.status_code in (404, 429, 503), answer.text
        time.sleep(0.05)
    raise AssertionError("never acknowledged")
