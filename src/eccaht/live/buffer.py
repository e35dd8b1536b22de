"""Rows of a plant until their windows are complete: out of order, twice, one sensor at a time, as networks bring them.

Rows of one time are one row: each reading counts once, the first that came. A window is complete once a row came
that is `lateness` after its end; what comes for it later is late, and a duplicate if it comes once more.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.clock import Clock
from eccaht.data.windows import Cut, Windower, Windows

REMEMBERED = 120  # complete windows whose rows are known if they come again
Times = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Readings:
    """Rows: times in microseconds, increasing, (N,), and values, (N, M), NaN where there is none.

    The first K columns are the sensors, in robust units; those after them are the buffer's further ones.
    """

    times: Times
    values: Array

    @staticmethod
    def none(size: int) -> Readings:
        """No rows of so many columns."""
        return Readings(np.zeros(0, dtype=np.int64), np.zeros((0, size)))

    def pick(self, which: slice | NDArray[Any]) -> Readings:
        """Some of the rows."""
        return Readings(self.times[which], self.values[which])

    def to_bytes(self) -> bytes:
        """As bytes."""
        return len(self.times).to_bytes(8, "little") + self.times.astype("<i8").tobytes() + _f8(self.values)

    @staticmethod
    def parse(content: bytes, size: int) -> Readings:
        """From what `to_bytes` gave."""
        count = int.from_bytes(content[:8], "little")
        times = np.frombuffer(content, "<i8", count, 8).astype(np.int64)
        return Readings(times, np.frombuffer(content, "<f8", count * size, 8 + 8 * count).reshape(count, size).copy())


@dataclass(frozen=True, eq=False)
class Seen:
    """Which readings of a window came: times, (N,), increasing, and of which columns, (N, M)."""

    times: Times
    present: NDArray[np.bool_]

    @staticmethod
    def of(rows: Readings) -> Seen:
        """Of the rows of a window."""
        return Seen(rows.times, ~np.isnan(rows.values))

    def has(self, time: int, present: NDArray[np.bool_]) -> bool:
        """Whether all these readings of a time are among them."""
        place = int(np.searchsorted(self.times, time))
        known = place < len(self.times) and self.times[place] == time
        return bool(known and not (present & ~self.present[place]).any())

    def adding(self, time: int, present: NDArray[np.bool_]) -> Seen:
        """The same and these readings of a time."""
        place = int(np.searchsorted(self.times, time))
        if place < len(self.times) and self.times[place] == time:
            both = self.present.copy()
            both[place] |= present
            return Seen(self.times, both)
        return Seen(np.insert(self.times, place, time), np.insert(self.present, place, present, axis=0))

    def to_bytes(self) -> bytes:
        """As bytes."""
        bits = np.packbits(self.present, axis=1).tobytes()
        return len(self.times).to_bytes(4, "little") + self.times.astype("<i8").tobytes() + bits

    @staticmethod
    def parse(content: bytes, size: int) -> Seen:
        """From what `to_bytes` gave."""
        count = int.from_bytes(content[:4], "little")
        times = np.frombuffer(content, "<i8", count, 4).astype(np.int64)
        bits = np.frombuffer(content, np.uint8, offset=4 + 8 * count).reshape(count, -1)
        return Seen(times, np.unpackbits(bits, axis=1, count=size).astype(bool))


@dataclass(frozen=True, eq=False)
class Released:
    """What rows led to: those that wait, the windows that are complete now and what they are made of, and counts.

    done: the rows of these windows. again: windows that were complete and which readings of them have come now.
    """

    new: Readings
    done: Readings
    windows: Windows
    seen: tuple[bytes, ...]
    late: int
    duplicate: int
    again: dict[int, bytes]


class Buffer:
    """The rows of a plant whose windows are not complete.

    position: start of the last complete window, microseconds. horizon: the latest time that came. further: how many
    columns rows have beside the sensors `names`: they wait with them, but no window is made of them.
    """

    def __init__(
        self, names: tuple[str, ...], seconds: float, clock: Clock, lateness: float, *, further: int = 0
    ) -> None:
        self.names, self.seconds, self.clock, self.lateness = names, seconds, clock, round(lateness * 1e6)
        self.columns = len(names) + further
        self._windower = Windower(names, seconds, clock)
        self.rows = Readings.none(self.columns)
        self.position: int | None = None
        self.horizon: int | None = None
        self._seen: OrderedDict[int, bytes] = OrderedDict()

    def remember(self, start: int, seen: bytes) -> None:
        """A window is complete that is made of these readings, as `Seen.to_bytes` gives them."""
        self.position = start
        self._seen[start] = seen
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    def put(self, rows: Readings) -> None:
        """Rows that were new when they came, of which some may be in complete windows by now."""
        kept = rows if self.position is None else rows.pick(self.starts(rows.times) > self.position)
        self.rows, _ = _merged(self.rows, kept)
        self._look(rows.times)

    def add(self, rows: Readings) -> Released:
        """Take rows in any order."""
        rows = rows.pick(np.argsort(rows.times, kind="stable"))
        late = known = 0
        again: dict[int, bytes] = {}
        if self.position is not None:
            behind = self.starts(rows.times) <= self.position
            known = self._count_known(rows.pick(behind), again)
            late = int(behind.sum()) - known
            rows = rows.pick(~behind)
        self.rows, fresh = _merged(self.rows, rows)
        self._look(rows.times)
        done, windows, seen = self._release()
        new = rows.pick(fresh)
        if self.position is not None:
            new = new.pick(self.starts(new.times) > self.position)
        return Released(new, done, windows, seen, late, known + len(fresh) - int(fresh.sum()), again)

    def starts(self, times: Times) -> Times:
        """The window of each time."""
        return self.clock.floor(times, round(self.seconds * 1e6))

    def _count_known(self, rows: Readings, again: dict[int, bytes]) -> int:
        """How many rows of complete windows came before; the others are known from now on."""
        known, size = 0, self.columns
        for start, time, values in zip(self.starts(rows.times).tolist(), rows.times.tolist(), rows.values, strict=True):
            content, present = self._seen.get(start), ~np.isnan(values)
            if content is None:  # of a window too long ago, or without any row
                continue
            if (seen := Seen.parse(content, size)).has(time, present):
                known += 1
            else:
                self._seen[start] = again[start] = seen.adding(time, present).to_bytes()
        return known

    def _look(self, times: Times) -> None:
        if len(times):
            latest = int(times.max())
            self.horizon = latest if self.horizon is None else max(self.horizon, latest)

    def _release(self) -> tuple[Readings, Windows, tuple[bytes, ...]]:
        """The rows of the windows that are complete, which leave the buffer, these windows and their readings."""
        count = 0
        if self.horizon is not None and len(self.rows.times):
            first_open = self.starts(np.array([self.horizon - self.lateness]))[0]
            count = int(np.searchsorted(self.starts(self.rows.times), first_open))
        done = self.rows.pick(slice(count))
        cut = Cut.of(done.times.astype("datetime64[us]"), self.seconds, self.clock)
        windows = self._windower.windows(cut, done.values[:, : len(self.names)])
        if not count:
            return done, windows, ()
        self.rows = self.rows.pick(slice(count, None))
        edges = [*cut.first.tolist(), count]
        seen = tuple(Seen.of(done.pick(slice(a, b))).to_bytes() for a, b in itertools.pairwise(edges))
        for start, content in zip(cut.starts.astype(np.int64).tolist(), seen, strict=True):
            self.remember(start, content)
        return done, windows, seen


def _merged(before: Readings, more: Readings) -> tuple[Readings, NDArray[np.bool_]]:
    """Both as one, and which rows of `more`, which are in order, bring a new reading or a new time."""
    n = len(before.times)
    both = np.concatenate([before.times, more.times])
    if (np.diff(both) > 0).all():  # as rows mostly come
        return Readings(both, np.concatenate([before.values, more.values])), np.ones(len(more.times), dtype=bool)
    times, first, place = np.unique(both, return_index=True, return_inverse=True)
    values = np.concatenate([before.values, more.values])[first]
    fresh = np.zeros(n + len(more.times), dtype=bool)
    fresh[first] = True
    for row in (np.flatnonzero(~fresh[n:]) + n).tolist():  # of a time that is there
        there = values[place[row]]
        gaps = np.isnan(there) & ~np.isnan(more.values[row - n])
        there[gaps] = more.values[row - n][gaps]
        fresh[row] = gaps.any()
    return Readings(times, values), fresh[n:]


def _f8(values: Array) -> bytes:
    return np.ascontiguousarray(values, dtype="<f8").tobytes()
