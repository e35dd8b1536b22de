"""Who sends in `live_faults`: by HTTP and by MQTT until it is acknowledged, and clients that are a burden."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import httpx

from benchmarks.live_faults_plants import Plant, Rows, Stream, as_csv, as_lines, flooding, too_late
from eccaht.service.broker import connected, make_client

OVERLAP = 10  # seconds of rows that a gateway sends again after the broker was away
FLOOD = 2_000  # rows of a delivery that floods
LATE = 10_000  # rows of a delivery that is too late
HALF_OPEN = 700  # connections whose requests never end
_MOST = 100  # seconds of rows in one delivery
_PAUSE = 0.3


class Balanced(httpx.AsyncBaseTransport):
    """Sends each request to the next of several services, as a load balancer that does not look at them."""

    def __init__(self, ports: Sequence[int], limits: httpx.Limits) -> None:
        self._turns, self._inner = cycle(ports), httpx.AsyncHTTPTransport(limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=next(self._turns))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(eq=False)
class Sender:
    """Posts to the service, and counts its answers."""

    client: httpx.AsyncClient
    first: int
    answers: Counter[int] = field(default_factory=Counter)
    orders: set[tuple[str, int]] = field(default_factory=set)  # that were obeyed: plant and number of the event

    async def post(self, plant: Plant, rows: Rows, *, csv: bool = False) -> dict[str, Any]:
        """Deliver rows, again and again until they are acknowledged."""
        kind = "text/csv" if csv else "application/x-ndjson"
        content = await asyncio.to_thread(as_csv, rows) if csv else as_lines(rows)
        while True:
            with contextlib.suppress(httpx.TransportError):
                path = f"/api/plants/{plant.name}/rows"
                answer = await self.client.post(path, content=content, headers={"Content-Type": kind})
                self.answers[answer.status_code] += 1
                if answer.status_code == 200:
                    plant.acknowledged.update(time for time, _ in rows)
                    return answer.json()
                if answer.status_code not in (408, 409, 429, 503):
                    raise RuntimeError(f"{plant.name}: {answer.status_code} {answer.text[:300]}")
            await asyncio.sleep(_PAUSE)

    async def by_http(self, stream: Stream) -> None:
        """Rows as their seconds come; what came together while the service was away goes in one delivery."""
        k, count = 0, len(stream.seconds)
        offset = (int(stream.plant.name[-2:]) % 100) / 100.0
        while k < count:
            await asyncio.sleep(max(self.first + k + offset - time.time(), 0.0))
            upto = min(max(int(time.time() - self.first - offset) + 1, k + 1), k + _MOST, count)
            await self.post(stream.plant, [row for rows in stream.seconds[k:upto] for row in rows])
            k = upto

    async def flood(self, plant: Plant, over: asyncio.Event) -> None:
        """Large deliveries as fast as they are taken, for half of the time."""
        number = 0
        while not over.is_set():
            end = time.monotonic() + 10.0
            while time.monotonic() < end and not over.is_set():
                rows = flooding(self.first, number, FLOOD)
                plant.sent.update(rows)
                await self.post(plant, rows, csv=True)
                number += 1
            await _rest(over, 10.0)

    async def be_late(self, plants: Sequence[Plant], over: asyncio.Event) -> None:
        """Now and then 10,000 rows at once of windows that are complete: of long ago, and of just now."""
        number = 0
        await _rest(over, 15.0)
        while not over.is_set():
            plant, old = plants[number % len(plants)], number % 2 == 1
            if rows := too_late(plant, self.first, LATE, old=old):
                taken = await self.post(plant, rows, csv=True)
                plant.old += taken["late"] if old else 0
            number += 1
            await _rest(over, 25.0)

    async def order(self, plants: Sequence[Plant], over: asyncio.Event) -> None:
        """Acknowledge alarms where there are some, by whichever service is reached."""
        while not over.is_set():
            for plant in plants:
                with contextlib.suppress(httpx.TransportError):
                    answer = await self.client.post(f"/api/plants/{plant.name}/acknowledge", json={})
                    if answer.status_code == 200:
                        self.orders |= {(plant.name, event["number"]) for event in answer.json()["events"]}
                await _rest(over, 1.0)

    async def half_open(self, over: asyncio.Event) -> None:
        """Now and then many connections whose requests never end."""
        await _rest(over, 20.0)
        while not over.is_set():
            opened = await asyncio.gather(*(self._begin() for _ in range(HALF_OPEN)), return_exceptions=True)
            await _rest(over, 12.0)
            for writer in opened:
                if isinstance(writer, asyncio.StreamWriter):
                    writer.close()
            await _rest(over, 25.0)

    async def _begin(self) -> asyncio.StreamWriter:
        address = self.client.base_url
        _, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"POST /api/plants/http00/rows HTTP/1.1\r\nHost: bench\r\nX-Begun: ")
        return writer


async def _rest(over: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(over.wait(), seconds)


async def by_mqtt(port: int, name: str, streams: Sequence[Stream], first: int) -> None:
    """A gateway: what the broker acknowledged shortly before it went away is sent again once it is back."""
    done, count = 0, max(len(stream.seconds) for stream in streams)
    while done < count:
        with contextlib.suppress(OSError):
            async with connected(make_client(name), "127.0.0.1", port, timeout=5.0) as bus:
                async for k in _seconds(max(done - OVERLAP, 0), count, first):
                    for stream in streams:
                        for row in stream.seconds[k] if k < len(stream.seconds) else []:
                            await bus.publish(f"rows/{stream.plant.name}", as_lines([row]).encode())
                            stream.plant.acknowledged.add(row[0])
                    done = max(done, k + 1)
        await asyncio.sleep(_PAUSE)


async def _seconds(begin: int, count: int, first: int) -> AsyncIterator[int]:
    for k in range(begin, count):
        await asyncio.sleep(max(first + k - time.time(), 0.0))
        yield k
