"""To how many decimals readings are written, and whether new data are written to fewer or more than the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array

MOST_DECIMALS = 6  # readings with more are as good as exact
_SAMPLE = 5000  # readings, evenly spread, that are looked at
_FIRST = 100  # of them, which decide for most columns
_ROUNDING = 1e-9  # of a reading: what writing and reading it may change
_FEWEST = 10  # distinct readings: k of them look a decimal coarser than they are with probability 10^-k
_CLEAR = 2  # decimals: the step is a hundred times as long
_VISIBLE = 1e-3  # of the usual spread: a shorter step is lost in the noise


class Resolutions(NamedTuple):
    """Columns whose readings in new data have a longer step than in the history, and those with a shorter one."""

    coarser: tuple[str, ...]
    finer: tuple[str, ...]


def decimals(column: Array) -> int | None:
    """The number of decimals that all readings of a column have at most, NaN apart; None if more than MOST_DECIMALS.

    None also for a column without any reading.

    >>> decimals(np.array([1.25, 3.0, np.nan])), decimals(np.array([700.0])), decimals(np.array([1 / 3]))
    (2, 0, None)
    """
    readings = column[np.isfinite(column)]
    readings = readings[:: max(1, readings.size // _SAMPLE)]
    if not readings.size:
        return None
    least = 0
    for part in (readings[:_FIRST], readings):
        found = next((d for d in range(least, MOST_DECIMALS + 1) if _is_rounded(part, d)), None)
        if found is None:
            return None
        least = found
    return least


def decimals_by_name(names: Sequence[str], readings: Array) -> dict[str, int | None]:
    """The decimals of new readings, (N, K); columns with few distinct readings are left out: they prove nothing.

    >>> decimals_by_name(["a", "stuck"], np.column_stack([np.arange(20) / 4, np.full(20, 5.0)]))
    {'a': 2}
    """
    columns = dict(zip(names, readings.T, strict=True))
    return {name: decimals(column) for name, column in columns.items() if _are_many(column)}


def coarser(
    history: Mapping[str, int | None], new: Mapping[str, int | None], spread: Mapping[str, float] | None = None
) -> Resolutions:
    """Which columns are written to fewer decimals in new data than in the history, and which to more.

    A difference of two decimals counts, and one of a single decimal where the longer step exceeds a thousandth of the
    column's usual `spread`, if that is given. Columns that are not in both are left out.

    >>> coarser({"a": 4, "b": 1, "c": 2}, {"a": 1, "b": 3, "c": 1})
    Resolutions(coarser=('a',), finer=('b',))
    >>> coarser({"c": 2}, {"c": 1}, {"c": 5.0})
    Resolutions(coarser=('c',), finer=())
    """
    gained = {name: _count(new[name]) - _count(history[name]) for name in history if name in new}

    def clear(name: str) -> bool:
        step = 10.0 ** -min(_count(history[name]), _count(new[name]))
        visible = spread is not None and name in spread and step > _VISIBLE * spread[name]
        return abs(gained[name]) >= (1 if visible else _CLEAR)

    changed = [name for name in gained if clear(name)]
    return Resolutions(
        tuple(name for name in changed if gained[name] < 0), tuple(name for name in changed if gained[name] > 0)
    )


def _is_rounded(readings: Array, places: int) -> bool:
    return bool((np.abs(readings - np.round(readings, places)) <= _ROUNDING * np.abs(readings)).all())


def _are_many(column: Array) -> bool:
    """Whether there are enough distinct readings, among the first ones or at all."""
    readings = column[np.isfinite(column)]
    return any(np.unique(part).size >= _FEWEST for part in (readings[:_FIRST], readings))


def _count(places: int | None) -> int:
    """The number of decimals, one more than the most if there are more."""
    return MOST_DECIMALS + 1 if places is None else places
