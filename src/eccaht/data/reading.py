"""Tables of readings from files: CSV, gzipped CSV or Parquet, one or several, in any order of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.cleaning import kind_of
from eccaht.data.clock import Clock, as_zone, common_zone
from eccaht.data.durations import parse_duration
from eccaht.data.faults import Faults
from eccaht.data.selection import matching, place_of
from eccaht.data.sniffing import Layout, sniff
from eccaht.data.timing import Stamps, TimeRule, read_times, time_rule
from eccaht.data.windows import Times
from eccaht.files import regular_file

if TYPE_CHECKING:
    import polars as pl

    from eccaht.data.expecting import Expected

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True)
class Table:
    """Readings with their times, rows in order of time; rows of equal time stay in the order of the files.

    times: datetime64[us], shape (N,). names: the columns that were read; all_names: also those that were not.
    texts: the columns that hold text. clock: what the times mean.
    rule: how the times were read. notes: what a user should know of how the files were read; zone_notes: those of
    them about time zones.
    """

    times: Times
    names: tuple[str, ...]
    all_names: tuple[str, ...]
    texts: frozenset[str]
    rule: TimeRule
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    clock: Clock = field(default_factory=Clock)
    zone_notes: tuple[str, ...] = ()
    decimal_comma: bool = False
    _frame: pl.DataFrame = field(repr=False, kw_only=True)
    _rows: NDArray[np.intp] | slice = field(repr=False, kw_only=True)

    def numbers(self, name: str) -> Array:
        """The readings of a numeric column; NaN where there is none. May be a read-only view."""
        series = self._frame[name]
        if series.null_count():  # much faster than to leave it to to_numpy
            series = series.rechunk().fill_null(np.nan)
        column: Array = series.to_numpy()[self._rows]
        with np.errstate(all="ignore"):
            total = column.sum()
        if np.isfinite(total):  # the quick way to know that nothing is missing or infinite
            return column
        infinite = np.isinf(column)
        return np.where(infinite, np.nan, column) if infinite.any() else column

    def levels(self, name: str) -> tuple[list[str], Array]:
        """The distinct texts of a column, sorted, and their number in each row; NaN where there is none."""
        import polars as pl

        series = self._frame[name]
        levels = sorted(series.drop_nulls().unique().to_list())
        codes = series.replace_strict(levels, list(range(len(levels))), default=None, return_dtype=pl.Float64)
        return levels, codes.to_numpy()[self._rows]

    @property
    def interval(self) -> float:
        """The usual number of seconds between rows, 0 for a single row."""
        steps = np.diff(self.times).astype(np.int64)
        return float(np.median(steps[steps > 0])) / 1e6 if (steps > 0).any() else 0.0


def read_table(
    paths: Paths,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    time_column: str | Sequence[str] | None = None,
    row_interval: str | float | None = None,
    count_rows: bool = False,
    timezone: str | None = None,
    decimal_comma: bool | None = None,
    header: bool = True,
    start: Any = None,
    stop: Any = None,
    rule: TimeRule | None = None,
) -> Table:
    """Read files that have the same columns, by name.

    columns, exclude: names, in which * and ? stand for any characters; all columns unless given.
    time_column: its name, or those of a date and a time column; found by itself unless given.
    row_interval: for files without times, the time between rows. count_rows: for such files if that is unknown.
    timezone: where times without an offset are, and where all are shown; as `as_zone` takes it.
    decimal_comma: whether numbers are written as 1,5; found by itself in each file unless given.
    header: whether the files have column names; without them they are called c1, c2, ...
    start, stop: rows before `start` and from `stop` on are left out: local times, or the numbers of rows without times.
    rule: how an earlier file's times were read, tried first.
    """
    check_limits(start, stop)
    interval = None if row_interval is None else parse_duration(row_interval, "row interval")
    if time_column is not None and (interval is not None or count_rows):
        raise ValueError("give either a time column, or rows that are counted or so far apart, not both")
    zone = None if timezone is None else as_zone(timezone)
    layouts = [sniff(path, decimal_comma, header=header) for path in listed(paths)]
    rule = time_rule(layouts[0], time_column, interval, rule, counted=count_rows)
    chosen = _chosen(layouts, rule, columns, exclude)
    return assemble(layouts, rule, chosen, start, stop, zone=zone)


def assemble(
    layouts: Sequence[Layout],
    rule: TimeRule,
    chosen: Sequence[str],
    start: Any = None,
    stop: Any = None,
    *,
    zone: str | None = None,
    expected: Expected | None = None,
    faults: Faults | None = None,
    before: int | None = None,
) -> Table:
    """Read these columns of all files and bring the rows in order.

    zone: of the times. expected, faults: take the columns to be what they are expected to be, and count what they
    are not; otherwise it is refused. before: the time of the last row of an earlier part, if there was one.
    """
    import polars as pl

    from eccaht.data import loading
    from eccaht.data.expecting import as_expected

    parts: list[pl.DataFrame] = []
    stamps: list[Stamps] = []
    notes: list[str] = []
    for layout in layouts:
        if rule.columns and any(place_of(layout, name) is None for name in rule.columns):
            raise ValueError(f"{layout.path} has no time column {' and '.join(map(repr, rule.columns))}")
        places = {name: place for name in chosen if (place := place_of(layout, name)) is not None}
        layout, frame = loading.load(layout, places, rule, faults)
        if faults is not None and expected is not None:
            frame = as_expected(layout, frame, {name: expected[name] for name in places}, faults)
        frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in chosen if name not in places)
        frame, read, rule = read_times(layout, frame, rule, sum(len(each.moments) for each in stamps), faults)
        parts.append(frame)
        stamps.append(read)
        notes += layout.notes
    whole = parts[0] if len(parts) == 1 else _joined(layouts, parts)
    del parts
    clock, moments, more = _on_one_clock(stamps, rule, zone, before)
    order, moments = _ordered(moments, *limits(clock, start, stop))
    if not len(moments):
        raise NoRows(_nothing_left(layouts, clock, start, stop))
    texts = frozenset(name for name in chosen if whole.schema[name] == pl.String)
    return Table(
        moments.view("datetime64[us]"),
        tuple(chosen),
        layouts[0].names,
        texts,
        rule,
        tuple(layout.path for layout in layouts),
        (*notes, *more, *_notes(rule, order, moments)),
        clock,
        tuple(more),
        layouts[0].decimal_comma,
        _frame=whole,
        _rows=order,
    )


class NoRows(ValueError):
    """No row is left between the limits."""


def _on_one_clock(
    stamps: Sequence[Stamps], rule: TimeRule, zone: str | None, before: int | None
) -> tuple[Clock, NDArray[np.int64], list[str]]:
    """The times of all files on one clock, times without an offset as local ones."""
    if rule.row_interval is not None:
        if zone is not None:
            raise ValueError("a time zone needs times, and rows are counted here: leave out --timezone")
        return Clock(row_interval=rule.row_interval, counted=rule.counted), _together(stamps), []
    notes: list[str] = []
    if zone is None:
        zone, notes = common_zone([read.zone for read in stamps if len(read.moments)])
    clock = Clock(zone)
    if all(read.zone is None for read in stamps):
        moments, more = clock.to_utc(_together(stamps), before)
        return clock, moments, notes + more
    told = [(read.moments, []) if read.zone else clock.to_utc(read.moments, before) for read in stamps]
    return clock, np.concatenate([moments for moments, _ in told]), notes + [text for _, more in told for text in more]


def _together(stamps: Sequence[Stamps]) -> NDArray[np.int64]:
    return stamps[0].moments if len(stamps) == 1 else np.concatenate([read.moments for read in stamps])


def listed(paths: Paths) -> list[Path]:
    """One or several paths as a list."""
    several = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not several:
        raise ValueError("give at least one file")
    for path in several:
        regular_file(path, "file").close()
    return [Path(path) for path in several]


def check_limits(start: Any, stop: Any) -> None:
    """Refuse what can be no limit, before any file is read."""
    for told, what in ((start, "start"), (stop, "stop")):
        if told is not None and not str(told).strip().lower().removeprefix("row").strip().isdigit():
            Clock("UTC").parse(told, what)


def limits(clock: Clock, start: Any, stop: Any) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """The times between which rows are read; None is no limit."""
    first = None if start is None else clock.parse(start, "start")
    last = None if stop is None else clock.parse(stop, "stop")
    if first is not None and last is not None and last <= first:
        raise ValueError(f"stop {clock.show(last)} must be later than start {clock.show(first)}")
    return first, last


def _chosen(
    layouts: Sequence[Layout], rule: TimeRule, columns: Sequence[str] | None, exclude: Sequence[str]
) -> list[str]:
    """The columns to read, which every file must have."""
    model = layouts[0]
    times = {place_of(model, name) for name in rule.columns}
    places = range(len(model.names)) if columns is None else matching(model, columns, "--columns")
    out = set(matching(model, exclude, "--exclude"))
    chosen = [model.names[k] for k in places if k not in times and k not in out]
    if not chosen:
        raise ValueError(f"no column of {model.path} is left to read")
    for layout in layouts[1:]:
        absent = [name for name in chosen if place_of(layout, name) is None]
        if absent:
            raise ValueError(f"{layout.path} has no column {absent[0]!r}, which {model.path} has")
        if columns is None:
            known = {place_of(layout, name) for name in (*model.names, *rule.columns)}
            extra = [name for k, name in enumerate(layout.names) if k not in known]
            if extra:
                raise ValueError(f"{layout.path} has a column {extra[0]!r}, which {model.path} has not")
    return chosen


def _joined(layouts: Sequence[Layout], parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate; a column that is text in one file, but empty or a few whole numbers in another, is text."""
    import polars as pl

    for name in parts[0].columns:
        texts = [k for k, part in enumerate(parts) if part.schema[name] == pl.String]
        for k, part in enumerate(parts):
            if not texts or k in texts:
                continue
            if kind_of(part[name].to_numpy()) == "continuous":
                raise ValueError(
                    f"column {name!r} holds numbers in {layouts[k].path} but texts in {layouts[texts[0]].path}: "
                    "exclude it, or make it one of both"
                )
            parts[k] = part.with_columns(pl.col(name).cast(pl.Int64).cast(pl.String))
    return pl.concat([part.select(parts[0].columns) for part in parts])


def _ordered(
    moments: NDArray[np.int64], first: np.datetime64 | None, last: np.datetime64 | None
) -> tuple[NDArray[np.intp] | slice, NDArray[np.int64]]:
    """The rows in order of time between the limits, and their times."""
    order: NDArray[np.intp] | None = None
    if (moments[1:] < moments[:-1]).any():
        order = np.argsort(moments, kind="stable")
        moments = moments[order]
    a = 0 if first is None else int(np.searchsorted(moments, first.astype(np.int64)))
    b = len(moments) if last is None else int(np.searchsorted(moments, last.astype(np.int64)))
    b = max(a, b)
    return (slice(a, b) if order is None else order[a:b]), moments[a:b]


def _nothing_left(layouts: Sequence[Layout], clock: Clock, start: Any, stop: Any) -> str:
    name = str(layouts[0].path) + (" and the others" if len(layouts) > 1 else "")
    if start is None and stop is None:
        return f"{name}: no rows"
    first, last = limits(clock, start, stop)
    told = [f"from {clock.show(first)}"] if first is not None else []
    told += [f"before {clock.show(last)}"] if last is not None else []
    return f"{name}: no row {' and '.join(told)}"


def _notes(rule: TimeRule, order: NDArray[np.intp] | slice, moments: NDArray[np.int64]) -> list[str]:
    notes = list(rule.notes)
    if not isinstance(order, slice):
        notes.append("rows were not in order of time and were sorted")
    same = int((moments[1:] == moments[:-1]).sum())
    if same:
        notes.append(f"{same} rows have the same time as the row before them: all count")
    return notes
