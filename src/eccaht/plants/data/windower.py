"""Rows become windows as they come, and how far their times are believed.

One row with a wrong time must not close the windows of all the others.
"""

from __future__ import annotations

import time as clocks
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, as_count, check_bounded
from eccaht.base.clock import PLAIN, Clock, from_microseconds, microseconds
from eccaht.base.files import check_keys
from eccaht.plants.data.windows import Batch, Cut, Times, Windows, rows_that_count

TOLERANCE = 600.0  # seconds that the clock of a source may be ahead of this machine's
_OFFSETS = 14 * 3600.0  # the most that local times are ahead of UTC
REACH = 2  # windows by which a row may be ahead of all before it and be believed at once
_KEPT = 32  # doubted times that further ones are compared with
LARGEST_READING = 1e8  # robust units: beyond, a value in a file of rows is no reading
Moments = NDArray[np.int64]


class BelievedTime:
    """The latest time that is believed, None before there are rows of two windows; all times in microseconds.

    A row that is up to `reach` ahead of the horizon moves it. One further ahead is doubted. It is believed once another
    doubted row agrees, at least a window apart and nearer to it than both are to the horizon, with no row between that
    moved the horizon: so it is after a gap in the data, and not while a source with a wrong clock sends beside others.

    step: length of a window. lateness: for how long windows wait, so that rows this far ahead close none. usual: how
    far apart rows are, where that is more than a window.
    """

    def __init__(self, step: int, lateness: int = 0) -> None:
        self.step, self.lateness, self.usual = step, lateness, step
        self.time: int | None = None
        self.doubted: tuple[int, ...] = ()

    @property
    def reach(self) -> int:
        """How far ahead a row may be and be believed at once."""
        return self.lateness + REACH * self.usual

    def hear(self, times: Moments, waiting: Moments, limit: int | None = None) -> None:
        """Take the times of new rows.

        times: as they arrived. waiting: of all rows that wait for their window, the new ones too, in order. limit: no
        row beyond it is believed unless those before lead there.
        """
        if not len(times) or not self._begun(waiting, limit):
            return
        assert self.time is not None
        before = self.time
        self._follow(waiting)
        moved = np.flatnonzero((times > before) & (times <= self.time + self.reach))
        if moved.size:
            self.doubted, times = (), times[moved[-1] + 1 :]
        for time in times[times > self.time + self.reach].tolist():
            if time > self.time + self.reach and self._agrees(time, limit):
                self._follow(waiting)

    def ahead(self, waiting: Moments) -> int:
        """How many of the rows that wait, whose times are in order, are doubted."""
        if self.time is None:
            return 0
        return len(waiting) - int(np.searchsorted(waiting, self.time + self.reach, side="right"))

    def _begun(self, waiting: Moments, limit: int | None) -> bool:
        """Whether there is a horizon; the first is the earliest row, once there is one of another window."""
        several = len(waiting) > 0 and waiting[-1] // self.step > waiting[0] // self.step
        if self.time is None and several and (limit is None or waiting[0] <= limit):
            self.time = int(waiting[0])
        return self.time is not None

    def _follow(self, waiting: Moments) -> None:
        """Go from row to row as far as none is out of reach."""
        assert self.time is not None
        later = waiting[np.searchsorted(waiting, self.time, side="right") :]
        steps = np.diff(later, prepend=self.time)
        far = np.flatnonzero(steps > self.reach)
        end = int(far[0]) if far.size else len(later)
        if end:
            self.time = int(later[end - 1])
            if steps[:end].max() <= REACH * self.step:
                self.usual = self.step

    def _agrees(self, time: int, limit: int | None) -> bool:
        """Whether a doubted row makes another one believed."""
        assert self.time is not None
        if limit is not None and time > limit:
            return False
        for other in self.doubted:
            first = min(time, other)
            if self.step <= (apart := abs(time - other)) <= first - self.time:
                self.time, self.usual, self.doubted = first, apart, ()
                return True
        if all(abs(time - other) >= self.step for other in self.doubted):
            self.doubted = (*self.doubted, time)[-_KEPT:]
        return False


def latest_believed(clock: Clock, tolerance: float = TOLERANCE) -> int | None:
    """Beyond this time no gap is believed; None where rows have no times. A time of no zone may be that of any zone."""
    if clock.row_interval is not None:
        return None
    seconds = tolerance + (_OFFSETS if clock.zone is None else 0.0)
    return clocks.time_ns() // 1000 + round(seconds * 1e6)


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

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The rows that wait and how far times are believed, as values of JSON and arrays."""
        horizon = self._horizon
        header = {
            "last": None if self._last is None else microseconds(self._last),
            "late": self.n_late,
            "believed": horizon.time,
            "usual": horizon.usual,
            "doubted": list(horizon.doubted),
        }
        return header, {"times": self._times.astype(np.int64), "values": np.ascontiguousarray(self._values)}

    def restore(self, header: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `parts` gave, by way of an untrusted file."""
        check_keys(header, {"last", "late", "believed", "usual", "doubted"}, "rows")
        check_keys(dict(arrays), {"times", "values"}, "rows")
        times, values, doubted = arrays["times"], arrays["values"], header["doubted"]
        good = times.dtype == np.int64 and values.dtype == np.float64 and times.ndim == 1
        good = good and values.shape == (len(times), len(self.names)) and not np.isinf(values).any()
        if not good or (times[1:] < times[:-1]).any() or not isinstance(doubted, list) or len(doubted) > _KEPT:
            raise ValueError("its rows are damaged")
        ends = times[[0, -1]].tolist() if len(times) else []
        moments = [header["last"], header["believed"], *doubted, *ends]
        checked = [None if moment is None else from_microseconds(moment) for moment in moments]
        usual = as_count(header["usual"], "the time between rows", least=self._horizon.step)
        check_bounded(np.nan_to_num(values), "rows", LARGEST_READING)
        from_microseconds(usual)
        self._last, self.n_late = checked[0], as_count(header["late"], "late rows", least=0)
        self._horizon.time, self._horizon.usual, self._horizon.doubted = header["believed"], usual, tuple(doubted)
        self._times, self._values = times.astype("datetime64[us]"), values

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
