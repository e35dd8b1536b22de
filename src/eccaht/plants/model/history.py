"""The columns of a history: kept as sensors or dropped and why, and summaries of their windows that a model keeps.

The summaries are enough to judge the model, and small enough to store with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from os import cpu_count

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
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
from eccaht.plants.model.gaps import sampled_rows
from eccaht.plants.model.model_file import MOST_BLOCKS, MOST_LAGS, PROBABILITIES, SHARES, History

MOST_SENSORS, MOST_STRETCHES = 500, 1440
_LARGEST = 1e60  # readings beyond would overflow when squared and multiplied
Progress = Callable[[float, str], object]
# how many windows a stretch may hold: they add up to usual lengths
_JOINED = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True)
class Sensor:
    """A column that was kept: what the model needs of it; `levels` are the texts of a text status."""

    report: ColumnReport
    levels: Sequence[str] | None
    center: float
    scale: float
    means: Array
    stuck: float
    quartiles: Array
    gap: float
    rows: Array  # scaled, of the windows that are looked at row by row
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
        return _clean_column(table, name, cut, full, sampled, label_allowed=name in named)

    cleaned: list[Sensor | ColumnReport] = []
    sampled = sampled_rows(cut, full, len(table.names))
    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        for column in pool.map(one, table.names):
            cleaned.append(column)
            advance(0.5 + 0.4 * len(cleaned) / len(table.names), "cleaning")
    return cleaned


def _clean_column(
    table: Table, name: str, cut: Cut, full: NDArray[np.bool_], sampled: Index, *, label_allowed: bool
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
        return ColumnReport(name, False, "constant in windows", kind, imputed)
    report = ColumnReport(name, True, "", kind, imputed, scaled_by)
    gap = longest_true(np.isnan(column)) if missing else 0.0
    rows = (filled[sampled] - center) / scale
    stuck, present, flat = longest_run(filled), cut.present(column), cut.flat(column)
    places = decimals(column)
    return Sensor(report, levels, center, scale, means, stuck, quartiles, gap, rows, present, flat, places)


# -- summaries ------------------------------------------------------------------------------------------


def summarise(values: Array, stuck: Array, raw_quantiles: Array, **rows: Array) -> History:
    """Summarise scaled windows, shape (T, K), without gaps.

    rows: gaps, row_counts, within and runs of a History; without them every window is one row.
    """
    T, K = values.shape
    if not rows:
        rows = {"gaps": np.zeros(K), "row_counts": np.array([1.0, T]), "runs": np.ones(SHARES.size)}
        rows["within"] = np.zeros((0 if K > MOST_SENSORS else 1, K, K))
    step = next((m for m in _JOINED if m * MOST_STRETCHES >= T), _JOINED[-1])
    centred = values - values.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    standard = centred / np.where(spread > 0, spread, 1.0)
    edges = np.linspace(0, T, min(MOST_BLOCKS, T // 10) + 1).round().astype(np.intp)
    halves = np.zeros((0, K, K))
    if K <= MOST_SENSORS:
        halves = np.stack([np.cov(half, rowvar=False).reshape(K, K) for half in (values[: T // 2], values[T // 2 :])])
    return History(
        autocorrelation=_autocorrelation(standard, min(MOST_LAGS, T // 4)),
        quantiles=np.quantile(values, PROBABILITIES, axis=0),
        skewness=np.einsum("tk,tk,tk->k", standard, standard, standard) / T,
        kurtosis=np.einsum("tk,tk->k", standard * standard, standard * standard) / T - 3.0,
        block_means=np.stack([values[a:b].mean(axis=0) for a, b in pairwise(edges)]),
        block_sizes=np.diff(edges).astype(np.float64),
        half_covariances=halves,
        stuck=stuck,
        raw_quantiles=raw_quantiles,
        coarse=values[: T // step * step if K <= MOST_SENSORS else 0].reshape(-1, step, K).mean(axis=1),
        coarse_windows=np.array([float(step)]),
        **rows,
    )


def _autocorrelation(standard: Array, lags: int) -> Array:
    """Lagged products over T, the usual estimate that never exceeds 1."""
    T = len(standard)
    return np.stack([np.einsum("tk,tk->k", standard[: T - lag], standard[lag:]) / T for lag in range(lags + 1)])


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
