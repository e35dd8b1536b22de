"""The windows that a watch takes: all of a recording, or those of a file as it grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from typing import Any

import numpy as np

from eccaht.base.clock import Clock
from eccaht.cli.output import note
from eccaht.plants.data.source import Missing
from eccaht.plants.data.tail import Note
from eccaht.plants.data.windows import Sample, Windows
from eccaht.plants.incident.comparison import compare
from eccaht.plants.model.constants import Moved, moved_constants
from eccaht.plants.model.model import Model
from eccaht.plants.model.prepare import Follower, Notation, followed


class RecordedWindows:
    """The windows of complete files after the start `after`; the last one, which may lack rows, only if `whole`."""

    broken = False

    def __init__(
        self, model: Model, data: list[Path], after: np.datetime64 | None, *, whole: bool, **reading: Any
    ) -> None:
        source = reading["notation"].recorded(model, data)
        self._windows: Windows = model.prepare(source, bad="skip", **reading)
        self._after, self._whole, self._ended = after, whole, Flag()
        self.clock: Clock = self._windows.clock
        self.decimals = self._windows.decimals
        self.notes = (*self._windows.notes, *compare(model, self._windows)[1])
        self.moved = moved_constants(model, source, notation=reading["notation"])
        self.end = self._ended.set

    def __iter__(self) -> Iterator[tuple[Sample, int]]:
        """Each window, and how many rows came too late, which is none in a recording."""
        starts = self._windows.starts
        first = 0 if self._after is None else int(np.searchsorted(starts, self._after, side="right"))
        last = len(starts) if self._whole else len(starts) - 1
        for k, sample in enumerate(self._windows.samples()):
            if self._ended.is_set():
                return
            if first <= k < last:
                yield sample, 0


class Growing:
    """The complete windows after the start `after` of a CSV file that grows, until `end` or a time without rows.

    The last window, which more rows may follow, is left to the next program. broken: whether an error ended it.
    decimals, moved: only known of recordings.
    """

    decimals: dict[str, int | None] | None = None
    moved: list[Moved] = []  # noqa: RUF012

    def __init__(
        self,
        model: Model,
        data: list[Path],
        after: np.datetime64 | None,
        *,
        poll: float,
        timeout: float | None,
        missing: Missing,
        notation: Notation,
        say: Note = note,
    ) -> None:
        feed = followed(model, data, missing=missing, notation=notation, poll=poll, timeout=timeout, note=say)
        assert feed.follower is not None
        self._follower: Follower = feed.follower
        self._model, self._after = model, after
        self._known = 0 if after is None else None  # late rows; those of windows that were counted are known already
        self.notes, self.broken, self._ended = feed.notes, False, False

    @property
    def clock(self) -> Clock:
        """What the times mean, known from the first window on."""
        return self._follower.clock

    def end(self) -> None:
        """End soon; safe to call from a signal handler."""
        self._ended = True
        self._follower.end()

    def __iter__(self) -> Iterator[tuple[Sample, int]]:
        """Each window, and how many rows since the one before came too late for theirs."""
        file = self._follower.file
        windows = iter(self._follower)
        while True:
            try:
                sample = next(windows, None)
            except ValueError:
                if self._over and not file.rows:  # ended before anything was written
                    return
                raise
            if self._over:
                return
            if sample is None:
                self.broken = True
                return
            if self._is_new(sample):
                yield self._with_late(sample)

    def look(self, *, held: bool = True) -> tuple[bool, list[tuple[Sample, int]]]:
        """Whether the file has new lines, and the windows they complete as iterating gives them, without waiting."""
        new, samples = self._follower.look(held=held)
        return new, [self._with_late(sample) for sample in samples if self._is_new(sample)]

    def close(self) -> None:
        self._follower.file.close()

    @property
    def _over(self) -> bool:
        return self._ended or self._follower.file.timed_out

    def _is_new(self, sample: Sample) -> bool:
        return self._after is None or bool(sample.start > self._after)

    def _with_late(self, sample: Sample) -> tuple[Sample, int]:
        late, known = self._follower.file.faults.late, self._known
        self._known = late
        return self._of_all(sample), 0 if known is None else late - known

    def _of_all(self, sample: Sample) -> Sample:
        """The window of all sensors of the model, also of those that the file does not have."""
        names = self._follower.file.names
        if names == self._model.names:
            return sample
        places, size = self._model.places(names), len(self._model.names)
        assert sample.rows is not None
        assert sample.flat is not None
        values, rows, flat = np.full(size, np.nan), np.zeros(size), np.zeros(size, dtype=bool)
        values[places], rows[places], flat[places] = sample.values, sample.rows, sample.flat
        return Sample(sample.start, values, rows, flat)
