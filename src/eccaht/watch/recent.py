"""The last windows of a plant, and those before the onset of an alarm that goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.archive import check_keys
from eccaht.arrays import Array
from eccaht.watch.alarm import Time
from eccaht.watch.alarm_state import number_of
from eccaht.watch.suspects import Before


@dataclass(frozen=True, eq=False)
class Followed:
    """The alarm that goes on: when it was raised, its onset, and the windows before that.

    raised, onset: numbers of windows. length: of the stretch that raised it.
    """

    raised: int
    onset: int
    length: int
    before: Before


class Recent:
    """The last windows with their seconds of the day and their times.

    dated: whether times are dates, known from the first window on; else they are numbers of windows.
    """

    def __init__(self, size: int, most: int) -> None:
        self._values, self._moments = np.zeros((most, size)), np.zeros(most)
        self._times = np.zeros(most, dtype=np.int64)
        self._count = 0
        self.dated = False

    def put(self, x: Array, moment: float, time: Time) -> None:
        """Take a window."""
        row = self._count % len(self._moments)
        self.dated = isinstance(time, np.datetime64)
        self._values[row], self._moments[row], self._times[row] = x, moment, number_of(time)
        self._count += 1

    def label(self, ago: int) -> Time:
        """The time of a window, 0 the last one."""
        known = min(self._count, len(self._moments))
        number = int(self._times[(self._count - 1 - min(ago, known - 1)) % len(self._moments)])
        return np.datetime64(number, "us") if self.dated else number

    def last(self, number: int) -> tuple[Array, Array, NDArray[Any]]:
        """The last windows, in order: values, seconds of the day and times."""
        known = min(number, self._count, len(self._moments))
        rows = np.arange(self._count - known, self._count) % len(self._moments)
        times = self._times[rows]
        return self._values[rows], self._moments[rows], times.astype("datetime64[us]") if self.dated else times

    def all(self) -> tuple[Array, Array, NDArray[Any]]:
        """All that are kept."""
        return self.last(len(self._moments))

    def state(self) -> dict[str, NDArray[Any]]:
        """What a file must keep."""
        counts = np.array([self._count, self.dated], dtype=np.int64)
        return {"values": self._values, "moments": self._moments, "times": self._times, "counts": counts}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from a kept state, or say what is wrong with it."""
        mine = self.state()
        check_keys(state, set(mine), "windows")
        if any(state[name].shape != mine[name].shape or state[name].dtype != mine[name].dtype for name in mine):
            raise ValueError("its windows are damaged")
        values, moments, (count, dated) = state["values"], state["moments"], state["counts"].tolist()
        if (
            np.isinf(values).any()
            or not ((moments >= 0) & (moments <= 90_000)).all()
            or count < 0
            or dated not in (0, 1)
        ):
            raise ValueError("its windows are damaged")
        self._values, self._moments, self._times = values, moments, state["times"]
        self._count, self.dated = count, bool(dated)
