"""From a history of normal operation to a model, with windows as long as its rows suggest."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import check_limits, parse_window
from eccaht.base.presentation.text import counted, listed
from eccaht.plants.data.cleaning import LABEL, UNPREDICTED, ColumnReport
from eccaht.plants.data.recorded import recorded_of
from eccaht.plants.data.source import read_table
from eccaht.plants.data.windows import Cut, Table, Windows, follows
from eccaht.plants.model.estimators import FEWEST_WINDOWS, check_estimator, default_ridge, estimate, preload
from eccaht.plants.model.fitting import FEWEST_NORMAL, explained, fit_normal
from eccaht.plants.model.history import Progress, Sensor, clean
from eccaht.plants.model.model import Model

ENOUGH_WINDOWS = 1000  # are enough to fit; beyond that, prefer longer windows
_LONGEST = 60.0
_ROUND = (60.0, 30.0, 20.0, 15.0, 10.0, 5.0, 2.0)  # and 1, 0.5, 0.2, 0.1, ...
_ROUND_ROWS = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0)  # seconds, minutes; hours and a day
JITTER = 0.05  # share of the time between rows by which it may be misjudged where times are not exact
_NEAR = 0.01  # share by which a round length between rows is misjudged
_UNEVEN = 0.1  # of the rows of a window: more would make some windows noisier than others
_LARGE_FILES = 1 << 26  # bytes; reading more takes longer than to import scikit-learn
_STILL = 0.5  # share of the rows in which a sensor repeats one value
_FOLLOWS = 0.2  # share of the variance of a status that the others explain, below which it is left out
_ENOUGH_TO_JUDGE = 100  # windows: fewer cannot say what a status follows
_COPY = 0.999  # correlation of the windows of two sensors that are nearly the same
_MOST_KEPT = 1 << 19  # values of the history in a model: 4 MB
_STRETCH = 500  # windows of each stretch of a history that is too long to keep
_LONGEST_NOTE = 480  # characters: names may be long


def calibrate(data: Any, **options: Any) -> Model:
    """A model of a history; the options are those of `calibrate_with_windows`."""
    return calibrate_with_windows(data, **options)[0]


def calibrate_with_windows(
    data: Any,
    *,
    window: str | float | None = None,
    estimator: str = "ledoit-wolf",
    ridge: float | None = None,
    decimal_comma: bool | None = None,
    header: bool = True,
    drop_unpredicted: bool = False,
    progress: Progress | None = None,
    **reading: Any,
) -> tuple[Model, Windows]:
    """Read a history, clean it, scale it, cut it into windows and fit a model of normal operation to them.

    Returned with the windows that it was fitted to, in which the gaps of the history are filled.

    data: paths of files, a frame, an array or a source, as `eccaht.plants.data.read_table` takes them.
    window: a length of time, or as many rows as "60rows" says for data without times; see `default_window` if None.
    drop_unpredicted: leave out status columns that the others do not predict, unless they are called by name.
    progress: is called with the share that is done and the stage. reading: options of `eccaht.plants.data.read_table`.
    """
    given, count_rows = (None, None) if window is None else parse_window(window)
    check_estimator(estimator)
    ridge = default_ridge(estimator, ridge)
    advance: Progress = progress or (lambda share, stage: None)  # noqa: ARG005
    advance(0.0, "reading")
    check_limits(reading.get("start"), reading.get("stop"))
    source = recorded_of(data, decimal_comma=decimal_comma, header=header)
    if source.size > _LARGE_FILES:
        Thread(target=preload, args=(estimator,)).start()
    table = read_table(source, count_rows=count_rows, **reading)
    seconds = _length(table, given)
    cut, full = _cut(table, seconds)
    chosen = reading.get("columns")
    named = source.layouts[0].named(() if chosen is None else chosen)
    cleaned = clean(table, cut, full, advance, named)
    if drop_unpredicted:
        cleaned = _without_unpredicted(table, cleaned, full, named)
    sensors = [column for column in cleaned if isinstance(column, Sensor)]
    reports = _in_order(table, [column.report if isinstance(column, Sensor) else column for column in cleaned])
    if len(sensors) < 2:
        raise ValueError(_too_few(table, reports))
    advance(0.9, "estimating")
    windows = _windows(table, sensors, cut, full, seconds)
    values = np.asfortranarray(windows.values) if table.by_column else windows.values  # the last bits depend on it
    mean, covariance = estimate(values, estimator, ridge)
    notes = [
        *table.notes,
        *_shortened([*_infinite(table, reports), *_left_out(reports), *_notes(sensors, values, full)]),
    ]
    model = Model(
        names=windows.names,
        center=np.array([sensor.center for sensor in sensors]),
        scale=np.array([sensor.scale for sensor in sensors]),
        seconds=seconds,
        mean=mean,
        covariance=covariance,
        estimator=estimator,
        ridge=ridge,
        n_windows=len(values),
        first=windows.starts[0],
        last=windows.starts[-1],
        columns=tuple(reports),
        reading=_reading(table, sensors, source.header) | {"notes": notes},
        gaps=np.array([sensor.gap for sensor in sensors]),
        usual_rows=float(int(np.median(cut.rows[full]))),
    )
    advance(0.95, "counting what is rare")
    model = _with_normal(model, windows)
    return model, replace(windows, model=model)


def _without_unpredicted(
    table: Table, cleaned: list[Sensor | ColumnReport], full: NDArray[np.bool_], named: Collection[str]
) -> list[Sensor | ColumnReport]:
    """The columns without status columns that the others do not predict; named: those that are kept all the same.

    Nothing can tell a wrong switch of them from a right one, and each right one would look like a fault. Partial
    correlation is symmetric: what the others do not predict tells next to nothing about any of them. Readings far
    beyond all that they had in the history are noticed all the same.
    """
    sensors = [column for column in cleaned if isinstance(column, Sensor)]
    asked = [each.report.kind == "status" and each.report.name not in named for each in sensors]
    if not any(asked) or int(full.sum()) < _ENOUGH_TO_JUDGE:
        return cleaned
    shares = explained(np.column_stack([sensor.means for sensor in sensors])[full])
    below = {
        each.report.name for each, ask, share in zip(sensors, asked, shares, strict=True) if ask and share < _FOLLOWS
    }
    if len(sensors) - len(below) < 2:
        return cleaned
    return [
        _unpredicted(table, column) if isinstance(column, Sensor) and column.report.name in below else column
        for column in cleaned
    ]


def _unpredicted(table: Table, sensor: Sensor) -> ColumnReport:
    report = ColumnReport(sensor.report.name, False, UNPREDICTED, "status", sensor.report.imputed)
    if sensor.levels is not None:
        return report
    readings = table.numbers(report.name)
    return replace(report, low=float(np.nanmin(readings)), high=float(np.nanmax(readings)))


def _windows(table: Table, sensors: Sequence[Sensor], cut: Cut, full: NDArray[np.bool_], seconds: float) -> Windows:
    rows, flat = (np.column_stack([getattr(sensor, part) for sensor in sensors])[full] for part in ("present", "flat"))
    values = np.column_stack([sensor.means for sensor in sensors])[full]
    names = tuple(sensor.report.name for sensor in sensors)
    return Windows(cut.starts[full], values, names, seconds, rows, flat, clock=table.clock)


def _with_normal(model: Model, windows: Windows) -> Model:
    """The model with normal operation fitted to these windows, if they are enough to say what is rare."""
    if len(windows.values) < FEWEST_NORMAL:
        return model
    following = follows(windows)
    normal = fit_normal(np.ascontiguousarray(windows.values), following)
    return replace(model, normal=normal, history=_kept(windows.values, following))


def _kept(values: Array, following: NDArray[np.bool_]) -> Array:
    """The windows that the model keeps, (T, K), with a row of NaN where windows are missing between two."""
    T, K = values.shape
    whole, pieces = T * K <= _MOST_KEPT, max(_MOST_KEPT // (K * _STRETCH), 1)
    starts = [0] if whole else np.linspace(0, max(T - _STRETCH, 0), pieces).astype(int).tolist()
    chosen = np.unique(np.concatenate([np.arange(start, T if whole else min(start + _STRETCH, T)) for start in starts]))
    after = following[chosen[1:] - 1] & (np.diff(chosen) == 1)
    return np.asarray(np.insert(values[chosen], np.flatnonzero(~after) + 1, np.nan, axis=0))


def _notes(sensors: Sequence[Sensor], values: Array, full: NDArray[np.bool_]) -> list[str]:
    """What a user should know of the windows and the sensors."""
    notes = []
    if len(values) < FEWEST_NORMAL:
        notes.append(
            f"fewer than {FEWEST_NORMAL} windows: identify and watch will refuse this model, only searches by sums "
            "can use it"
        )
    if short := int((~full).sum()):
        were = "was" if short == 1 else "were"
        notes.append(f"{counted(short, 'window')} with less than half of the usual rows {were} left out")
    names = [sensor.report.name for sensor in sensors]
    still = [s.report.name for s in sensors if s.stuck > _STILL and s.report.kind == "continuous"]
    if still:
        kept = f"kept, and judged by how rarely {'it moves' if len(still) == 1 else 'they move'}"
        notes.append(f"one value repeats for more than half of the history in {listed(still, 5)}: {kept}")
    centred = values - values.mean(axis=0)
    centred /= np.sqrt(np.einsum("tk,tk->k", centred, centred))
    pairs = np.argwhere(np.triu(np.abs(centred.T @ centred) > _COPY, 1))
    if len(pairs):
        alike = listed([f"{names[i]} = {names[j]}" for i, j in pairs.tolist()], 4)
        notes.append(f"sensors that read nearly the same, all kept: {alike}")
    return notes


def _infinite(table: Table, reports: Sequence[ColumnReport]) -> list[str]:
    gappy = [report.name for report in reports if report.imputed and report.name not in table.texts]
    counts = [int(np.isinf(table.numbers(name, infinite=True)).sum()) for name in gappy]
    found = [f"{count} of {name}" for name, count in zip(gappy, counts, strict=True) if count]
    return [f"infinite readings were taken as missing: {listed(found, 5)}"] if found else []


def _left_out(reports: Sequence[ColumnReport]) -> list[str]:
    """Which columns look like labels or follow no other, and how to keep one."""
    notes = []
    for reason, of_one, of_several in (
        (LABEL, "it looks like a label", "they look like labels"),
        (UNPREDICTED, "no other column predicts this status", "no other column predicts these statuses"),
    ):
        names = [report.name for report in reports if report.reason == reason]
        if names:
            what, which = (of_one, "it") if len(names) == 1 else (of_several, "one of them")
            keep = f"to keep {which}, name it among the columns, as '*,{names[0]}'"
            notes.append(f"left out, because {what}: {listed(names, 5)}; {keep}")
    return notes


def _shortened(notes: Sequence[str]) -> list[str]:
    """Notes are kept in the model, so they must be short."""
    return [note if len(note) <= _LONGEST_NOTE else note[: _LONGEST_NOTE - 3] + "..." for note in notes]


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
        "decimals": {sensor.report.name: sensor.decimals for sensor in sensors},
    }


def _length(table: Table, given: float | None) -> float:
    """Seconds of a window, which must not be shorter than the time between rows."""
    interval, length = table.interval, table.clock.length
    if interval == 0.0:
        raise ValueError(f"{table.label} has rows of a single moment only: a history needs many")
    if given is None:
        return default_window(table)
    if given < (1.0 - JITTER) * interval:
        raise ValueError(
            f"a window of {length(given)} is shorter than the {length(interval)} between rows: "
            f"use at least {length(interval)}"
        )
    return given


def _cut(table: Table, seconds: float) -> tuple[Cut, NDArray[np.bool_]]:
    """The windows of a table, and which of them have at least half of the usual rows: those count."""
    cut = Cut.of(table.times, seconds, table.clock)
    full = cut.full
    if (windows := int(full.sum())) < FEWEST_WINDOWS:
        shorter = " or shorter windows" if seconds >= 2 * table.interval else ""
        raise ValueError(
            f"{table.label} has only {len(table.times)} rows in {windows} windows of {table.clock.length(seconds)}: "
            f"a model needs at least {FEWEST_WINDOWS} windows, to identify and watch {FEWEST_NORMAL}; "
            f"give a longer history{shorter}"
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


def default_window(table: Table) -> float:
    """Seconds of a window, or rows where these are counted.

    Means of several rows have less noise, and a minute is soon enough for an answer; but a model needs windows. So it
    is the longest round length up to a minute that leaves ENOUGH_WINDOWS. Where none does, or rows are a minute apart
    or more, each row is a window.
    """
    if table.rule.counted:
        return 1.0
    interval = table.interval
    if interval < (1.0 - JITTER) * _LONGEST:
        for seconds in _round_lengths(interval):
            if int(Cut.of(table.times, seconds, table.clock).full.sum()) >= ENOUGH_WINDOWS:
                return seconds
    return _single_row(interval)


def _round_lengths(interval: float) -> Iterator[float]:
    """Round lengths from a minute down to the time between rows that hold about the same number of rows each."""
    fractions = (float(f"{digit}e{power}") for power in range(0, -7, -1) for digit in (1, 0.5, 0.2))
    for seconds in (*_ROUND, *fractions):
        rows = seconds / interval
        if rows >= 1.0 - JITTER and abs(rows - round(rows)) <= _UNEVEN * rows:
            yield seconds


def _single_row(interval: float) -> float:
    """The time between rows, the round one beside it if there is one: the median of jittered times is not exact."""
    units = (*(10.0**power for power in range(-6, 1)), 60.0, 3600.0)
    round_ones = (*(unit * number for unit in units for number in _ROUND_ROWS), 86400.0)
    nearest = min(round_ones, key=lambda seconds: abs(seconds - interval))
    return round(nearest if abs(nearest - interval) <= _NEAR * interval else interval, 6)
