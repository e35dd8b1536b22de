"""Gaps in the times of the rows that a source brings: how an operator sees that something was lost on the way."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from eccaht.base.clock import Clock
from eccaht.plants.watch.events import iso
from eccaht.service.rows import RowGap

_WINDOWS = 3  # a gap is longer than so many windows,
_STEPS = 10  # and than so many of the usual steps between two rows,
_KNOWN = 10  # which is known after so many of them


class Gaps:
    """Keeps the last gap of one plant; seconds: the length of its windows.

    Rows that come later and lie in the gap make it smaller, until it is none.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._least = clock, round(_WINDOWS * seconds * 1e6)
        self._steps: deque[int] = deque(maxlen=50)
        self._newest: int | None = None
        self._span: tuple[int, int] | None = None  # the last time before the gap, the first one after it

    def add(self, times: NDArray[np.datetime64]) -> None:
        """Look at the times of rows that were taken."""
        found = np.unique(times.astype("datetime64[us]").astype(np.int64)).tolist()
        if self._span is not None:
            self._fill([time for time in found if self._span[0] < time < self._span[1]])
        if self._newest is not None:
            found = [self._newest, *(time for time in found if time > self._newest)]
        for before, after in pairwise(found):
            if self._is_gap(after - before):
                self._span = (before, after)
            self._steps.append(after - before)
        self._newest = found[-1] if found else self._newest

    def last(self) -> RowGap | None:
        """The last gap; None where rows are counted and have no times."""
        if self._span is None or self._clock.row_interval is not None:
            return None
        before, after = self._span
        return RowGap((after - before) / 1e6, iso(self._clock, np.datetime64(after, "us")))

    def _fill(self, inside: list[int]) -> None:
        if self._span is None or not inside:
            return
        rest = max(pairwise([self._span[0], *inside, self._span[1]]), key=lambda ends: ends[1] - ends[0])
        self._span = rest if self._is_gap(rest[1] - rest[0]) else None

    def _is_gap(self, step: int) -> bool:
        return step > self._least and len(self._steps) >= _KNOWN and step > _STEPS * median(self._steps)
