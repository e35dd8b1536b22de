"""What goes wrong in `live_faults`: kills, a clock that jumps, a store that takes no write; and what /healthz says."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg

from benchmarks.live_faults_parts import Program, answers
from eccaht.base.randomness import rng_for

JUMPS = (-3600, 3600)  # seconds by which the clock of the service is wrong
_SHOWN = 3.0  # seconds after which /healthz must show that the store takes no write
_OVER = 10.0  # seconds after which it must show that it does again
_FULL = 4096  # bytes that a file may have while the disk is full
_LONG_AWAY = 45.0  # seconds after which another service has taken the plants
_LONGEST = 30.0  # seconds that are waited for the service to work again
# a database whose disk is full says so at every write
_FUNCTION = """
CREATE OR REPLACE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
END $$"""
_REFUSE = 'CREATE TRIGGER is_full BEFORE INSERT OR UPDATE OR DELETE ON "{}" EXECUTE FUNCTION is_full()'
_TAKE = 'DROP TRIGGER IF EXISTS is_full ON "{}"'


@dataclass(eq=False)
class Health:
    """When the store took no write, and what /healthz said: when asked, when answered, status and text."""

    away: list[tuple[float, float]] = field(default_factory=list)
    said: list[tuple[float, float, int, str]] = field(default_factory=list)

    def judged(self) -> dict[str, Any]:
        """How long the store was away, answers that showed and that hid it, and answers that were false alarms."""
        well = [(asked, answered) for asked, answered, status, _ in self.said if status == 200]
        sick = [(asked, answered, detail) for asked, answered, status, detail in self.said if status != 200]
        hidden = sum(any(a + _SHOWN <= asked and end <= b for a, b in self.away) for asked, end in well)
        shown = sum(any(a <= asked <= b for a, b in self.away) for asked, _, _ in sick)
        false = [what for asked, end, what in sick if not any(a <= end and asked <= b + _OVER for a, b in self.away)]
        away = round(sum(b - a for a, b in self.away), 1)
        counts = {"asked": len(self.said), "shown": shown, "hidden": hidden, "false_sick": len(false)}
        return {"away": away, **counts, "false_details": sorted(set(false))[:10]}


@dataclass(eq=False)
class Troubles:
    """The programs, the services among them; url: of the store; clock: the file that says how wrong theirs is."""

    programs: Sequence[Program]
    services: Sequence[Program]
    url: str
    clock: Path | None
    health: Health = field(default_factory=Health)
    jumps: int = 0
    fills: int = 0

    async def kill(self, client: httpx.AsyncClient, end: float) -> None:
        """Kill one, sometimes two at once, and bring them back; the service is brought back by who keeps it up.

        The next one is mostly killed after the service works again, and sometimes while it starts.
        """
        rng = rng_for(0, "kills")
        while time.time() < end - 10.0:
            await asyncio.sleep(float(rng.uniform(1.0, 8.0)))
            chosen = rng.choice(len(self.programs), 2 if rng.random() < 0.25 else 1, replace=False)
            victims = [self.programs[k] for k in chosen.tolist()]
            for victim in victims:
                if victim.runs:
                    victim.kill()
            killed = time.monotonic()
            await asyncio.sleep(float(rng.uniform(0.2, 3.0)))
            for victim in victims:
                if victim not in self.services:
                    victim.start()
                if victim.name == "database":
                    self.health.away.append((killed, time.monotonic()))
                    await answers(self.url)
            if rng.random() < 0.8:
                await _healthy(client)

    async def jump(self, over: asyncio.Event) -> None:
        """Set the clock of the service wrong by an hour, and right again."""
        if self.clock is None:
            return
        rng = rng_for(0, "jumps")
        while not await _is_over(over, rng, 5.0, 20.0):
            set_clock(self.clock, int(rng.choice(JUMPS)))
            self.jumps += 1
            await _is_over(over, rng, 5.0, 25.0)
            set_clock(self.clock, 0)

    async def fill(self, over: asyncio.Event) -> None:
        """Let the disk be full for some seconds: files of the service cannot grow, or the database refuses writes."""
        rng = rng_for(0, "disk")
        least, most = 10.0, 30.0
        while not await _is_over(over, rng, least, most):
            least, most = 1.0, 3.0  # soon again where it did not succeed
            full = self._limit if self.url.startswith("sqlite") else self._refuse
            with contextlib.suppress(ProcessLookupError, psycopg.Error):
                self.health.away.append(await full(float(rng.uniform(6.0, 10.0))))
                self.fills += 1
                least, most = 10.0, 30.0

    async def _limit(self, seconds: float) -> tuple[float, float]:
        (service,) = self.services
        pid, begun = service.pid or 0, time.monotonic()
        if not pid:
            raise ProcessLookupError
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (_FULL, resource.RLIM_INFINITY))
        while time.monotonic() - begun < seconds and service.pid == pid:
            await asyncio.sleep(0.1)
        ended = time.monotonic()
        if service.pid == pid:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return begun, ended

    async def _refuse(self, seconds: float) -> tuple[float, float]:
        await asyncio.to_thread(_alter, self.url, _REFUSE)
        begun = time.monotonic()
        await asyncio.sleep(seconds)
        while True:
            ended = time.monotonic()
            with contextlib.suppress(psycopg.Error):
                await asyncio.to_thread(_alter, self.url, _TAKE)
                return begun, ended
            await asyncio.sleep(0.2)

    async def ask(self, base: str, over: asyncio.Event) -> None:
        """Ask /healthz twice a second, on a connection of its own."""
        async with httpx.AsyncClient(base_url=base, timeout=20.0) as client:
            while not over.is_set():
                asked = time.monotonic()
                with contextlib.suppress(httpx.TransportError):
                    answer = await client.get("/healthz")
                    self.health.said.append((asked, time.monotonic(), answer.status_code, answer.text[:200]))
                await asyncio.sleep(0.5)

    async def keep_up(self, over: asyncio.Event) -> None:
        """Start a service again whenever it has ended, as systemd would; a second one stays away longer at times."""
        rng, due = rng_for(0, "restarts"), dict[str, float]()
        while not over.is_set():
            for k, service in enumerate(self.services):
                if service.runs:
                    due.pop(service.name, None)
                elif time.monotonic() >= due.setdefault(service.name, time.monotonic() + _away(rng, k)):
                    service.start()
            await asyncio.sleep(1.0)


def _away(rng: np.random.Generator, number: int) -> float:
    """Seconds for which a service stays away: the first one none, others sometimes until they count as dead."""
    return _LONG_AWAY if number and rng.random() < 0.3 else 0.0


def set_clock(file: Path, seconds: int) -> None:
    """Let the clock of the service be wrong by so much."""
    other = file.with_suffix(".new")
    other.write_text(f"{seconds:+d}s\n")
    other.replace(file)


def _alter(url: str, what: str) -> None:
    """Change all tables at once, unless one is in use for long."""
    with psycopg.connect(url, connect_timeout=2) as connection:
        connection.execute("SET LOCAL lock_timeout = '5s'")
        if what == _REFUSE:
            connection.execute(_FUNCTION)
        for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall():
            connection.execute(what.format(name).encode())


async def _is_over(over: asyncio.Event, rng: np.random.Generator, least: float, most: float) -> bool:
    """Wait for a while, or until all is over."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(over.wait(), float(rng.uniform(least, most)))
    return over.is_set()


async def _healthy(client: httpx.AsyncClient) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < _LONGEST:
        with contextlib.suppress(httpx.TransportError):
            if (await client.get("/healthz")).status_code == 200:
                return
        await asyncio.sleep(0.3)
