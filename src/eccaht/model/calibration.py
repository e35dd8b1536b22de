"""From a history of normal operation to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index
from eccaht.covariance import Covariance
from eccaht.data.cleaning import (
    MOST_TEXTS,
    ColumnReport,
    fill_continuous,
    fill_status,
    is_row_number,
    kind_of,
    robust_scale,
)
from eccaht.data.durations import parse_window
from eccaht.data.source import read_table, recorded_of
from eccaht.data.table import Table, check_limits
from eccaht.data.windows import Cut
from eccaht.model.estimators import FEWEST_WINDOWS, check_estimator, default_ridge, estimate, preload
from eccaht.model.history import MOST_SENSORS, History, longest_run, longest_true, summarise
from eccaht.model.model import Model
from eccaht.model.rows import row_noise, sampled_rows
from eccaht.presentation.text import counted

_LARGE_FILES = 1 << 26  # bytes; reading more takes longer than to import scikit-learn
_LARGEST = 1e60  # readings beyond would overflow when squared and multiplied
Progress = Callable[[float, str], object]


def calibrate(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    time_column: str | Sequence[str] | None = None,
    row_interval: str | float | None = None,
    timezone: str | None = None,
    decimal_comma: bool | None = None,
    header: bool = True,
    window: str | float = "1min",
    estimator: str = "ledoit-wolf",
    ridge: float | None = None,
    start: Any = None,
    stop: Any = None,
    progress: Progress | None = None,
) -> Model:
    """Read a history, clean it, scale it, cut it into windows and estimate their mean and covariance.

    The options about reading are those of `eccaht.data.read_table`.

    data: paths of files, a frame, an array or a source, as `eccaht.data.as_source` takes them.
    window: a length of time, or as many rows as "60rows" says for data without times.
    progress: is called with the share that is done and the stage.
    """
    seconds, count_rows = parse_window(window)
    check_estimator(estimator)
    ridge = default_ridge(estimator, ridge)
    tell: Progress = progress or (lambda share, stage: None)  # noqa: ARG005
    tell(0.0, "reading")
    check_limits(start, stop)
    source = recorded_of(data, decimal_comma=decimal_comma, header=header)
    if source.size > _LARGE_FILES:
        Thread(target=preload, args=(estimator,)).start()
    table = read_table(
        source,
        columns=columns,
        exclude=exclude,
        time_column=time_column,
        row_interval=row_interval,
        count_rows=count_rows,
        timezone=timezone,
        start=start,
        stop=stop,
    )
    return _model(table, seconds, estimator, ridge, source.header, tell)


def _model(table: Table, seconds: float, estimator: str, ridge: float, header: bool, tell: Progress) -> Model:
    cut, full = _cut(table, seconds)
    cleaned = _clean(table, cut, full, tell)
    sensors = [column for column in cleaned if isinstance(column, Sensor)]
    reports = _in_order(table, [column.report if isinstance(column, Sensor) else column for column in cleaned])
    if len(sensors) < 2:
        raise ValueError(_too_few(table, reports))
    tell(0.9, "estimating")
    values = np.column_stack([sensor.means for sensor in sensors])[full]
    values = np.asfortranarray(values) if table.by_column else values  # the last bits of sums depend on it
    mean, covariance = estimate(values, estimator, ridge)
    short = int((~full).sum())
    were = "was" if short == 1 else "were"
    left_out = f"{counted(short, 'window')} with less than half of the usual rows {were} left out"
    return Model(
        names=tuple(sensor.report.name for sensor in sensors),
        center=np.array([sensor.center for sensor in sensors]),
        scale=np.array([sensor.scale for sensor in sensors]),
        seconds=seconds,
        mean=mean,
        covariance=covariance,
        estimator=estimator,
        ridge=ridge,
        n_windows=len(values),
        first=cut.starts[full][0],
        last=cut.starts[full][-1],
        columns=tuple(reports),
        reading=_reading(table, sensors, header) | {"notes": [*table.notes, *[left_out] * (not full.all())]},
        summary=_summary(values, sensors, cut, covariance),
    )


def _summary(values: Array, sensors: Sequence[Sensor], cut: Cut, covariance: Covariance) -> History:
    """What the model remembers of the windows, and of the rows behind them."""
    rows = np.stack([sensor.rows for sensor in sensors], axis=2)
    within, runs = row_noise(rows, covariance if len(sensors) <= MOST_SENSORS else None)
    return summarise(
        values,
        np.array([sensor.stuck for sensor in sensors]),
        np.column_stack([sensor.quartiles for sensor in sensors]),
        gaps=np.array([sensor.gap for sensor in sensors]),
        row_counts=np.array([rows.shape[1], cut.rows.sum()], dtype=np.float64),
        within=within,
        runs=runs,
    )


def _reading(table: Table, sensors: Sequence[Sensor], header: bool) -> dict[str, Any]:
    """What preparing new data needs to know."""
    return {
        "time_columns": list(table.rule.columns),
        "time_format": list(table.rule.formats),
        "timezone": table.clock.zone,
        "decimal_comma": table.decimal_comma,
        "header": header,
        "row_interval": table.rule.row_interval,
        "counted": table.rule.counted,
        "interval": table.interval,
        "kinds": {sensor.report.name: sensor.report.kind for sensor in sensors},
        "levels": {sensor.report.name: list(sensor.levels) for sensor in sensors if sensor.levels is not None},
    }


def _cut(table: Table, seconds: float) -> tuple[Cut, NDArray[np.bool_]]:
    """The windows of a table, and which of them have at least half of the usual rows: those count."""
    interval, length = table.interval, table.clock.length
    if interval == 0.0:
        raise ValueError(f"{table.label} has rows of a single moment only: a history needs many")
    if seconds < 0.999 * interval:
        raise ValueError(
            f"a window of {length(seconds)} is shorter than the {length(interval)} between rows: "
            f"use at least {length(interval)}"
        )
    cut = Cut.of(table.times, seconds, table.clock)
    full = 2 * cut.rows >= np.median(cut.rows)
    if (windows := int(full.sum())) < FEWEST_WINDOWS:
        raise ValueError(
            f"{table.label} has only {len(table.times)} rows in {windows} windows of {length(seconds)}: "
            f"a model needs at least {FEWEST_WINDOWS} windows; give a longer history or shorter windows"
        )
    return cut, full


def _in_order(table: Table, reports: Sequence[ColumnReport]) -> list[ColumnReport]:
    """The reports of all columns in the order of the file, those that were not read included."""
    read = {report.name: report for report in reports}
    return [
        read.get(name) or ColumnReport(name, False, "time" if name in table.rule.columns else "excluded")
        for name in table.all_names
    ]


def _too_few(table: Table, reports: Sequence[ColumnReport]) -> str:
    """Why no two sensors are left."""
    kept = [report.name for report in reports if report.kept]
    left = f"only {kept[0]!r} is left" if kept else "none is left"
    counts = Counter(report.reason for report in reports if not report.kept and report.reason != "time")
    why = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    return f"{table.label}: a model needs at least 2 sensors, but {left}" + (
        f" (columns dropped: {why})" if why else ""
    )


# -- one column after the other ------------------------------------------------------------------------


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


def _clean(table: Table, cut: Cut, full: NDArray[np.bool_], tell: Progress) -> list[Sensor | ColumnReport]:
    """Clean every column, a few at a time: sensors, and reports of those that are dropped."""
    cleaned: list[Sensor | ColumnReport] = []
    sampled = sampled_rows(cut, full, len(table.names))
    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        for column in pool.map(lambda name: _clean_column(table, name, cut, full, sampled), table.names):
            cleaned.append(column)
            tell(0.5 + 0.4 * len(cleaned) / len(table.names), "cleaning")
    return cleaned


def _clean_column(table: Table, name: str, cut: Cut, full: NDArray[np.bool_], sampled: Index) -> Sensor | ColumnReport:
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
    filled = fill_status(column) if kind == "status" else fill_continuous(column, table.times)
    low, high = float(filled.min()), float(filled.max())
    if max(-low, high) > _LARGEST:
        raise ValueError(
            f"column {name!r} has readings too large to compute with ({low:.3g} to {high:.3g}): mend or exclude it"
        )
    if low == high:
        return ColumnReport(name, False, "constant", kind, imputed)
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
    return Sensor(report, levels, center, scale, means, longest_run(filled), quartiles, gap, rows)
