"""Who delivers and who listens in `live`: each function is run in a process of its own, and says what it took.

All processes of a machine share the monotonic clock, so that what one sent can be compared with what another got.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.live_service import Connection, Service, names, readings

CONNECTIONS = 50  # that deliver
FLOOD = 2_000  # rows of a delivery that floods
FLOODED = 20  # rows of a window then
LATE = 10_000  # rows of a delivery that is too late
Place = tuple[str, str]  # a plant, and the time of a window


@dataclass(eq=False)
class Delivered:
    """When the row was sent that completes a window; when deliveries began and how long they took; rows and refusals.

    cpu: the share of a core that the process took, in percent.
    """

    sent: dict[Place, float] = field(default_factory=dict)
    took: list[tuple[float, float]] = field(default_factory=list)
    rows: int = 0
    refused: int = 0
    cpu: float = 0.0


@dataclass(eq=False)
class Heard:
    """When the first page had each window, and how many each page had."""

    got: dict[Place, float] = field(default_factory=dict)
    windows: list[int] = field(default_factory=list)
    cpu: float = 0.0


def deliver(service: Service, plants: Sequence[int], seconds: float, begin: float) -> Delivered:
    """A row a second of each of these plants, from a moment on."""
    found = Delivered()
    found.cpu = _measured(_deliver_all(service, plants, seconds, begin, found), begin)
    return found


def flood(service: Service, plant: int, seconds: float, begin: float) -> Delivered:
    """Large deliveries of one plant, each as soon as the one before is acknowledged."""
    found = Delivered()
    found.cpu = _measured(_flood(service, plant, seconds, begin, found), begin)
    return found


def be_late(service: Service, plant: int, begin: float) -> Delivered:
    """Rows of complete windows in one delivery: older than all windows, then of the last hundred."""
    found = Delivered()
    found.cpu = _measured(_be_late(service, plant, begin, found), begin)
    return found


def listen(service: Service, pages: int, until: float) -> Heard:
    """Open pages; the first one reads its messages, the others count theirs."""
    found = Heard(windows=[0] * pages)
    found.cpu = _measured(_listen_all(service, until, found), time.monotonic())
    return found


def _measured(work: Any, begin: float) -> float:
    """Run it; the share of a core that it took from a moment on, in percent."""
    used = time.process_time()
    asyncio.run(work)
    return 100.0 * (time.process_time() - used) / max(time.monotonic() - begin, 1e-9)


async def _deliver_all(service: Service, plants: Sequence[int], seconds: float, begin: float, found: Delivered) -> None:
    values = readings(int(seconds) + 60, "now").round(3).tolist()
    parts = [plants[k::CONNECTIONS] for k in range(min(CONNECTIONS, len(plants)))]
    first = round(time.time() + begin - time.monotonic())
    await asyncio.gather(*(_deliver(service, part, values, seconds, (begin, first), found) for part in parts))


async def _deliver(
    service: Service,
    plants: Sequence[int],
    values: list[list[float]],
    seconds: float,
    start: tuple[float, int],
    found: Delivered,
) -> None:
    (begin, first), columns = start, names()
    await _until(begin - 0.5)  # the service closes connections that wait for long
    connection = await Connection.to(service)
    for second in range(int(seconds)):
        for plant in plants:
            await _until(begin + second + (plant % 200) / 200.0)
            row = {"time": first + second, "values": dict(zip(columns, values[second + plant % 60], strict=True))}
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(first + second - 1))
            moment = found.sent[f"p{plant:03d}", stamp] = time.monotonic()
            found.refused += await connection.post(f"p{plant:03d}", json.dumps(row).encode())
            found.took.append((moment, time.monotonic() - moment))
            found.rows += 1
    connection.close()


async def _flood(service: Service, plant: int, seconds: float, begin: float, found: Delivered) -> None:
    lines = [",".join(map(str, row)) for row in readings(1000, "flood").round(3).tolist()]
    first = time.time() // 1 - 86_400.0
    await _until(begin)
    connection = await Connection.to(service)
    while (moment := time.monotonic()) < begin + seconds:
        places = range(found.rows, found.rows + FLOOD)
        body = _csv([f"{first + k / FLOODED:.6f},{lines[k % len(lines)]}" for k in places])
        found.refused += await connection.post(f"p{plant:03d}", body, "text/csv")
        found.took.append((moment, time.monotonic() - moment))
        found.rows += FLOOD
    connection.close()


async def _be_late(service: Service, plant: int, begin: float, found: Delivered) -> None:
    lines = [",".join(map(str, row)) for row in readings(LATE, "late").round(3).tolist()]
    old = [time.time() // 1 - 40_000 + k for k in range(LATE)]
    await _until(begin)
    recent = [time.time() // 1 - 105 + j + (k + 1) / 1000 for j in range(100) for k in range(LATE // 100)]
    for times in (old, recent):
        body = _csv([f"{at:.6f},{line}" for at, line in zip(times, lines, strict=True)])
        connection, moment = await Connection.to(service), time.monotonic()
        found.refused += await connection.post(f"p{plant:03d}", body, "text/csv")
        found.took.append((moment, time.monotonic() - moment))
        found.rows += LATE
        connection.close()
        await asyncio.sleep(5.0)


async def _until(moment: float) -> None:
    await asyncio.sleep(max(moment - time.monotonic(), 0.0))


def _csv(lines: list[str]) -> bytes:
    return "\n".join([",".join(["time", *names()]), *lines, ""]).encode()


async def _listen_all(service: Service, until: float, found: Heard) -> None:
    tasks = [asyncio.create_task(_listen(service, k, found)) for k in range(len(found.windows))]
    await _until(until)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _chunks(service: Service) -> AsyncIterator[bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(f"GET /api/stream HTTP/1.1\r\n{service.head}\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    while content := await reader.read(1 << 16):
        yield content


async def _listen(service: Service, number: int, found: Heard) -> None:
    rest = b""
    async for content in _chunks(service):
        now, text = time.monotonic(), rest + content
        end = text.rfind(b"\n\n") + 2
        whole, rest = text[:end], text[end:]
        found.windows[number] += whole.count(b"event: window\n")
        for line in whole.split(b"\n") if number == 0 else ():
            if line.startswith(b'data: {"plant":') and b'"evidence"' in line:
                document = json.loads(line[6:])
                found.got[document["plant"], document["time"]] = now
