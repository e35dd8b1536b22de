"""The last windows of a plant with their times, in constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.archive import check_keys
from eccaht.base.arrays import Array, Index
from eccaht.streams.watch.alarm import Time
from eccaht.streams.watch.alarm_state import number_of

_LARGEST = 1e30  # that half of the digits of a number can hold


class Recent:
    """The last windows and their times, and which sensors were wrong in them.

    dated: whether times are dates, known from the first window on; else they are numbers of windows.
    """

    def __init__(self, size: int, most: int) -> None:
        self._values = np.zeros((most, size), dtype=np.float32)
        self._wrong = np.zeros((most, size), dtype=bool)
        self._times = np.zeros(most, dtype=np.int64)
        self._count = 0
        self.dated = False

    def __len__(self) -> int:
        return min(self._count, len(self._times))

    def put(self, x: Array, time: Time) -> None:
        row = self._count % len(self._times)
        self.dated = isinstance(time, np.datetime64)
        self._values[row] = np.clip(x, -_LARGEST, _LARGEST)
        self._wrong[row], self._times[row] = False, number_of(time)
        self._count += 1

    def label(self, ago: int) -> Time:
        number = int(self._times[(self._count - 1 - min(ago, len(self) - 1)) % len(self._times)])
        return np.datetime64(number, "us") if self.dated else number

    def last(self, number: int) -> Array:
        """The last windows, in order, (T, K)."""
        return self._values[self._rows(number)].astype(np.float64)

    def usual(self, number: int) -> Array:
        """The same without those of sensors that were wrong, which are NaN."""
        rows = self._rows(number)
        return np.where(self._wrong[rows], np.nan, self._values[rows].astype(np.float64))

    def set_aside(self, number: int, sensors: Index) -> None:
        """These sensors were wrong in the last windows."""
        self._wrong[np.ix_(self._rows(number), sensors)] = True

    def _rows(self, number: int) -> Index:
        known = min(number, len(self))
        return np.arange(self._count - known, self._count) % len(self._times)

    def state(self) -> dict[str, NDArray[Any]]:
        counts = np.array([self._count, self.dated], dtype=np.int64)
        wrong = self._wrong.astype(np.int64)
        return {"values": self._values.astype(np.float64), "wrong": wrong, "times": self._times, "counts": counts}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        mine = self.state()
        check_keys(state, set(mine), "windows")
        if any(state[name].shape != mine[name].shape or state[name].dtype != mine[name].dtype for name in mine):
            raise ValueError("its windows are damaged")
        count, dated = state["counts"].tolist()
        wrong = state["wrong"]
        values = state["values"]
        if (
            (np.abs(values[~np.isnan(values)]) > 2 * _LARGEST).any()
            or count < 0
            or dated not in (0, 1)
            or not np.isin(wrong, (0, 1)).all()
        ):
            raise ValueError("its windows are damaged")
        self._wrong = wrong.astype(bool)
        self._values, self._times = state["values"].astype(np.float32), state["times"].copy()
        self._count, self.dated = count, bool(dated)
