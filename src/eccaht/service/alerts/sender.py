"""The task that sends what waits in the outbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from eccaht.plants.data.horizon import TOLERANCE
from eccaht.plants.watch.events import Event
from eccaht.service.alerts import outbox
from eccaht.service.alerts.channel import Channel, NotDelivered, PerhapsDelivered
from eccaht.service.store.store import Store
from eccaht.service.store.store import now as clock

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Retries:
    """How often a message is tried, and how long it waits: twice as long each time, up to `longest` seconds."""

    tries: int = 10
    first: float = 5.0
    longest: float = 900.0

    def delay(self, tries: int, rng: np.random.Generator) -> float:
        """Seconds to wait after so many tries; shorter by up to half, so that not all come back at once."""
        return float(min(self.first * 2.0 ** (tries - 1), self.longest) * rng.uniform(0.5, 1.0))


class Sender:
    """Sends messages of the outbox by these channels; several senders may share a store.

    timeout: seconds that one message may take. pause: seconds between two looks into the outbox.
    """

    def __init__(
        self,
        store: Store,
        channels: Iterable[Channel],
        *,
        rng: np.random.Generator,
        retries: Retries | None = None,
        timeout: float = 30.0,
        pause: float = 1.0,
        now: Callable[[], int] = clock,
    ) -> None:
        self._store, self._channels = store, {channel.name: channel for channel in channels}
        self._rng, self._retries, self._timeout, self._pause, self._now = rng, retries or Retries(), timeout, pause, now
        self._lease = round((2 * timeout + 30.0) * 1e6)
        # services that share a store may differ by some minutes; more than that is a clock that was set back
        self._longest = max(self._lease, round(self._retries.longest * 1e6)) + round(TOLERANCE * 1e6)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    def rows(self, plant: str, event: Event) -> list[dict[str, Any]]:
        return outbox.rows_for(plant, event.document(), self._channels, self._now())

    def start(self) -> None:
        """Begin to send, in tasks of the running loop; a slow channel does not hold up the others."""
        self._stopping.clear()
        self._tasks = [asyncio.create_task(self._run(channel)) for channel in self._channels.values()]

    async def stop(self) -> None:
        """Stop, once the messages that are being sent have left or have taken their time."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)
        self._tasks = []

    async def once(self) -> int:
        """Send all that is due now; return how many messages were tried."""
        return sum([await self._send_due(channel) for channel in self._channels.values()])

    async def _run(self, channel: Channel) -> None:
        while not self._stopping.is_set():
            try:
                await self._send_due(channel)
            except sa.exc.SQLAlchemyError as error:  # the database is away: the rows wait in it
                _log.warning("alerts by %s wait for the store: %s", channel.name, error)
            await self._rest(self._pause)

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _send_due(self, channel: Channel) -> int:
        if not await self._reading(lambda c: outbox.is_waiting(c, channel.name, self._now(), self._longest)):
            return 0
        if await self._writing(lambda c: outbox.recover(c, channel, self._now(), self._longest)):
            _log.warning("alerts by %s: a sender ended while it was sending; what it sent is doubtful", channel.name)
        tried = 0
        # one at a time: each has its whole lease, and the messages of a plant stay in their order
        while not self._stopping.is_set() and (due := await self._writing(lambda c: self._take(c, channel))):
            await self._send(channel, due[0])
            tried += 1
        return tried

    def _take(self, connection: sa.Connection, channel: Channel) -> list[outbox.Due]:
        return outbox.take(connection, channel.name, self._now(), self._lease, most=1, longest=self._longest)

    async def _send(self, channel: Channel, due: outbox.Due) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await channel.send(due.message)
        except NotDelivered as error:
            await self._put_off(due, str(error))
        except Exception as error:  # also what no channel should raise: it must not end the sending of others
            if not isinstance(error, PerhapsDelivered | TimeoutError):
                _log.exception("alert by %s", due.channel)
            reason = str(error) or f"no answer within {self._timeout:g} s"
            if channel.idempotent:
                await self._put_off(due, reason)
            else:
                _log.warning("alert %s by %s is doubtful: %s", due.message.subject, due.channel, reason)
                await self._settled(lambda connection: outbox.perhaps_delivered(connection, due, reason))
        else:
            await self._settled(lambda connection: outbox.sent(connection, due, self._now()))

    async def _put_off(self, due: outbox.Due, reason: str) -> None:
        last = due.tries >= self._retries.tries
        again = None if last else self._now() + round(self._retries.delay(due.tries, self._rng) * 1e6)
        log = _log.error if last else _log.warning
        log("alert %s by %s, try %d: %s", due.message.subject, due.channel, due.tries, reason)
        await self._settled(lambda connection: outbox.not_delivered(connection, due, again, reason))

    async def _settled(self, work: Callable[[sa.Connection], bool]) -> None:
        """Write down how it ended; a store that is away for less than the lease leaves no doubt."""
        until = self._now() + self._lease
        while True:
            try:
                await self._writing(work)
                return
            except sa.exc.SQLAlchemyError as error:
                if self._stopping.is_set() or self._now() >= until:
                    raise
                _log.warning("what became of an alert waits for the store: %s", error)
                await self._rest(self._pause)

    async def _reading(self, work: Callable[[sa.Connection], _T]) -> _T:
        def done() -> _T:
            with self._store.read() as connection:
                return work(connection)

        return await asyncio.to_thread(done)

    async def _writing(self, work: Callable[[sa.Connection], _T]) -> _T:
        def done() -> _T:
            with self._store.begin() as connection:
                return work(connection)

        return await asyncio.to_thread(done)
