"""Server-sent events: everything in order, to everybody who listens, and a word to those who missed something."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from eccaht.live import hub as hubs
from eccaht.live.hub import Hub
from eccaht.live.rows import Busy
from tests.live.source_tools import until


def parsed(chunks: list[bytes]) -> list[tuple[int | None, str, Any]]:
    """The messages of a stream: number, kind and document."""
    found = []
    for block in b"".join(chunks).decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "event" in fields:
            number = int(fields["id"]) if "id" in fields else None
            found.append((number, fields["event"], json.loads(fields["data"])))
    return found


async def drained(hub: Hub) -> None:
    """Wait until all clients have what was told."""
    await until(lambda: not any(client.awake.is_set() for client in hub._clients))


def listening(act: Callable[[Hub], Awaitable[None]], hub: Hub | None = None, **options: Any) -> list[Any]:
    """What a client gets while something happens; heartbeats left out."""

    async def run() -> list[Any]:
        served = hub or Hub()
        served.start()
        chunks: list[bytes] = []

        async def listen() -> None:
            async for chunk in served.listen(**options):
                chunks.append(chunk)

        task = asyncio.create_task(listen())
        await until(lambda: served.clients == 1)
        await drained(served)
        await act(served)
        await drained(served)
        served.close()
        await task
        return [message for message in parsed(chunks) if message[1] != "heartbeat"]

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "_TICK", 0.001)


def numbered(plant: str, count: int) -> list[tuple[str, str, Any]]:
    return [("window", plant, {"k": k}) for k in range(count)]


def test_all_messages_come_in_order_with_increasing_numbers() -> None:
    async def act(hub: Hub) -> None:
        hub.publish(numbered("p", 5))
        await asyncio.to_thread(hub.publish_soon, numbered("q", 5))

    found = listening(act)
    assert [document["k"] for _, _, document in found] == [*range(5), *range(5)]
    assert [number for number, _, _ in found] == list(range(found[0][0], found[0][0] + 10))


def test_a_client_may_ask_for_one_plant() -> None:
    async def act(hub: Hub) -> None:
        hub.publish([*numbered("p", 2), *numbered("q", 3)])

    assert len(listening(act, plant="q")) == 3


def test_whoever_comes_back_gets_what_was_missed() -> None:
    hub = Hub()

    async def first(hub: Hub) -> None:
        hub.publish(numbered("p", 4))

    early = listening(first, hub)

    async def nothing(_: Hub) -> None:
        return

    again = listening(nothing, hub, after=early[1][0])
    assert [document["k"] for _, _, document in again] == [2, 3]
    assert listening(nothing, hub, after=early[-1][0]) == []


@pytest.mark.parametrize("after", [5, 1 << 60])
def test_whoever_missed_too_much_is_told_to_read_anew(after: int) -> None:
    hub = Hub()
    hub.publish(numbered("p", 3))

    async def nothing(_: Hub) -> None:
        return

    assert [kind for _, kind, _ in listening(nothing, hub, after=after)] == ["resync"]


def test_a_slow_client_loses_messages_and_is_told_so() -> None:
    async def act(hub: Hub) -> None:
        hub.publish(numbered("p", 50))
        await drained(hub)
        hub.publish(numbered("p", 1))

    found = listening(act, Hub(messages=20))
    assert [kind for _, kind, _ in found] == ["resync", "window"]
    assert found[0][0] < found[1][0]


def test_an_idle_stream_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "_BEAT", 0.01)

    async def run() -> int:
        hub = Hub()
        hub.start()
        beats = 0
        async for chunk in hub.listen():
            beats += chunk.count(b"event: heartbeat")
            if beats > 3:
                hub.close()
        return hub.clients

    assert asyncio.run(run()) == 0


def test_no_more_clients_than_allowed() -> None:
    async def run() -> None:
        hub = Hub(clients=1)
        hub.start()
        first = hub.listen()
        await anext(first)
        with pytest.raises(Busy):
            await anext(hub.listen())
        await first.aclose()  # type: ignore[attr-defined]
        await anext(hub.listen())

    asyncio.run(run())
