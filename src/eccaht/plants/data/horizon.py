"""How far the times of rows are believed: one row with a wrong time must not close the windows of all the others."""

import time as clocks

import numpy as np
from numpy.typing import NDArray

from eccaht.base.clock import Clock
from eccaht.base.codec import Field, Sizes

TOLERANCE = 600.0  # seconds that the clock of a source may be ahead of this machine's
MOST_DOUBTED = 32  # doubted times that further ones are compared with
_OFFSETS = 14 * 3600.0  # the most that local times are ahead of UTC
_REACH = 2  # windows by which a row may be ahead of all before it and be believed at once
_FARTHEST = 2**60  # microseconds
Moments = NDArray[np.int64]


class BelievedTime:
    """The latest time that is believed, None before there are rows of two windows; all times in microseconds.

    A row that is up to `reach` ahead of the horizon moves it. One further ahead is doubted. It is believed once another
    doubted row agrees, at least a window apart and nearer to it than both are to the horizon, with no row between that
    moved the horizon: so it is after a gap in the data, and not while a source with a wrong clock sends beside others.

    step: length of a window. lateness: for how long windows wait, so that rows this far ahead close none. usual: how
    far apart rows are, where that is more than a window.
    """

    FIELDS = (
        Field("time", (), int, low=-_FARTHEST, high=_FARTHEST, optional=True),
        Field("usual", (), int, high=_FARTHEST),
        Field("doubted", ("doubted",), int, low=-_FARTHEST, high=_FARTHEST, row=tuple),
    )

    def __init__(self, step: int, lateness: int = 0) -> None:
        self.step, self.lateness, self.usual = step, lateness, step
        self.time: int | None = None
        self.doubted: tuple[int, ...] = ()

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        if self.usual < self.step or len(self.doubted) > MOST_DOUBTED:
            raise ValueError("its rows are damaged: they are nearer to each other than windows")

    @property
    def reach(self) -> int:
        """How far ahead a row may be and be believed at once."""
        return self.lateness + _REACH * self.usual

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
            if steps[:end].max() <= _REACH * self.step:
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
            self.doubted = (*self.doubted, time)[-MOST_DOUBTED:]
        return False


def latest_believed(clock: Clock, tolerance: float = TOLERANCE) -> int | None:
    """Latest plausible time in microseconds; None where rows have no times. A time of no zone may be that of any."""
    if clock.row_interval is not None:
        return None
    seconds = tolerance + (_OFFSETS if clock.zone is None else 0.0)
    return clocks.time_ns() // 1000 + round(seconds * 1e6)
