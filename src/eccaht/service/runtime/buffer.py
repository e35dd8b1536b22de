"""Rows of a plant until their windows are complete: out of order, twice, one sensor at a time, as networks bring them.

Rows of one time are one row: each reading counts once, the first that came. A window is complete once a row came
that is `lateness` after its end and is believed (`BelievedTime`), or as soon as too many rows wait; what comes for it
later is late, and a duplicate if it comes once more.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import Clock
from eccaht.plants import Cut, Moved, Windower, Windows
from eccaht.plants.data.windower import BelievedTime
from eccaht.plants.model.model import ROUNDING

REMEMBERED = 120  # complete windows whose rows are known if they come again
_MOST_SEEN = 100_000  # rows of a complete window that are known
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
        return Readings(self.times[which], self.values[which])

    def to_bytes(self) -> bytes:
        return (
            len(self.times).to_bytes(8, "little")
            + self.times.astype("<i8").tobytes()
            + self.values.astype("<f8").tobytes()
        )

    @staticmethod
    def parse(content: bytes, size: int) -> Readings:
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
        return Seen(rows.times, ~np.isnan(rows.values))

    def with_more(self, more: Seen) -> tuple[Seen, int]:
        """The same and more readings, whose times may repeat, and how many of these rows bring none that is new."""
        places = {time: k for k, time in enumerate(self.times.tolist())}
        rows, known = list(self.present), 0
        for time, present in zip(more.times.tolist(), more.present, strict=True):
            if (place := places.get(time)) is None:
                if len(rows) < _MOST_SEEN:
                    places[time] = len(rows)
                    rows.append(present)
            elif (present & ~rows[place]).any():
                rows[place] = rows[place] | present
            else:
                known += 1
        times = np.array(list(places), dtype=np.int64)
        order = np.argsort(times)
        return Seen(times[order], np.array(rows).reshape(len(rows), -1)[order]), known

    def to_bytes(self) -> bytes:
        bits = np.packbits(self.present, axis=1).tobytes()
        return len(self.times).to_bytes(4, "little") + self.times.astype("<i8").tobytes() + bits

    @staticmethod
    def parse(content: bytes, size: int) -> Seen:
        count = int.from_bytes(content[:4], "little")
        times = np.frombuffer(content, "<i8", count, 4).astype(np.int64)
        bits = np.frombuffer(content, np.uint8, offset=4 + 8 * count).reshape(count, -1)
        return Seen(times, np.unpackbits(bits, axis=1, count=size).astype(bool))


@dataclass(frozen=True, eq=False)
class _Released:
    """What rows led to: those that wait, the windows that are complete now and what they are made of, and counts.

    done: the rows of these windows. again: windows that were complete and which readings of them have come now.
    ahead: rows that are left out, because too many wait already that are ahead of all others.
    """

    new: Readings
    done: Readings
    windows: Windows
    seen: tuple[bytes, ...]
    late: int
    duplicate: int
    ahead: int
    again: dict[int, bytes]


class Buffer:
    """The rows of a plant whose windows are not complete.

    position: start of the last complete window, microseconds. most: rows that may wait; if there are more, the oldest
    windows are complete. further: how many columns rows have beside the sensors `names`: they wait with them, but no
    window is made of them.
    """

    def __init__(
        self, names: tuple[str, ...], seconds: float, clock: Clock, lateness: float, most: int, *, further: int = 0
    ) -> None:
        self.names, self.seconds, self.clock, self.most = names, seconds, clock, most
        self.columns = len(names) + further
        self._windower = Windower(names, seconds, clock)
        self.rows = Readings.none(self.columns)
        self.position: int | None = None
        self.horizon = BelievedTime(round(seconds * 1e6), round(lateness * 1e6))
        self._seen: OrderedDict[int, bytes] = OrderedDict()

    def remember(self, start: int, seen: bytes) -> None:
        """A window is complete that is made of these readings, as `Seen.to_bytes` gives them."""
        self.position = start
        self._seen[start] = seen
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    @property
    def held(self) -> int:
        """How many of the rows that wait are ahead of all others."""
        return self.horizon.ahead(self.rows.times)

    def to_bytes(self, rows: Readings) -> bytes:
        """Rows that are new, and how far times are believed now, for `put` after a restart."""
        horizon = self.horizon
        known = [] if horizon.time is None else [horizon.time, horizon.usual, *horizon.doubted]
        return rows.to_bytes() + np.array(known, dtype="<i8").tobytes()

    def put(self, content: bytes) -> None:
        """Rows that were new when they came, of which some may be in complete windows by now."""
        rows = Readings.parse(content, self.columns)
        kept = rows if self.position is None else rows.pick(self.starts(rows.times) > self.position)
        self.rows, _ = _merged(self.rows, kept)
        known = np.frombuffer(content, "<i8", offset=len(rows.to_bytes())).tolist()
        if known:
            self.horizon.time, self.horizon.usual, self.horizon.doubted = known[0], known[1], tuple(known[2:])

    def add(self, rows: Readings, limit: int | None = None) -> _Released:
        """Take rows in any order; limit: see `BelievedTime.hear`."""
        late = known = 0
        again: dict[int, bytes] = {}
        if self.position is not None:
            behind = self.starts(rows.times) <= self.position
            known = self._count_known(rows.pick(behind), again)
            late = int(behind.sum()) - known
            rows = rows.pick(~behind)
        before, arrived = self.rows.times, rows.times
        rows = rows.pick(np.argsort(rows.times, kind="stable"))
        self.rows, fresh = _merged(self.rows, rows)
        self.horizon.hear(arrived, self.rows.times, limit)
        new, ahead = self._bounded(rows.pick(fresh), before)
        done, windows, seen = self._release()
        if self.position is not None:
            new = new.pick(self.starts(new.times) > self.position)
        return _Released(new, done, windows, seen, late, known + len(fresh) - int(fresh.sum()), ahead, again)

    def _bounded(self, new: Readings, before: Times) -> tuple[Readings, int]:
        """The new rows without those that are ahead of all others, if half of the most wait for that; their number."""
        if self.held <= self.most // 2:
            return new, 0
        assert self.horizon.time is not None
        far = (new.times > self.horizon.time + self.horizon.reach) & ~np.isin(new.times, before)
        self.rows = self.rows.pick(~np.isin(self.rows.times, new.times[far]))
        return new.pick(~far), int(far.sum())

    def starts(self, times: Times) -> Times:
        return self.clock.floor(times, round(self.seconds * 1e6))

    def _count_known(self, rows: Readings, again: dict[int, bytes]) -> int:
        """How many rows of complete windows came before; the others are known from now on."""
        known, starts = 0, self.starts(rows.times)
        for start in np.unique(starts).tolist():
            if (content := self._seen.get(start)) is None:  # of a window too long ago, or without any row
                continue
            chosen = Seen.of(rows.pick(starts == start))
            seen, known_here = Seen.parse(content, self.columns).with_more(chosen)
            known += known_here
            if known_here < len(chosen.times):
                self._seen[start] = again[start] = seen.to_bytes()
        return known

    def _release(self) -> tuple[Readings, Windows, tuple[bytes, ...]]:
        """The rows of the windows that are complete, which leave the buffer, these windows and their readings."""
        count = self._complete()
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

    def _complete(self) -> int:
        """How many of the rows, which are in order, are in complete windows."""
        count, horizon, times = 0, self.horizon, self.rows.times
        if horizon.time is not None:
            first_open = self.starts(np.array([horizon.time - horizon.lateness]))[0]
            count = int(np.searchsorted(times, first_open))
        too_many = len(times) - self.held - self.most
        if too_many > count:
            starts = self.starts(times[too_many - 1 :])
            count = too_many - 1 + int(np.searchsorted(starts, starts[0], side="right"))
        return count


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


class Constants:
    """The constants of a model, in the columns of a buffer after its sensors; usual: their values."""

    def __init__(self, usual: Mapping[str, float], sensors: int, clock: Clock) -> None:
        self.places = {name: sensors + k for k, name in enumerate(usual)}
        self._sensors, self._names, self._clock = sensors, tuple(usual), clock
        self._usual = np.array(list(usual.values()))

    def moved(self, rows: Readings, known: frozenset[str]) -> dict[str, tuple[int, str]]:
        """Constants that move in these rows and are not known to: when first, in microseconds, and what to report."""
        values = rows.values[:, self._sensors :]
        away = np.abs(values - self._usual) > ROUNDING * np.abs(self._usual)  # never for NaN
        found = {}
        for k in np.flatnonzero(away.any(axis=0)).tolist():
            if self._names[k] in known:
                continue
            row = int(away[:, k].argmax())
            since = np.datetime64(int(rows.times[row]), "us")
            moved = Moved(self._names[k], float(self._usual[k]), float(values[row, k]), since)
            found[moved.name] = (int(rows.times[row]), moved.text(self._clock))
        return found
