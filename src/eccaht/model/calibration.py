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
from eccaht.data import cleaning
from eccaht.data.cleaning import MOST_TEXTS, ColumnReport
from eccaht.data.durations import parse_window
from eccaht.data.source import read_table, recorded_of
from eccaht.data.table import Table, check_limits
from eccaht.data.windows import Cut
from eccaht.model.estimators import FEWEST_WINDOWS, check_estimator, default_ridge, estimate, preload
from eccaht.model.history import MOST_SENSORS, Behind, longest_run, longest_true, summarise
from eccaht.model.model import Model
from eccaht.model.rows import row_noise, sampled_rows

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

    data: paths of files, a frame, an array or a source, as `eccaht.data.as_source` takes them. The options about
    reading are those of `read_table`. window: a length of time, or as many rows as "60rows" says for data without
    times. progress is called with the share that is done and the stage.
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
    _check_window(table, seconds)
    cut = Cut.of(table.times, seconds, table.clock)
    full = 2 * cut.rows >= np.median(cut.rows)
    _check_number(table, int(full.sum()), seconds)
    cleaned = _clean(table, cut, full, tell)
    sensors = [column.sensor for column in cleaned if column.sensor is not None]
    reports = _in_order(table, [column.report for column in cleaned])
    if len(sensors) < 2:
        raise ValueError(_too_few(table, reports))
    tell(0.9, "estimating")
    values = np.column_stack([sensor.means for sensor in sensors])[full]
    values = np.asfortranarray(values) if table.by_column else values  # the last bits of sums depend on it
    mean, covariance = estimate(values, estimator, ridge)
    stuck, quartiles = [sensor.stuck for sensor in sensors], [sensor.quartiles for sensor in sensors]
    return Model(
        names=tuple(report.name for report in reports if report.kept),
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
        reading=_reading(table, cleaned, header) | {"notes": [*table.notes, *_window_notes(full)]},
        summary=summarise(values, np.array(stuck), np.column_stack(quartiles), _behind(sensors, cut, covariance)),
    )


def _behind(sensors: Sequence[Sensor], cut: Cut, covariance: Covariance) -> Behind:
    """What the rows behind the windows are like."""
    rows = np.stack([sensor.rows for sensor in sensors], axis=2)
    within, runs = row_noise(rows, covariance if len(sensors) <= MOST_SENSORS else None)
    counts = np.array([rows.shape[1], cut.rows.sum()], dtype=np.float64)
    return Behind(np.array([sensor.gap for sensor in sensors]), counts, within, runs)


def _reading(table: Table, cleaned: Sequence[Column], header: bool) -> dict[str, Any]:
    """What preparing new data needs to know."""
    kept = [column for column in cleaned if column.sensor is not None]
    return {
        "time_columns": list(table.rule.columns),
        "time_format": list(table.rule.formats),
        "timezone": table.clock.zone,
        "decimal_comma": table.decimal_comma,
        "header": header,
        "row_interval": table.rule.row_interval,
        "counted": table.rule.counted,
        "interval": table.interval,
        "kinds": {column.report.name: column.report.kind for column in kept},
        "levels": {column.report.name: list(column.levels) for column in kept if column.levels is not None},
    }


def _check_window(table: Table, seconds: float) -> None:
    interval, length = table.interval, table.clock.length
    if interval == 0.0:
        raise ValueError(f"{table.label} has rows of a single moment only: a history needs many")
    if seconds < 0.999 * interval:
        raise ValueError(
            f"a window of {length(seconds)} is shorter than the {length(interval)} between rows: "
            f"use at least {length(interval)}"
        )


def _check_number(table: Table, windows: int, seconds: float) -> None:
    if windows < FEWEST_WINDOWS:
        raise ValueError(
            f"{table.label} has only {len(table.times)} rows in {windows} windows of {table.clock.length(seconds)}: "
            f"a model needs at least {FEWEST_WINDOWS} windows; give a longer history or shorter windows"
        )


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


def _window_notes(full: NDArray[np.bool_]) -> list[str]:
    cut = int((~full).sum())
    return [f"{cut} windows with less than half of the usual rows were left out"] if cut else []


# -- one column after the other ------------------------------------------------------------------------


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
    levels: Sequence[str] | None = None


def _clean(table: Table, cut: Cut, full: NDArray[np.bool_], tell: Progress) -> list[Column]:
    """Clean every column, a few at a time; `full` says which windows count."""
    cleaned: list[Column] = []
    sampled = sampled_rows(cut, full, len(table.names))
    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        for column in pool.map(lambda name: _clean_column(table, name, cut, full, sampled), table.names):
            cleaned.append(column)
            tell(0.5 + 0.4 * len(cleaned) / len(table.names), "cleaning")
    return cleaned


def _clean_column(table: Table, name: str, cut: Cut, full: NDArray[np.bool_], sampled: Index) -> Column:
    levels: Sequence[str] | None = None
    if name in table.texts:
        levels, column = table.status(name)
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
