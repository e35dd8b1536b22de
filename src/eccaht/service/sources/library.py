"""Any source of the library, such as a file that grows, feeds a plant."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants import Batch, Source
from eccaht.plants.data.growing import GrowingFile
from eccaht.plants.intake import Rows
from eccaht.service.sources.feed import Feed, OneThread, Sink, Target, deliver
from eccaht.service.sources.settings import FileSettings

Note = Callable[[str], object]
_SAVE_EVERY = 5.0  # seconds between two notes of the place
_OPEN = 1.0  # seconds without an error after which a source without rows counts as open


class SourceFeed(Feed):
    """Feeds a plant with any source of the library, such as a file that grows.

    opened: makes the source anew for every try; its argument takes notes for the user. A source that waits for rows
    must have `end`, which makes it stop. overlap: after a restart, rows so many seconds older than the last one that
    was submitted are left out; those in between are known by their times. file: must be there first, which is looked
    for every `poll` seconds.
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
        file: Path | None = None,
        poll: float = 1.0,
    ) -> None:
        super().__init__(name, sink, [target.name], where)
        self._file, self._poll = file, poll
        self._opened, self._target = opened, target
        self._overlap = np.timedelta64(round(overlap * 1e6), "us")
        self._saved = -np.inf
        self._place: np.datetime64 | None = None  # the latest time that was submitted

    async def connect(self) -> None:
        while self._file is not None and not await asyncio.to_thread(self._file.exists):
            self.health.waiting(f"no file at {self._file} yet")
            await asyncio.sleep(self._poll)
        document, again = await self._sink.position(self._target.name, self.name), True
        self._place = None if document is None else np.datetime64(int(document["time"]), "us")
        loop, thread = asyncio.get_running_loop(), OneThread(f"source-{self.name}")
        source = self._opened(lambda text: loop.call_soon_threadsafe(self.health.count, "notes", text))
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
        await deliver(self._sink, self._target, Rows(times, tuple(names), values), self.health)
        if len(times):
            latest = times.max().astype("datetime64[us]")
            self._place = latest if self._place is None else max(self._place, latest)
            now = asyncio.get_running_loop().time()
            if now - self._saved >= _SAVE_EVERY:
                self._saved = now
                place = {"time": int(self._place.astype(np.int64))}
                await self._sink.set_position(self._target.name, self.name, place)
        return again


def _check_clock(found: Clock, expected: Clock) -> None:
    if (found.zone is None) != (expected.zone is None):
        has, lacks = ("source", "model") if expected.zone is None else ("model", "source")
        raise ValueError(f"the times of the {has} have a zone, those of the {lacks} have none: they cannot be compared")


def file_feed(name: str, settings: FileSettings, target: Target, sink: Sink) -> SourceFeed:
    zone = settings.timezone or target.clock.zone
    expected = replace(target.expected, zone=zone, decimal_comma=settings.decimal_comma)

    def opened(note: Note) -> GrowingFile:
        return GrowingFile(settings.path, expected, missing=settings.missing, poll=settings.poll, note=note)

    return SourceFeed(
        name,
        opened,
        target,
        sink,
        where=str(settings.path),
        overlap=settings.overlap,
        file=settings.path,
        poll=settings.poll,
    )
