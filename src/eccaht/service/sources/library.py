"""The library's `Source` and feeds: any source of rows feeds a plant, and what a feed brought is a source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants.data.source import Source
from eccaht.plants.data.windows import Batch
from eccaht.service.rows import Rows
from eccaht.service.sources.feed import Backoff, Positions, Sink, Target, deliver, keep_running
from eccaht.service.sources.health import Health
from eccaht.service.sources.parsing import MOST_ROWS
from eccaht.service.sources.threads import OneThread

Note = Callable[[str], object]
_SAVE_EVERY = 5.0  # seconds between two notes of the place
_OPEN = 1.0  # seconds without an error after which a source without rows counts as open


class SourceFeed:
    """Feeds a plant with any source of the library, such as a file that grows.

    opened: makes the source anew for every try; its argument takes notes for the user. A source that waits for rows
    must have `end`, which makes it stop. overlap: after a restart,
    rows so many seconds older than the last one that was submitted are left out; those in between are known by their
    times.
    """

    def __init__(
        self,
        name: str,
        opened: Callable[[Note], Source],
        target: Target,
        sink: Sink,
        *,
        where: str,
        overlap: float = 300.0,
    ) -> None:
        if not isinstance(sink, Positions):
            raise ValueError(f"source {name!r}: nothing keeps its position between two runs")
        self.name, self._opened, self._target, self._sink, self._positions = name, opened, target, sink, sink
        self._overlap = np.timedelta64(round(overlap * 1e6), "us")
        self._saved = -np.inf
        self._place: np.datetime64 | None = None  # the latest time that was submitted
        self.health = Health(sink, name, [target.name], where)
        self.backoff = Backoff()

    async def run(self) -> None:
        await keep_running(self._connect, self.health, self.backoff)

    async def _connect(self) -> None:
        self._place, again = await self._kept(), True
        loop, thread = asyncio.get_running_loop(), OneThread(f"source-{self.name}")
        source = self._opened(lambda text: loop.call_soon_threadsafe(self.health.count, "notes", 1, text))
        batches = source.batches()
        pending = asyncio.ensure_future(thread.call(next, batches, None))
        try:
            while True:
                done, _ = await asyncio.wait([pending], timeout=_OPEN)
                if not done:
                    self.health.running()
                    continue
                batch = pending.result()
                if batch is None:
                    raise ConnectionError("the source ended")
                _check_clock(source.clock, self._target.clock)
                self.health.running()
                again = await self._take(Batch(*batch), source.names, again)
                pending = asyncio.ensure_future(thread.call(next, batches, None))
        finally:
            getattr(source, "end", lambda: None)()
            await thread.finish(getattr(batches, "close", lambda: None))
            await asyncio.gather(pending, return_exceptions=True)

    async def _take(self, batch: Batch, names: Sequence[str], again: bool) -> bool:
        """Submit a batch; whether only rows came so far that were submitted before a restart."""
        times, values = batch.times, batch.readings
        if again and self._place is not None:
            new = times >= self._place - self._overlap
            again = not (times > self._place).any()
            times, values = times[new], values[new]
        for first in range(0, len(times), MOST_ROWS):
            part = slice(first, first + MOST_ROWS)
            await deliver(self._sink, self._target, Rows(times[part], tuple(names), values[part]), self.health)
        if len(times):
            latest = times.max().astype("datetime64[us]")
            self._place = latest if self._place is None else max(self._place, latest)
            await self._keep()
        return again

    async def _kept(self) -> np.datetime64 | None:
        document = await self._positions.position(self._target.name, self.name)
        return None if document is None else np.datetime64(int(document["time"]), "us")

    async def _keep(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._place is not None and now - self._saved >= _SAVE_EVERY:
            self._saved = now
            document = {"time": int(self._place.astype(np.int64))}
            await self._positions.set_position(self._target.name, self.name, document)


class Excerpt:
    """What a feed brought, as a source of the library: `eccaht.checks.check_source` tries it, `calibrate` reads it.

    Rows of one time are one row, in which the first value of a sensor counts.
    """

    def __init__(self, rows: Iterable[Rows], clock: Clock) -> None:
        kept = list(rows)
        self.clock = clock
        self.names = tuple(dict.fromkeys(name for part in kept for name in part.names))
        every = [part.times.astype("datetime64[us]") for part in kept]
        self.times = np.unique(np.concatenate([np.zeros(0, dtype="datetime64[us]"), *every]))
        self.values = np.full((len(self.times), len(self.names)), np.nan)
        for part, times in zip(kept, every, strict=True):
            for row, time in enumerate(times):
                place = self.values[np.searchsorted(self.times, time)]
                for value, name in zip(part.values[row], part.names, strict=True):
                    k = self.names.index(name)
                    place[k] = value if np.isnan(place[k]) else place[k]

    def batches(self) -> Iterator[Batch]:
        yield Batch(self.times, self.values)


def _check_clock(found: Clock, expected: Clock) -> None:
    if (found.zone is None) != (expected.zone is None):
        has, lacks = ("source", "model") if expected.zone is None else ("model", "source")
        raise ValueError(f"the times of the {has} have a zone, those of the {lacks} have none: they cannot be compared")
