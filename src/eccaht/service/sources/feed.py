"""Feeds bring rows of a source into the service: what they talk to, what they report of themselves, and back-off.

A feed runs until it is cancelled. It connects again for ever, acknowledges rows only once `submit` has returned, and
holds its source back while the service is busy; what waits in memory is bounded.
"""

from __future__ import annotations

import asyncio
import logging
import math
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any, NoReturn, Protocol, runtime_checkable

from eccaht.base.clock import Clock
from eccaht.plants.data.source import Expected
from eccaht.plants.model.model import Model
from eccaht.plants.model.prepare import Notation
from eccaht.service.rows import Busy, Rows, SourceState, Taken, UnknownPlant
from eccaht.service.sources.health import Health

log = logging.getLogger(__name__)
Sleep = Callable[[float], Awaitable[object]]
_LONGEST_PAUSE = 60.0  # seconds between two tries
_GOOD = 60.0  # after so many seconds without an error the back-off begins anew
_LONGEST_BUSY = 5.0


class Refused(Exception):
    """Rows that the service does not take, and that must not be acknowledged."""


class Sink(Protocol):
    """What feeds need of the engine; most_rows: that it takes at once."""

    @property
    def most_rows(self) -> int:
        """How many rows may be submitted at once."""

    async def submit(self, plant: str, rows: Rows, *, source: str) -> Taken:
        """Take rows; return once all that they change is committed."""

    def source_state(self, plant: str, source: str, state: SourceState) -> None:
        """Take what a source says of itself."""


@runtime_checkable
class Positions(Protocol):
    """Where the places of sources that can be read again are kept: what was submitted before needs no reading."""

    async def position(self, plant: str, source: str) -> dict[str, Any] | None:
        """The document that was kept last."""

    async def set_position(self, plant: str, source: str, document: dict[str, Any]) -> None:
        """Keep a document."""


@runtime_checkable
class Shared(Protocol):
    """A sink whose plants other services watch as well, from the same store: one at a time watches a plant."""

    async def take_over(self, plant: str) -> None:
        """This service watches the plant from now on: go on from what the store holds."""

    async def hand_over(self, plant: str) -> None:
        """Another service may watch the plant from now on: its rows were all submitted."""


class Feed(Protocol):
    """Brings the rows of one source into the service until it is cancelled."""

    @property
    def name(self) -> str:
        """The source, as settings and page call it."""

    async def run(self) -> None:
        """Run until cancelled."""


@dataclass(frozen=True)
class Target:
    """The plant that a feed is for: its name, the clock of its model, and what its model expects of a file.

    seconds: the length of a window.
    """

    name: str
    clock: Clock
    expected: Expected
    seconds: float

    @classmethod
    def of(cls, name: str, model: Model) -> Target:
        return cls(name, model.clock, Notation().expected(model), model.seconds)

    @property
    def sensors(self) -> tuple[str, ...]:
        return self.expected.names


@dataclass
class Backoff:
    """Pauses between tries: doubled each time, up to a minute, each between half and all of it by chance."""

    rng: Random = field(default_factory=Random)  # of no seed: services must not try in step
    first: float = 1.0
    longest: float = _LONGEST_PAUSE
    _next: float = field(default=0.0, init=False)

    def pause(self) -> float:
        """Seconds until the next try."""
        self._next = min(max(2.0 * self._next, self.first), self.longest)
        return self._next * self.rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._next = 0.0


async def keep_running(
    connect: Callable[[], Awaitable[None]],
    health: Health,
    backoff: Backoff,
    *,
    sleep: Sleep = asyncio.sleep,
    now: Callable[[], float] = monotonic,
) -> NoReturn:
    """Connect and read for ever: `connect` reads until something fails, after a pause it is called again.

    It says `health.running()` once it is connected; the back-off begins anew if that lasted for a minute.
    """
    try:
        while True:
            health.connecting()
            began = now()
            try:
                await connect()
                why = "the connection was closed"
            except Exception as error:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise asyncio.CancelledError from error  # closing failed while the feed was cancelled
                why = one_line(error)
                log.debug("source %s: %s", health.source, traceback.format_exc())  # a record shall keep no socket alive
            if health.connected and now() - began >= _GOOD:
                backoff.reset()
            pause = backoff.pause()
            log.warning("source %s: %s; next try in %.1f s", health.source, why, pause)
            health.broken(f"{why}; next try within {math.ceil(pause)} s")
            await sleep(pause)
    finally:
        health.end()


async def deliver(sink: Sink, target: Target, rows: Rows, health: Health, *, sleep: Sleep = asyncio.sleep) -> None:
    """Submit rows, as many at once as the service takes, for as long as it is busy or cannot store them.

    What the service refuses (a ValueError, or a plant that is not there) is an error of the feed: nothing of it is
    acknowledged, so that it stays with its source, and the feed tries again after a pause.
    """
    for first in range(0, len(rows.times), sink.most_rows):
        part = slice(first, first + sink.most_rows)
        await _submit(sink, target, Rows(rows.times[part], rows.names, rows.values[part]), health, sleep)


async def _submit(sink: Sink, target: Target, rows: Rows, health: Health, sleep: Sleep) -> None:
    tries = 0
    while True:
        try:
            taken = await sink.submit(target.name, rows, source=health.source)
        except (ValueError, UnknownPlant) as error:
            raise Refused(f"the service refuses rows of {target.name}: {one_line(error)}") from error
        except Exception as error:
            tries += 1
            busy = isinstance(error, Busy) and not error.broken
            after = error.after if isinstance(error, Busy) else 2.0 ** min(tries - 1, 6) / 10.0
            why = "the service is busy: the source is held back" if busy else one_line(error)
            if tries == 1:
                log.warning("source %s of plant %s: %s", health.source, target.name, why)
            health.waiting(why)
            await sleep(min(after, _LONGEST_BUSY))
        else:
            health.took(target, rows.times, taken)
            return


def one_line(error: BaseException) -> str:
    """An error as a line for the page, with its kind where it says nothing else.

    >>> one_line(OSError("no\\n route")), one_line(TimeoutError())
    ('no route', 'TimeoutError')
    """
    return " ".join(str(error).split())[:200] or type(error).__name__
