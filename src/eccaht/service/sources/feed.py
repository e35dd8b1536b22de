"""A feed brings the rows of one source into the service.

It runs until it is cancelled and reconnects for ever, with growing pauses. It acknowledges rows only once `submit` has
returned, and holds its source back while the service is busy, so that memory stays bounded. A kind of source is its
settings (`settings.py`) and a `Feed` with `connect`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from random import Random
from time import monotonic
from typing import Any, NoReturn, Protocol, TypeVar

from eccaht.base.clock import Clock
from eccaht.plants import Expected, Model, Notation
from eccaht.plants.intake import Rows
from eccaht.service.hiding import scrubbed
from eccaht.service.rows import Busy, Receipt, SourceState, UnknownPlant
from eccaht.service.sources.health import Health
from eccaht.service.sources.parsing import MOST_ROWS, SensorReading, deliveries
from eccaht.service.sources.settings import AnySettings, FileSettings, KafkaSettings

T = TypeVar("T")
log = logging.getLogger(__name__)
Sleep = Callable[[float], Awaitable[object]]
Plants = Callable[[str], "Target"]  # by name; raises UnknownPlant
_GOOD = 60.0  # after so many seconds without an error the back-off begins anew
_LONGEST_BUSY = 5.0


class Refused(Exception):
    """Rows that the service does not take, and that must not be acknowledged."""


class Sink(Protocol):
    """What feeds need of the engine; most_rows: that it takes at once."""

    @property
    def most_rows(self) -> int:
        """How many rows may be submitted at once."""

    async def submit(self, plant: str, rows: Rows, *, source: str) -> Receipt:
        """Take rows; return once all that they change is committed."""

    def source_state(self, plant: str, source: str, state: SourceState) -> None:
        """Take what a source says of itself."""

    async def position(self, plant: str, source: str) -> dict[str, Any] | None:
        """Where a source that can be read again goes on: the document that it kept last."""

    async def set_position(self, plant: str, source: str, document: dict[str, Any]) -> None:
        """Keep a document: what was submitted before needs no reading."""

    async def take_over(self, plant: str) -> None:
        """Of several services with one store this one watches the plant from now on: go on from what the store has."""

    async def hand_over(self, plant: str) -> None:
        """Another service may watch the plant from now on: its rows were all submitted."""


@dataclass(frozen=True)
class Target:
    """The plant that a feed is for: its name, the clock of its model, what its model expects of a file, its columns."""

    name: str
    clock: Clock
    expected: Expected
    known: frozenset[str] | None = None

    @classmethod
    def of(cls, name: str, model: Model) -> Target:
        return cls(name, model.clock, Notation().expected(model), frozenset([*model.names, *model.left_out]))


@dataclass
class Backoff:
    """Pauses between tries: doubled each time, up to a minute, each between half and all of it by chance."""

    rng: Random = field(default_factory=Random)  # unseeded, so that several services do not retry at the same moment
    first: float = 1.0
    longest: float = 60.0
    _next: float = field(default=0.0, init=False)

    def pause(self) -> float:
        """Seconds until the next try."""
        self._next = min(max(2.0 * self._next, self.first), self.longest)
        return self._next * self.rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._next = 0.0


class Feed:
    """Brings the rows of one source into the service until it is cancelled; a kind of source has `connect`.

    name: the source, as settings and page call it. where: what is read, for the page. secrets: what no error may show.
    """

    def __init__(self, name: str, sink: Sink, plants: Iterable[str], where: str, secrets: Iterable[str] = ()) -> None:
        self.name, self._sink, self._secrets = name, sink, tuple(secrets)
        self.health = Health(sink, name, plants, where)
        self.backoff = Backoff()

    async def run(self) -> None:
        await keep_running(self.connect, self.health, self.backoff, secrets=self._secrets)

    async def connect(self) -> None:
        """Connect, call `health.running()`, and submit what comes until something fails, which is raised."""
        raise NotImplementedError

    async def submit(self, target: Target, readings: Iterable[SensorReading]) -> None:
        """Submit readings of a plant; once this returns, they are stored and may be acknowledged."""
        for rows in deliveries(readings):
            await deliver(self._sink, target, rows, self.health)


def make_feed(name: str, settings: AnySettings, plant: Target | Plants, sink: Sink) -> Feed:
    """The feed of a source; what is wrong with its settings is reported before anything starts.

    plant: whose rows they are. For Kafka also a function that knows plants by name (UnknownPlant if it does not): one
    consumer for all plants of the service, which shares them with the others of its group.
    """
    if not isinstance(plant, Target) and not isinstance(settings, KafkaSettings):
        raise ValueError(f"source {name!r}: only Kafka serves several plants: put it under a plant")
    if not isinstance(settings, FileSettings):  # a file may come later, and its rows may be counted
        if isinstance(plant, Target) and plant.clock.row_interval is not None:
            why = f"the model of plant {plant.name!r} counts rows and knows no times"
            raise ValueError(f"source {name!r}: {why}: calibrate one on a history with times")
        for place, file in settings:
            if isinstance(file, Path) and not file.is_file():
                raise ValueError(f"source {name!r}: setting {place}: there is no such file")
    made: Feed = resolve_name(f"{__package__}.{settings.feed}")(name, settings, plant, sink)
    return made


async def keep_running(
    connect: Callable[[], Awaitable[None]],
    health: Health,
    backoff: Backoff,
    *,
    secrets: Collection[str] = (),
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
                    raise asyncio.CancelledError from None  # closing failed while the feed was cancelled
                why = _reported(error, health.source, secrets)
            if health.connected and now() - began >= _GOOD:
                backoff.reset()
            pause = backoff.pause()
            log.warning("source %s: %s; next try in %.1f s", health.source, why, pause)
            health.broken(f"{why}; next try within {math.ceil(pause)} s")
            await sleep(pause)
    finally:
        health.end()


def _reported(error: Exception, source: str, secrets: Collection[str]) -> str:
    """An error in one line. Drivers may repeat what they were given: then nothing but that line, scrubbed, goes out."""
    whole = "".join(traceback.format_exception(error))
    if isinstance(error, Refused) or scrubbed(whole, secrets) == whole:  # Refused: of the service itself
        log.debug("source %s: %s", source, whole)  # as text: a record shall keep no socket alive
        return one_line(error)
    return one_line(ConnectionError(scrubbed(str(error), secrets) or type(error).__name__))


async def deliver(sink: Sink, target: Target, rows: Rows, health: Health, *, sleep: Sleep = asyncio.sleep) -> None:
    """Submit rows, as many at once as the service takes, for as long as it is busy or cannot store them.

    What the service refuses (a ValueError, or a plant that is not there) is an error of the feed: nothing of it is
    acknowledged, so that it stays with its source, and the feed tries again after a pause.
    """
    most = min(MOST_ROWS, sink.most_rows)
    for first in range(0, len(rows.times), most):
        part = slice(first, first + most)
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
            health.took(taken)
            return


def one_line(error: BaseException) -> str:
    """An error as a line for the page, with its kind where it says nothing else.

    >>> one_line(OSError("no\\n route")), one_line(TimeoutError())
    ('no route', 'TimeoutError')
    """
    return " ".join(str(error).split())[:200] or type(error).__name__


class OneThread:
    """A thread for the blocking calls of one connection, which are never made at once."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def finish(self, function: Callable[[], object]) -> None:
        """A last call, after the present one, which is waited for even if the caller is cancelled."""
        last = asyncio.get_running_loop().run_in_executor(self._pool, function)
        self._pool.shutdown(wait=False)
        await asyncio.shield(last)
