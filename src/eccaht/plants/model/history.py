"""The columns of a history: kept as sensors or dropped, and why."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants.data.cleaning import (
    LABEL,
    MOST_TEXTS,
    ColumnReport,
    fill_continuous,
    fill_status,
    is_row_number,
    kind_of,
    looks_like_label,
    robust_scale,
)
from eccaht.plants.data.windows import Cut, Table, decimals

_LARGEST = 1e60  # readings beyond would overflow when squared and multiplied
Progress = Callable[[float, str], object]


@dataclass(frozen=True)
class Sensor:
    """A column that was kept: what the model needs of it; `levels` are the texts of a text status."""

    report: ColumnReport
    levels: Sequence[str] | None
    center: float
    scale: float
    means: Array
    stuck: float
    gap: float
    present: Array  # readings in each window
    flat: NDArray[np.bool_]  # whether they are all the same
    decimals: int | None  # of the readings as they were written


def clean(
    table: Table, cut: Cut, full: NDArray[np.bool_], advance: Progress, named: Collection[str] = ()
) -> list[Sensor | ColumnReport]:
    """Clean every column, a few at a time: sensors, and reports of those that are dropped.

    named: columns that were asked for by name, which are kept even if they look like labels.
    """

    def one(name: str) -> Sensor | ColumnReport:
        return _clean_column(table, name, cut, full, label_allowed=name in named)

    cleaned: list[Sensor | ColumnReport] = []
    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        for column in pool.map(one, table.names):
            cleaned.append(column)
            advance(0.5 + 0.4 * len(cleaned) / len(table.names), "cleaning")
    return cleaned


def _clean_column(
    table: Table, name: str, cut: Cut, full: NDArray[np.bool_], *, label_allowed: bool
) -> Sensor | ColumnReport:
    levels: Sequence[str] | None = None
    if name in table.texts:
        levels, column = table.status(name)
        if len(levels) > MOST_TEXTS:
            return ColumnReport(name, False, "text")
    else:
        column = table.numbers(name)
    missing = int(np.count_nonzero(np.isnan(column)))
    if missing == len(column):
        return ColumnReport(name, False, "empty", "", 1.0)
    kind = "status" if levels is not None else kind_of(column)
    imputed = missing / len(column)
    if not label_allowed and looks_like_label(name, column, levels):  # before "constant", which may not move later
        return ColumnReport(name, False, LABEL, kind, imputed)
    filled = fill_status(column) if kind == "status" else fill_continuous(column, table.times)
    low, high = float(filled.min()), float(filled.max())
    if max(-low, high) > _LARGEST:
        raise ValueError(
            f"column {name!r} has readings too large to compute with ({low:.3g} to {high:.3g}): mend or exclude it"
        )
    if low == high:
        return ColumnReport(name, False, "constant", kind, imputed, constant=low if levels is None else None)
    if is_row_number(filled):
        return ColumnReport(name, False, "row number", kind, imputed)
    quartiles, scale, scaled_by = robust_scale(filled)
    center = float(quartiles[1])
    means = (cut.means(filled) - center) / scale
    if np.ptp(means[full]) <= 1e-12 * np.abs(means).max():
        ends = (low, high) if levels is None else (None, None)
        return ColumnReport(name, False, "constant in windows", kind, imputed, "", None, *ends)
    report = ColumnReport(name, True, "", kind, imputed, scaled_by)
    gap = longest_true(np.isnan(column)) if missing else 0.0
    stuck, present, flat = longest_run(filled), cut.present(column), cut.flat(column)
    places = decimals(column)
    return Sensor(report, levels, center, scale, means, stuck, gap, present, flat, places)


def longest_run(column: Array) -> float:
    """The longest share of the rows in which one value repeats.

    >>> longest_run(np.array([1.0, 2.0, 2.0, 2.0]))
    0.75
    """
    same = column[1:] == column[:-1]
    if 2 * np.count_nonzero(same) < same.size:  # count along the fewer of repetitions and changes
        repeats = np.flatnonzero(same)
        ends = np.flatnonzero(np.diff(repeats, append=len(column) + 1) > 1)
        longest = int(np.diff(ends, prepend=-1).max(initial=0)) + 1
    else:
        longest = int(np.diff(np.flatnonzero(~same) + 1, prepend=0, append=len(column)).max())
    return longest / len(column)


def longest_true(column: NDArray[np.bool_]) -> float:
    """The longest share of the rows in a run that is true.

    >>> longest_true(np.array([True, False, True, True]))
    0.5
    """
    edges = np.flatnonzero(np.diff(column.astype(np.int8), prepend=0, append=0))
    return int((edges[1::2] - edges[::2]).max(initial=0)) / len(column)
