"""Non-overlapping windows of means.

Windows are whole windows of the clock: window w holds the local times in [w L, (w + 1) L) counted from 1970-01-01, L
the length of a window; where the clock is changed, a window ends. One-minute windows start at whole minutes whatever
the first row is, so that history and new data are cut alike. Windows without any row do not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.clock import PLAIN, Clock

Times = NDArray[np.datetime64]


@dataclass(frozen=True)
class Windows:
    """Means of the scaled readings in T windows of K sensors, what the policies work on.

    starts: start of each window, increasing, datetime64[us], shape (T,); counted from 1970-01-01 if rows had no times.
    values: shape (T, K), NaN where a sensor delivered nothing in that window.
    seconds: length of a window. clock: what the times mean. notes: what a user should know of how the data were read.
    """

    starts: Times
    values: Array
    names: tuple[str, ...]
    seconds: float
    clock: Clock = PLAIN
    notes: tuple[str, ...] = ()

    def between(self, start: Any = None, stop: Any = None) -> Windows:
        """Return the windows that start at or after `start` and before `stop`."""
        first = 0 if start is None else int(np.searchsorted(self.starts, self.clock.parse(start, "start")))
        last = len(self.starts) if stop is None else int(np.searchsorted(self.starts, self.clock.parse(stop, "stop")))
        kept = slice(first, max(first, last))
        return replace(self, starts=self.starts[kept], values=self.values[kept])


@dataclass(frozen=True)
class Cut:
    """Where sorted rows fall into windows: row `first[w]` is the first of window w, which has `rows[w]` rows."""

    starts: Times
    first: NDArray[np.intp]
    rows: NDArray[np.intp]

    @staticmethod
    def of(times: Times, seconds: float, clock: Clock = PLAIN) -> Cut:
        """Cut sorted times into windows."""
        starts = clock.floor(times.astype("datetime64[us]").astype(np.int64), round(seconds * 1e6))
        first = np.flatnonzero(np.diff(starts, prepend=starts[:1] - 1))
        rows = np.diff(first, append=len(times))
        return Cut(starts[first].astype("datetime64[us]"), first, rows)

    def means(self, column: Array) -> Array:
        """Mean of each window of a column without gaps."""
        return np.add.reduceat(column, self.first) / self.rows

    def means_of_present(self, column: Array) -> Array:
        """Mean of the readings that are there, NaN where there is none."""
        missing = np.isnan(column)
        if not missing.any():
            return self.means(column)
        present = np.add.reduceat((~missing).astype(np.intp), self.first)
        total = np.add.reduceat(np.where(missing, 0.0, column), self.first)
        return np.where(present > 0, total / np.maximum(present, 1), np.nan)
