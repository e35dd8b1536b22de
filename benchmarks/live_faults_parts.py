"""What is killed in `live_faults`, and who counts what arrives: broker, database and service; web and mail servers.

Each is a process of the benchmark's own, in its own folder and on a free port, and comes back where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

_SHIPPED = Path(__file__).parents[1] / "deploy" / "mosquitto.conf"
_FAKETIME = "**/faketime/libfaketimeMT.so.1"
_LONGEST = 60.0  # seconds until a program that was started must answer


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


class Program:
    """A process that can be killed and started again."""

    def __init__(
        self,
        name: str,
        folder: Path,
        command: list[str],
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.command, self._user, self._environment = name, command, user, environment or {}
        self._log = (folder / f"{name}.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None
        self.kills = self.starts = 0

    @property
    def pid(self) -> int | None:
        """Its number, None if it has ended."""
        return self._process.pid if self._process is not None and self.runs else None

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, where it was killed before from what it kept."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **self._environment}
        self._process = subprocess.Popen(
            self.command, stdout=self._log, stderr=self._log, env=environment, user=self._user
        )
        self.starts += 1

    def kill(self) -> None:
        """SIGKILL, to it and to what it started."""
        assert self._process is not None
        self.kills += 1
        for number in (self._process.pid, *_children(self._process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self._process.wait(30)

    def end(self) -> None:
        """SIGTERM, and what waits is done."""
        if self._process is not None and self.runs:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(60)
            if self.runs:
                self.kill()
        self._log.close()


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.parent.name))
    return found


def broker(folder: Path) -> tuple[Program, int] | None:
    """A Mosquitto with the settings of deploy/, on a port of its own and for anyone; None where there is none."""
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        return None
    place, port = folder / "broker", free_port()
    place.mkdir()
    settings = _SHIPPED.read_text(encoding="utf-8").replace("listener 1883", f"listener {port} 127.0.0.1")
    settings = re.sub(r"allow_anonymous false\npassword_file .*", "allow_anonymous true", settings)
    settings = re.sub(r"(?m)^(persistence_location) .*$", rf"\1 {place}/", settings)
    (place / "mosquitto.conf").write_text(settings + ("user root\n" if os.geteuid() == 0 else ""))
    return Program("broker", folder, [found, "-c", str(place / "mosquitto.conf")]), port


def database(folder: Path) -> tuple[Program, str] | None:
    """A PostgreSQL cluster and the URL of its database, None where there is no PostgreSQL."""
    roots = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    binaries = roots[0] if roots else Path(shutil.which("initdb") or "").parent
    user = _other_user()
    if not (binaries / "initdb").exists() or (os.geteuid() == 0 and user is None):
        return None
    place, port = folder / "database", free_port()
    place.mkdir(mode=0o700)
    if user is not None:
        shutil.chown(place, user)
        folder.chmod(0o711)
    made = [str(binaries / "initdb"), "-D", str(place), "-U", "eccaht", "--auth=trust", "--no-sync", "-E", "UTF8"]
    subprocess.run(made, user=user, check=True, capture_output=True, cwd="/")
    options = ["-p", str(port), "-h", "127.0.0.1", "-k", str(place)]
    url = f"postgresql://eccaht@127.0.0.1:{port}/postgres"
    return Program("database", folder, [str(binaries / "postgres"), "-D", str(place), *options], user), url


def _other_user() -> str | None:
    """Who runs PostgreSQL, which refuses to be run by root."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name if os.geteuid() == 0 else None
    return None


def service(name: str, folder: Path, config: Path, port: int, clock: Path | None) -> Program:
    """A service; clock: a file that says by how much its clock is wrong."""
    command = [sys.executable, "-m", "eccaht", "serve", "--config", str(config), "--port", str(port)]
    return Program(name, folder, command, environment=_wrong_clock(clock) if clock is not None else None)


def clock_library() -> Path | None:
    """What makes the clock of a process wrong (the package faketime), None where it is absent."""
    places = [path for root in ("/usr/lib", "/usr/lib64", "/usr/local/lib") for path in Path(root).glob(_FAKETIME)]
    return places[0] if places else None


def _wrong_clock(file: Path) -> dict[str, str]:
    """The wall clock alone: what is measured from one moment to another stays right."""
    return {
        "LD_PRELOAD": str(clock_library()),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


async def answers(url: str) -> None:
    """Wait until a database takes connections."""
    end = time.monotonic() + _LONGEST
    while True:
        try:
            await asyncio.to_thread(lambda: psycopg.connect(url, connect_timeout=2).close())
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)


@dataclass
class Arrived:
    """What receivers got: webhooks by their key, mails by plant and event."""

    hooks: Counter[str] = field(default_factory=Counter)
    mails: Counter[tuple[str, int]] = field(default_factory=Counter)


@contextlib.asynccontextmanager
async def receivers(arrived: Arrived) -> AsyncIterator[tuple[int, int]]:
    """A web server and a mail server that count, and their ports."""

    async def hook(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(_header(head, "content-length")))
            arrived.hooks[_header(head, "idempotency-key")] += 1
            await asyncio.sleep(0.1)  # long enough for a kill to come in between
            writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    async def mail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            writer.write(b"220 bench\r\n")
            while line := (await reader.readline()).strip().upper():
                if line == b"DATA":
                    writer.write(b"354 go on\r\n")
                    text = (await reader.readuntil(b"\r\n.\r\n")).decode()
                    named, number = re.search(r"^plant: (\S+)", text, re.M), re.search(r"^event: (\d+)", text, re.M)
                    assert named is not None
                    assert number is not None
                    arrived.mails[named[1], int(number[1])] += 1
                    await asyncio.sleep(0.1)
                writer.write(b"221 bye\r\n" if line == b"QUIT" else b"250 ok\r\n")
                await writer.drain()
        writer.close()

    web, post = await asyncio.start_server(hook, "127.0.0.1", 0), await asyncio.start_server(mail, "127.0.0.1", 0)
    async with web, post:
        yield web.sockets[0].getsockname()[1], post.sockets[0].getsockname()[1]


def _header(head: str, name: str) -> str:
    return next(line.partition(":")[2].strip() for line in head.split("\r\n") if line.startswith(f"{name}:"))
