"""From a history of normal operation to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.covariance import Covariance
from eccaht.data.cleaning import ColumnReport
from eccaht.data.durations import parse_window
from eccaht.data.reading import Paths, Table, listed, read_table
from eccaht.data.windows import Cut
from eccaht.model.columns import Column, Sensor, clean
from eccaht.model.estimators import FEWEST_WINDOWS, check_estimator, default_ridge, estimate, preload
from eccaht.model.history import MOST_SENSORS, Behind, summarise
from eccaht.model.model import Model
from eccaht.model.rows import row_noise

_LARGE_FILES = 1 << 26  # bytes; reading more takes longer than to import scikit-learn
Progress = Callable[[float, str], object]


def calibrate(
    paths: Paths,
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

    The options about reading are those of `read_table`. window: a length of time, or as many rows as "60rows" says for
    files without times. progress is called with the share that is done and the stage.
    """
    seconds, count_rows = parse_window(window)
    check_estimator(estimator)
    ridge = default_ridge(estimator, ridge)
    tell: Progress = progress or (lambda share, stage: None)  # noqa: ARG005
    tell(0.0, "reading")
    files = listed(paths)
    if sum(path.stat().st_size for path in files if path.is_file()) > _LARGE_FILES:
        Thread(target=preload, args=(estimator,)).start()
    table = read_table(
        files,
        columns=columns,
        exclude=exclude,
        time_column=time_column,
        row_interval=row_interval,
        count_rows=count_rows,
        timezone=timezone,
        decimal_comma=decimal_comma,
        header=header,
        start=start,
        stop=stop,
    )
    return _model(table, seconds, estimator, ridge, header, tell)


def _model(table: Table, seconds: float, estimator: str, ridge: float, header: bool, tell: Progress) -> Model:
    _check_window(table, seconds)
    cut = Cut.of(table.times, seconds, table.clock)
    full = 2 * cut.rows >= np.median(cut.rows)
    _check_number(table, int(full.sum()), seconds)
    cleaned = clean(table, cut, full, tell)
    sensors = [column.sensor for column in cleaned if column.sensor is not None]
    reports = _in_order(table, [column.report for column in cleaned])
    if len(sensors) < 2:
        raise ValueError(_too_few(table, reports))
    tell(0.9, "estimating")
    values = np.column_stack([sensor.means for sensor in sensors])[full]
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
        "levels": {column.report.name: column.levels for column in kept if column.levels is not None},
    }


def _check_window(table: Table, seconds: float) -> None:
    interval, length = table.interval, table.clock.length
    if interval == 0.0:
        raise ValueError(f"{table.paths[0]} has rows of a single moment only: a history needs many")
    if seconds < 0.999 * interval:
        raise ValueError(
            f"a window of {length(seconds)} is shorter than the {length(interval)} between rows: "
            f"use at least {length(interval)}"
        )


def _check_number(table: Table, windows: int, seconds: float) -> None:
    if windows < FEWEST_WINDOWS:
        raise ValueError(
            f"{table.paths[0]} has only {len(table.times)} rows in {windows} windows of {table.clock.length(seconds)}: "
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
    return f"{table.paths[0]}: a model needs at least 2 sensors, but {left}" + (
        f" (columns dropped: {why})" if why else ""
    )


def _window_notes(full: NDArray[np.bool_]) -> list[str]:
    cut = int((~full).sum())
    return [f"{cut} windows with less than half of the usual rows were left out"] if cut else []
