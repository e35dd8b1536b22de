"""Every column of a table cleaned, scaled and cut into windows, with what was decided about it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index
from eccaht.data import cleaning
from eccaht.data.cleaning import MOST_TEXTS, ColumnReport
from eccaht.data.reading import Table
from eccaht.data.windows import Cut
from eccaht.model.history import longest_run, longest_true
from eccaht.model.rows import sampled_rows

_LARGEST = 1e60  # readings beyond would overflow when squared and multiplied


@dataclass(frozen=True)
class Sensor:
    """A column that was kept: what the model needs of it."""

    center: float
    scale: float
    means: Array
    stuck: float
    quartiles: Array
    gap: float
    rows: Array  # scaled, of the windows that are looked at row by row


@dataclass(frozen=True)
class Column:
    """A column, kept if it has a sensor; `levels` are the texts of a text status."""

    report: ColumnReport
    sensor: Sensor | None = None
    levels: list[str] | None = None


def clean(table: Table, cut: Cut, full: NDArray[np.bool_], tell: Callable[[float, str], object]) -> list[Column]:
    """Clean every column, a few at a time; `full` says which windows count."""
    cleaned: list[Column] = []
    sampled = sampled_rows(cut, full, len(table.names))
    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        for column in pool.map(lambda name: _clean_column(table, name, cut, full, sampled), table.names):
            cleaned.append(column)
            tell(0.5 + 0.4 * len(cleaned) / len(table.names), "cleaning")
    return cleaned


def _clean_column(table: Table, name: str, cut: Cut, full: NDArray[np.bool_], sampled: Index) -> Column:
    levels = None
    if name in table.texts:
        levels, column = table.levels(name)
        if len(levels) > MOST_TEXTS:
            return Column(ColumnReport(name, False, "text"))
    else:
        column = table.numbers(name)
    missing = int(np.count_nonzero(np.isnan(column)))
    if missing == len(column):
        return Column(ColumnReport(name, False, "empty", "", 1.0))
    kind = "status" if levels is not None else cleaning.kind_of(column)
    imputed = missing / len(column)
    filled = cleaning.fill(column, table.times, kind)
    low, high = float(filled.min()), float(filled.max())
    if max(-low, high) > _LARGEST:
        raise ValueError(
            f"column {name!r} has readings too large to compute with ({low:.3g} to {high:.3g}): mend or exclude it"
        )
    if low == high:
        return Column(ColumnReport(name, False, "constant", kind, imputed))
    if cleaning.is_row_number(filled):
        return Column(ColumnReport(name, False, "row number", kind, imputed))
    quartiles, scale, scaled_by = cleaning.robust_scale(filled)
    center = float(quartiles[1])
    means = (cut.means(filled) - center) / scale
    if np.ptp(means[full]) <= 1e-12 * np.abs(means).max():
        return Column(ColumnReport(name, False, "constant in windows", kind, imputed))
    report = ColumnReport(name, True, "", kind, imputed, scaled_by)
    gap = longest_true(np.isnan(column)) if missing else 0.0
    rows = (filled[sampled] - center) / scale
    return Column(report, Sensor(center, scale, means, longest_run(filled), quartiles, gap, rows), levels)
