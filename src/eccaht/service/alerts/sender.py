"""The tasks that send what waits in the outbox, and the settings of alerts."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from pydantic import Field, model_validator

from eccaht.base.randomness import rng_for
from eccaht.plants import Event
from eccaht.plants.data.horizon import TOLERANCE
from eccaht.service.alerts import outbox
from eccaht.service.alerts.channels import (
    Channel,
    Mail,
    MailSettings,
    NotDelivered,
    PerhapsDelivered,
    Webhook,
    WebhookSettings,
)
from eccaht.service.parts import Name, Part, Seconds
from eccaht.service.store.store import Store, now as clock

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Alerts(Part):
    """Where alarms are sent, each once, and their ends."""

    tries: int = Field(10, ge=1, le=100, description="how often a message is tried until it counts as failed")
    first: Seconds = Field(5.0, description="pause after the first try; each further one is twice as long")
    longest: Seconds = Field(900.0, description="longest pause between two tries")
    timeout: Seconds = Field(30.0, description="how long sending one message may take")
    webhooks: dict[Name, WebhookSettings] = Field(default_factory=dict, description="by name")
    mails: dict[Name, MailSettings] = Field(default_factory=dict, description="by name")

    @model_validator(mode="after")
    def _usable(self) -> Alerts:
        self.channels()
        return self

    def delay(self, tries: int, rng: np.random.Generator) -> float:
        """Seconds to wait after so many tries; shorter by up to half, so that not all come back at once."""
        return float(min(self.first * 2.0 ** (tries - 1), self.longest) * rng.uniform(0.5, 1.0))

    def channels(self) -> list[Channel]:
        made: list[Channel] = [
            *(Webhook(name, part) for name, part in self.webhooks.items()),
            *(Mail(name, part) for name, part in self.mails.items()),
        ]
        names = [channel.name for channel in made]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two alerts are called {name!r}: rename one")
        return made


class Sender:
    """Sends messages of the outbox by these channels; several senders may share a store.

    pause: seconds between two looks into the outbox.
    """

    def __init__(
        self,
        store: Store,
        channels: Iterable[Channel],
        *,
        rng: np.random.Generator,
        settings: Alerts | None = None,
        pause: float = 1.0,
        now: Callable[[], int] = clock,
    ) -> None:
        self._store, self._channels = store, {channel.name: channel for channel in channels}
        self._settings, self._rng, self._pause, self._now = settings or Alerts(), rng, pause, now
        self._lease = round((2 * self._settings.timeout + 30.0) * 1e6)
        # services that share a store may differ by some minutes; more than that is a clock that was set back
        self._longest = max(self._lease, round(self._settings.longest * 1e6)) + round(TOLERANCE * 1e6)
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
            await self._rest()

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._stopping.wait()

    async def _send_due(self, channel: Channel) -> int:
        name, write = channel.name, self._store.begin
        if not await _in_thread(self._store.read, outbox.is_waiting, name, self._now(), self._longest):
            return 0
        if await _in_thread(write, outbox.recover, name, self._now(), self._longest, idempotent=channel.idempotent):
            _log.warning("alerts by %s: a sender ended while it was sending; what it sent is doubtful", name)
        tried = 0
        while not self._stopping.is_set():
            # one at a time: each has its whole lease, and the messages of a plant stay in their order
            due = await _in_thread(write, outbox.take, name, self._now(), self._lease, longest=self._longest)
            if due is None:
                break
            await self._send(channel, due)
            tried += 1
        return tried

    async def _send(self, channel: Channel, due: outbox.Due) -> None:
        try:
            async with asyncio.timeout(self._settings.timeout):
                await channel.send(due.message)
        except NotDelivered as error:
            await self._put_off(due, str(error))
        except Exception as error:  # also what no channel should raise: it must not end the sending of others
            if not isinstance(error, PerhapsDelivered | TimeoutError):
                _log.exception("alert by %s", due.channel)
            reason = str(error) or f"no answer within {self._settings.timeout:g} s"
            if channel.idempotent:
                await self._put_off(due, reason)
            else:
                _log.warning("alert %s by %s is doubtful: %s", due.message.subject, due.channel, reason)
                await self._settle(due, "doubtful", said=reason)
        else:
            await self._settle(due, "sent", sent=self._now())

    async def _put_off(self, due: outbox.Due, reason: str) -> None:
        last = due.tries >= self._settings.tries
        status = "failed" if last else "queued"
        again = outbox.NEVER if last else self._now() + round(self._settings.delay(due.tries, self._rng) * 1e6)
        log = _log.error if last else _log.warning
        log("alert %s by %s, try %d: %s", due.message.subject, due.channel, due.tries, reason)
        await self._settle(due, status, again, said=reason)

    async def _settle(self, due: outbox.Due, status: str, when: int = outbox.NEVER, **more: Any) -> None:
        """Write down how it ended; a store that is away for less than the lease leaves no doubt."""
        until = self._now() + self._lease
        while True:
            try:
                await _in_thread(self._store.begin, outbox.settle, due, status, when, **more)
                return
            except sa.exc.SQLAlchemyError as error:
                if self._stopping.is_set() or self._now() >= until:
                    raise
                _log.warning("what became of an alert waits for the store: %s", error)
                await self._rest()


async def _in_thread(
    opened: Callable[[], AbstractContextManager[sa.Connection]], work: Callable[..., _T], *about: Any, **more: Any
) -> _T:
    """Work in a transaction, off the loop."""

    def done() -> _T:
        with opened() as connection:
            return work(connection, *about, **more)

    return await asyncio.to_thread(done)


def make_sender(alerts: Alerts, store: Store) -> Sender:
    rng = rng_for(secrets.randbits(32), "alerts")  # services that share a store shall not come back in step
    return Sender(store, alerts.channels(), rng=rng, settings=alerts)
