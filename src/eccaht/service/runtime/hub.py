"""Changes, sent to every client that listens: one numbered message after the other, with bounded memory.

A client that reads too slowly loses what waits for it and is asked to read everything anew (`resync`); so is one that
comes back with the number of a message that is no longer kept.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

from eccaht.service.rows import Busy

_KEPT = 4000  # messages for clients that come back
_TICK = 0.25  # seconds between what one client is sent
_BEAT = 10.0  # seconds without a message until a heartbeat


class StreamMessage(NamedTuple):
    """A message; content: as the stream has it."""

    number: int
    plant: str
    content: bytes


class Hub:
    """Takes messages and hands them to clients; all of it on the loop, but `publish_soon`."""

    def __init__(self, clients: int = 500, messages: int = 2000) -> None:
        self._most_clients, self._most = clients, messages
        self._number = time.time_ns() // 1000  # larger than any of an earlier program
        self._kept: deque[StreamMessage] = deque(maxlen=_KEPT)
        self._clients: set[_Client] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.dropped = 0
        self._closed = False

    def start(self) -> None:
        """From now on messages may come from other threads."""
        self._loop = asyncio.get_running_loop()
        self._closed = False

    @property
    def clients(self) -> int:
        return len(self._clients)

    def publish_soon(self, messages: Iterable[tuple[str, str, Any]]) -> None:
        """The same from another thread."""
        if (found := list(messages)) and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.publish, found)

    def publish(self, messages: Iterable[tuple[str, str, Any]]) -> None:
        """Send messages: kind, plant and a document each."""
        new = []
        for kind, plant, document in messages:
            self._number += 1
            text = json.dumps(document, separators=(",", ":"), allow_nan=False)
            new.append(
                StreamMessage(self._number, plant, f"id: {self._number}\nevent: {kind}\ndata: {text}\n\n".encode())
            )
        self._kept.extend(new)
        for client in self._clients:
            client.put(new)

    def close(self) -> None:
        self._closed = True
        for client in self._clients:
            client.awake.set()

    @contextmanager
    def listen(self, plant: str | None = None, after: int | None = None) -> Iterator[AsyncIterator[bytes]]:
        """The stream of one client, which has its place for the length of a `with`; refused if there is none left.

        plant: of this one only; after: the last message that it had.
        """
        if len(self._clients) >= self._most_clients:
            raise Busy(f"{self._most_clients} pages are open already: close one", 10.0)
        client = _Client(plant, self._most)
        if after is not None:
            self._catch_up(client, after)
        self._clients.add(client)
        try:
            yield self._stream(client)
        finally:
            self._clients.discard(client)

    async def _stream(self, client: _Client) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n" + _beat()
        while not self._closed:
            try:
                await asyncio.wait_for(client.awake.wait(), _BEAT)
            except TimeoutError:
                yield _beat()
                continue
            if chunk := self._chunk(client):
                yield chunk
            await asyncio.sleep(_TICK)

    def _catch_up(self, client: _Client, after: int) -> None:
        if after > self._number or (after < self._number and (not self._kept or self._kept[0].number > after + 1)):
            client.lost = True
            client.awake.set()
            return
        client.put(list(islice(self._kept, max(len(self._kept) - (self._number - after), 0), None)))

    def _chunk(self, client: _Client) -> bytes:
        parts, lost = client.take()
        if lost:
            self.dropped += 1
            return f"id: {self._number}\nevent: resync\ndata: {{}}\n\n".encode()
        return b"".join(parts)


class _Client:
    def __init__(self, plant: str | None, most: int) -> None:
        self.plant, self.most = plant, most
        self.waiting: list[bytes] = []
        self.lost = False
        self.awake = asyncio.Event()

    def put(self, messages: list[StreamMessage]) -> None:
        mine = [each.content for each in messages if self.plant in (None, each.plant) or not each.plant]
        if not mine:
            return
        self.waiting += mine
        if len(self.waiting) > self.most:
            self.waiting, self.lost = [], True
        self.awake.set()

    def take(self) -> tuple[list[bytes], bool]:
        waiting, lost = self.waiting, self.lost
        self.waiting, self.lost = [], False
        self.awake.clear()
        return waiting, lost


def _beat() -> bytes:
    return f"event: heartbeat\ndata: {int(time.time())}\n\n".encode()
