"""Server-sent events: everything in order, to every client, and a notice to those that missed something."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from eccaht.service.api import plants as api_plants
from eccaht.service.runtime import views
from eccaht.service.runtime.views import Hub
from tests.service.guarded import bearer, make, revoke, served
from tests.service.service import running
from tests.service.source_tools import until


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
    """Wait until all clients have what was published."""
    await until(lambda: not any(client.awake.is_set() for client in hub._clients))


def listening(act: Callable[[Hub], Awaitable[None]], hub: Hub | None = None, **options: Any) -> list[Any]:
    """What a client gets while something happens; heartbeats left out."""

    async def run() -> list[Any]:
        served = hub or Hub()
        served.start()
        chunks: list[bytes] = []

        async def listen() -> None:
            with served.listen(**options) as stream:
                async for chunk in stream:
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
    monkeypatch.setattr(views, "_TICK", 0.001)


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
def test_a_client_that_missed_too_much_is_asked_to_read_anew(after: int) -> None:
    hub = Hub()
    hub.publish(numbered("p", 3))

    async def nothing(_: Hub) -> None:
        return

    assert [kind for _, kind, _ in listening(nothing, hub, after=after)] == ["resync"]


def test_a_slow_client_loses_messages_and_is_notified() -> None:
    async def act(hub: Hub) -> None:
        hub.publish(numbered("p", 50))
        await drained(hub)
        hub.publish(numbered("p", 1))

    found = listening(act, Hub(messages=20))
    assert [kind for _, kind, _ in found] == ["resync", "window"]
    assert found[0][0] < found[1][0]


def test_an_idle_stream_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_BEAT", 0.01)

    async def run() -> int:
        hub = Hub()
        hub.start()
        beats = 0
        with hub.listen() as stream:
            async for chunk in stream:
                beats += chunk.count(b"event: heartbeat")
                if beats > 3:
                    hub.close()
        return hub.clients

    assert asyncio.run(run()) == 0


def test_beyond_the_most_clients_the_answer_is_an_error_and_no_stream(tmp_path: Path) -> None:
    """On a real socket, several at once: each has a whole stream or a whole error."""
    with running("sqlite", tmp_path, limits={"clients": 2}) as service, served(service.app) as port:
        asked = [httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) for _ in range(6)]
        with ExitStack() as stack:
            answers = []
            for client in asked:
                stack.callback(client.close)
                request = client.build_request("GET", "/api/stream", headers=service.headers["read"])
                answers.append(client.send(request, stream=True))
            codes = [answer.status_code for answer in answers]
            assert sorted(codes) == [200] * 2 + [429] * 4
            for answer in answers:
                if answer.status_code == 429:
                    assert answer.headers["retry-after"] == "10"
                    assert json.loads(answer.read())["detail"] == "2 pages are open already: close one"
                else:
                    assert b"event: heartbeat" in next(answer.iter_raw())


def test_an_open_stream_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_BEAT", 0.01)
    monkeypatch.setattr(api_plants, "CHECKED", 0.05)
    with running("sqlite", tmp_path) as service, served(service.app) as port:
        headers = bearer(make(service.app.state.store, "short", "read"))
        with httpx.stream("GET", f"http://127.0.0.1:{port}/api/stream", headers=headers, timeout=60.0) as answer:
            beats = answer.iter_raw()
            assert b"event: heartbeat" in next(beats)
            revoke(service.app.state.store, "short")
            assert sum(1 for _ in beats) < 10_000  # it ends
