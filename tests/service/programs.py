"""`eccaht serve` as a program of its own, with settings and a limit on its files."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from eccaht.service.store import Store
from tests.service.guarded import bearer, make


@dataclass(frozen=True)
class Program:
    """A service that runs; headers: of an administrator."""

    base: str
    port: int
    pid: int
    headers: dict[str, str]
    log: Path
    url: str

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Ask on a connection of its own."""
        return httpx.get(self.base + path, timeout=60.0, **more)


@contextmanager
def program(folder: Path, settings: str = "", limits: dict[int, int] | None = None) -> Iterator[Program]:
    """A service on SQLite in a folder; settings: TOML; limits: of the process, by their number in `resource`."""
    (folder / "live.toml").write_text(settings)
    url, log = f"sqlite:///{folder / 'live.db'}", folder / "log"
    store = Store(url)
    store.prepare()
    headers = bearer(make(store, "admin", "admin", "ingest"))
    store.close()

    def limit() -> None:
        for which, most in (limits or {}).items():
            resource.setrlimit(which, (most, resource.getrlimit(which)[1]))

    command = [sys.executable, "-m", "eccaht", "serve", "--config", str(folder / "live.toml"), "--store", url]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, "--port", "0"], stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=limit,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("http"), log.read_text()
            base = line.strip().rstrip("/")
            yield Program(base, int(base.rpartition(":")[2]), process.pid, headers, log, url)
        finally:
            process.terminate()
            process.wait(60)
            assert process.stdout is not None
            process.stdout.close()
