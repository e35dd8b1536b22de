"""Non-overlapping windows of means.

Windows are whole windows of the clock: window w holds the local times in [w L, (w + 1) L) counted from 1970-01-01, L
the length of a window; where the clock is changed, a window ends. One-minute windows start at whole minutes whatever
the first row is, so that history and new data are cut alike. Windows without any row do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import PLAIN, Clock
from eccaht.plants.data.horizon import BelievedTime

Times = NDArray[np.datetime64]


class Batch(NamedTuple):
    """Some rows: their times, (N,), in order, and their values, (N, K), one column a sensor.

    NaN is a missing value, and so is whatever `quality`, (N, K), says is bad (False).
    """

    times: Times
    values: Array
    quality: NDArray[np.bool_] | None = None

    @property
    def readings(self) -> Array:
        """The values, NaN where there is none that is good."""
        return self.values if self.quality is None else np.where(self.quality, self.values, np.nan)


class Sample(NamedTuple):
    """One window: its start, the means of K sensors, how many readings each is of, and which sensors were constant.

    rows and flat are None if not counted.
    """

    start: np.datetime64
    values: Array
    rows: Array | None = None
    flat: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Windows:
    """Means of the scaled readings in T windows of K sensors, what the policies work on.

    starts: start of each window, increasing, datetime64[us], shape (T,); counted from 1970-01-01 if rows had no times.
    values: shape (T, K), NaN where a sensor delivered nothing in that window.
    seconds: length of a window.
    rows: (T, K), readings that each mean is of; flat: (T, K), whether they were all the same; None if not counted.
    model: what prepared them, for those who ask it what is usual. clock: what the times mean.
    notes: what a user should know of how the data were read. interval: seconds between rows; decimals: of the readings,
    by sensor; None where they are not known.
    """

    starts: Times
    values: Array
    names: tuple[str, ...]
    seconds: float
    rows: Array | None = None
    flat: NDArray[np.bool_] | None = None
    model: Any = None
    clock: Clock = PLAIN
    notes: tuple[str, ...] = ()
    interval: float | None = None
    decimals: dict[str, int | None] | None = None

    def between(self, start: Any = None, stop: Any = None) -> Windows:
        """Return the windows that start at or after `start` and before `stop`."""
        first = 0 if start is None else int(np.searchsorted(self.starts, self.clock.parse(start, "start")))
        last = len(self.starts) if stop is None else int(np.searchsorted(self.starts, self.clock.parse(stop, "stop")))
        return self._pick(slice(first, max(first, last)), slice(None))

    def of(self, names: Sequence[str]) -> Windows:
        """The same windows of some of the sensors, in that order."""
        chosen = np.array([self.names.index(name) for name in names], dtype=np.intp)
        return replace(self._pick(slice(None), chosen), names=tuple(names))

    def samples(self) -> Iterator[Sample]:
        uncounted = [None] * len(self.starts)
        rows, flat = (uncounted if part is None else part for part in (self.rows, self.flat))
        return map(Sample, self.starts, self.values, rows, flat)

    @staticmethod
    def joined(parts: Sequence[Windows]) -> Windows:
        """Windows that follow each other, of the same sensors, as one."""
        arrays: dict[str, Any] = {}
        for name in ("starts", "values", "rows", "flat"):
            pieces = [getattr(part, name) for part in parts]
            arrays[name] = None if pieces[0] is None else np.concatenate(pieces)
        return replace(parts[0], **arrays)

    def _pick(self, times: slice, sensors: Any) -> Windows:
        rows = None if self.rows is None else self.rows[times, sensors]
        flat = None if self.flat is None else self.flat[times, sensors]
        return replace(self, starts=self.starts[times], values=self.values[times, sensors], rows=rows, flat=flat)


@dataclass(frozen=True)
class Cut:
    """Where sorted rows fall into windows: row `first[w]` is the first of window w, which has `rows[w]` rows."""

    starts: Times
    first: NDArray[np.intp]
    rows: NDArray[np.intp]

    @staticmethod
    def of(times: Times, seconds: float, clock: Clock = PLAIN) -> Cut:
        starts = clock.floor(times.astype("datetime64[us]").astype(np.int64), round(seconds * 1e6))
        first = np.flatnonzero(np.diff(starts, prepend=starts[:1] - 1))
        rows = np.diff(first, append=len(times))
        return Cut(starts[first].astype("datetime64[us]"), first, rows)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Which windows have at least half of the usual rows."""
        enough: NDArray[np.bool_] = 2 * self.rows >= np.median(self.rows)
        return enough

    def means(self, readings: Array) -> Array:
        """Mean of each window of a column without gaps, (N,), or of several, (N, K)."""
        return np.add.reduceat(readings, self.first, axis=0) / self._by_window(readings)

    def present(self, readings: Array) -> Array:
        missing = np.isnan(readings)
        if not missing.any():
            return self._by_window(readings) + np.zeros(readings.shape[1:])
        return np.add.reduceat(~missing, self.first, axis=0, dtype=np.float64)

    def flat(self, readings: Array) -> NDArray[np.bool_]:
        low, high = np.fmin.reduceat(readings, self.first, axis=0), np.fmax.reduceat(readings, self.first, axis=0)
        same: NDArray[np.bool_] = low == high
        return same

    def means_of_present(self, readings: Array) -> Array:
        """Mean of the readings that are there, NaN where there is none."""
        missing = np.isnan(readings)
        if not missing.any():
            return self.means(readings)
        present = self.present(readings)
        total = np.add.reduceat(np.where(missing, 0.0, readings), self.first, axis=0)
        return np.where(present > 0, total / np.maximum(present, 1), np.nan)

    def _by_window(self, readings: Array) -> Array:
        """The number of rows of each window, to go with its columns."""
        return self.rows.astype(np.float64).reshape(-1, *[1] * (readings.ndim - 1))


class Windower:
    """Turns rows into windows as they come: a window is complete once a row of a later one was added and is believed.

    However the rows are cut into batches, the windows are the same. Rows that come after their window was complete are
    left out, and `n_late` counts them. Rows far ahead of all others wait until others agree: see `BelievedTime`.

    >>> rows = Windower(["a"], 60.0)
    >>> minute = np.datetime64("2024-05-01T08:00", "us")
    >>> seconds = minute + np.array([0, 30, 60]) * np.timedelta64(1, "s")
    >>> rows.add(Batch(seconds, np.array([[1.0], [3.0], [5.0]]))).values, rows.finish().values
    (array([[2.]]), array([[5.]]))
    """

    def __init__(self, names: Sequence[str], seconds: float, clock: Clock = PLAIN) -> None:
        self.names, self.seconds, self.clock = tuple(names), seconds, clock
        self._times: Times = np.zeros(0, dtype="datetime64[us]")
        self._values: Array = np.zeros((0, len(self.names)))
        self._last: np.datetime64 | None = None  # start of the last complete window
        self._horizon = BelievedTime(round(seconds * 1e6))
        self.n_late = 0

    def add(self, batch: Batch, limit: int | None = None) -> Windows:
        """Take rows; the windows that they complete. limit: see `BelievedTime.hear`."""
        times, values = batch.times.astype("datetime64[us]", copy=False), batch.readings
        if len(self._times):
            times, values = np.concatenate([self._times, times]), np.concatenate([self._values, values])
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, values = times[order], values[order]
        self._times, self._values = times, values
        arrived = batch.times.astype("datetime64[us]").astype(np.int64)
        if self._last is not None:
            arrived = arrived[self._starts(arrived) > self._last.astype(np.int64)]
        self._horizon.hear(arrived, times.astype(np.int64), limit)
        return self._release()

    def finish(self) -> Windows:
        """The windows that no later row has completed."""
        return self._release(all_of_them=True)

    def drop_doubted(self) -> Times:
        """Leave out the rows that are still doubted; return their times."""
        n = len(self._times) - self._horizon.ahead(self._times.astype(np.int64))
        doubted, self._times, self._values = self._times[n:], self._times[:n], self._values[:n]
        return doubted

    def _starts(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.clock.floor(times, round(self.seconds * 1e6))

    def _release(self, *, all_of_them: bool = False) -> Windows:
        """The windows before the horizon's, or all; rows of windows that were released before are late."""
        cut = Cut.of(self._times, self.seconds, self.clock)
        late = 0 if self._last is None else int(np.searchsorted(cut.starts, self._last, side="right"))
        end = len(cut.starts) if all_of_them else late
        if (now := self._horizon.time) is not None and not all_of_them:
            first_open = self._starts(np.array([now])).astype("datetime64[us]")[0]
            end = max(int(np.searchsorted(cut.starts, first_open)), late)
        edges = np.append(cut.first, len(self._times))
        self.n_late += int(edges[late])  # sorted rows: the first ones
        rows = slice(edges[late], edges[end])
        windows = self.windows(
            Cut(cut.starts[late:end], cut.first[late:end] - edges[late], cut.rows[late:end]), self._values[rows]
        )
        self._times, self._values = self._times[edges[end] :], self._values[edges[end] :]
        if end > late:
            self._last = cut.starts[end - 1]
        return windows

    def windows(self, cut: Cut, columns: Array) -> Windows:
        """The windows of rows that are cut so, all of them, apart from what was added."""
        if not len(cut.starts):
            none = np.zeros((0, len(self.names)))
            return Windows(cut.starts, none, self.names, self.seconds, none.copy(), none.astype(bool), clock=self.clock)
        values, rows, flat = cut.means_of_present(columns), cut.present(columns), cut.flat(columns)
        rows = rows_that_count(rows, flat)
        return Windows(cut.starts, values, self.names, self.seconds, rows, flat, clock=self.clock)


def rows_that_count(rows: Array, flat: NDArray[np.bool_]) -> Array:
    """Readings that each mean is of, (T, K), where a window in which nothing moves counts as one row."""
    still = (flat | (rows == 0)).all(axis=1)
    return np.where(still[:, None], np.minimum(rows, 1.0), rows)


def follows(windows: Windows) -> NDArray[np.bool_]:
    """Whether each window but the first follows the one before it, (T - 1,); a single missing one is no gap."""
    steps = np.diff(windows.starts) / np.timedelta64(1, "us") * 1e-6
    return np.asarray(steps < 2.5 * windows.seconds)
