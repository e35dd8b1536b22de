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
from eccaht.data.durations import parse_duration, parse_time, show_time
from eccaht.data.selection import matching, place_of
from eccaht.data.sniffing import Layout, sniff
from eccaht.data.timing import TimeRule, read_times, time_rule
from eccaht.data.windows import Times
from eccaht.files import regular_file

if TYPE_CHECKING:
    import polars as pl

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True)
class Table:
    """Readings with their times, rows in order of time; rows of equal time stay in the order of the files.

    times: datetime64[us], shape (N,). names: the columns that were read; all_names: also those that were not.
    texts: the columns that hold text.
    rule: how the times were read. notes: what a user should know of how the files were read.
    """

    times: Times
    names: tuple[str, ...]
    all_names: tuple[str, ...]
    texts: frozenset[str]
    rule: TimeRule
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()
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
    decimal_comma: bool = False,
    start: Any = None,
    stop: Any = None,
    rule: TimeRule | None = None,
) -> Table:
    """Read files that have the same columns, by name.

    columns, exclude: names, in which * and ? stand for any characters; all columns unless given.
    time_column: its name, or those of a date and a time column; found by itself unless given.
    row_interval: for files without times, the time between rows; counted from 1970-01-01 through all files.
    start, stop: rows before `start` and from `stop` on are left out.
    rule: how an earlier file's times were read, tried first.
    """
    first, last = limits(start, stop)
    interval = None if row_interval is None else parse_duration(row_interval, "row interval")
    if interval is not None and time_column is not None:
        raise ValueError("give either a time column or a row interval, not both")
    layouts = [sniff(path, decimal_comma) for path in listed(paths)]
    rule = time_rule(layouts[0], time_column, interval, decimal_comma, rule)
    chosen = _chosen(layouts, rule, columns, exclude)
    return assemble(layouts, rule, chosen, decimal_comma, first, last)


def assemble(
    layouts: Sequence[Layout],
    rule: TimeRule,
    chosen: Sequence[str],
    decimal_comma: bool,
    first: np.datetime64 | None,
    last: np.datetime64 | None,
) -> Table:
    """Read these columns of all files and bring the rows in order."""
    import polars as pl

    from eccaht.data import loading

    parts: list[pl.DataFrame] = []
    times: list[NDArray[np.int64]] = []
    for layout in layouts:
        if rule.columns and any(place_of(layout, name) is None for name in rule.columns):
            raise ValueError(f"{layout.path} has no time column {' and '.join(map(repr, rule.columns))}")
        places = {name: place for name in chosen if (place := place_of(layout, name)) is not None}
        frame = loading.load(layout, places, rule, decimal_comma)
        frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in chosen if name not in places)
        frame, moments, rule = read_times(layout, frame, rule, sum(map(len, times)))
        parts.append(frame)
        times.append(moments)
    whole = parts[0] if len(parts) == 1 else _joined(layouts, parts)
    del parts
    order, moments = _ordered(np.concatenate(times) if len(times) > 1 else times[0], first, last)
    if not len(moments):
        raise ValueError(_nothing_left(layouts, first, last))
    texts = frozenset(name for name in chosen if whole.schema[name] == pl.String)
    return Table(
        moments.view("datetime64[us]"),
        tuple(chosen),
        layouts[0].names,
        texts,
        rule,
        tuple(layout.path for layout in layouts),
        tuple(_notes(rule, order, moments)),
        _frame=whole,
        _rows=order,
    )


def listed(paths: Paths) -> list[Path]:
    """One or several paths as a list."""
    several = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not several:
        raise ValueError("give at least one file")
    for path in several:
        regular_file(path, "file").close()
    return [Path(path) for path in several]


def limits(start: Any, stop: Any) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """The times between which rows are read; None is no limit."""
    first = None if start is None else parse_time(start, "start")
    last = None if stop is None else parse_time(stop, "stop")
    if first is not None and last is not None and last <= first:
        raise ValueError(f"stop {show_time(last)} must be later than start {show_time(first)}")
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


def _nothing_left(layouts: Sequence[Layout], first: np.datetime64 | None, last: np.datetime64 | None) -> str:
    name = str(layouts[0].path) + (" and the others" if len(layouts) > 1 else "")
    if first is None and last is None:
        return f"{name}: no rows"
    limits = [f"from {show_time(first)}"] if first is not None else []
    limits += [f"before {show_time(last)}"] if last is not None else []
    return f"{name}: no row {' and '.join(limits)}"


def _notes(rule: TimeRule, order: NDArray[np.intp] | slice, moments: NDArray[np.int64]) -> list[str]:
    notes = list(rule.notes)
    if not isinstance(order, slice):
        notes.append("rows were not in order of time and were sorted")
    same = int((moments[1:] == moments[:-1]).sum())
    if same:
        notes.append(f"{same} rows have the same time as the row before them: all count")
    return notes
