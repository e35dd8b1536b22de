"""All rows of files, frames or arrays as one table, in order of time and on one clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import Clock, common_zone
from eccaht.plants.data.cleaning import kind_of
from eccaht.plants.data.layout import Layout
from eccaht.plants.data.reading import Faults, Levels, as_expected, load
from eccaht.plants.data.times import Stamps, TimeRule, read_times
from eccaht.plants.data.windows import Batch, Times

if TYPE_CHECKING:
    import polars as pl

Limits = tuple[Any, Any]  # rows before the first and from the second on are left out; None is no limit
_READINGS = 1 << 20  # of a batch, about


class NoRows(ValueError):
    """No row is left between the limits."""


@dataclass(frozen=True)
class Table:
    """Readings with their times, rows in order of time; rows of equal time stay in the order of the files.

    times: datetime64[us], shape (N,). names: the columns that were read; all_names: also those that were not.
    texts: the columns that hold text. clock: what the times mean. label: what messages call the data.
    rule: how the times were read. notes: what a user should know of how the files were read; zone_notes: those of
    them about time zones.
    """

    times: Times
    names: tuple[str, ...]
    all_names: tuple[str, ...]
    texts: frozenset[str]
    rule: TimeRule
    label: str
    notes: tuple[str, ...] = ()
    clock: Clock = field(default_factory=Clock)
    zone_notes: tuple[str, ...] = ()
    decimal_comma: bool = False
    _columns: pl.DataFrame | Mapping[str, Array] = field(repr=False, kw_only=True)
    _levels: Levels = field(default_factory=dict, repr=False, kw_only=True)  # of arrays, which hold codes
    _rows: NDArray[np.intp] | slice = field(repr=False, kw_only=True)

    def numbers(self, name: str) -> Array:
        """The readings of a numeric column; NaN where there is none. May be a read-only view."""
        series: Any = self._columns[name]
        if not isinstance(series, np.ndarray):
            if series.null_count():  # much faster than letting to_numpy do it
                series = series.rechunk().fill_null(np.nan)
            series = series.to_numpy()
        column: Array = series[self._rows]
        with np.errstate(all="ignore"):
            total = column.sum()
        if np.isfinite(total):  # the quick way to know that nothing is missing or infinite
            return column
        infinite = np.isinf(column)
        return np.where(infinite, np.nan, column) if infinite.any() else column

    def status(self, name: str) -> tuple[Sequence[str], Array]:
        """The distinct texts of a column, sorted, and their number in each row; NaN where there is none."""
        if name in self._levels:
            return self._levels[name], self.numbers(name)
        import polars as pl

        series: pl.Series = self._columns[name]  # type: ignore[assignment]
        levels = sorted(series.drop_nulls().unique().to_list())
        codes = series.replace_strict(levels, list(range(len(levels))), default=None, return_dtype=pl.Float64)
        return levels, codes.to_numpy()[self._rows]

    @cached_property
    def levels(self) -> dict[str, Sequence[str]]:
        """The texts of each column that holds some."""
        return {name: self.status(name)[0] for name in self.names if name in self.texts}

    def coded(self, name: str, known: Sequence[str] | None) -> Array:
        """A column in the form of the history: numbers, or the places of its texts among the known ones."""
        if known is None:
            if name in self.texts:
                text = self.status(name)[0][0]
                raise ValueError(f"column {name!r} of {self.label} holds texts ({text!r}), in the history numbers")
            return self.numbers(name)
        levels: Sequence[str]
        if name in self.texts:
            levels, codes = self.status(name)
        else:
            values, places = np.unique(self.numbers(name), return_inverse=True)
            levels = [f"{value:g}" for value in values[~np.isnan(values)]]
            codes = np.where(places < len(levels), places.astype(np.float64), np.nan)
        new = [level for level in levels if level not in known]
        if new:
            raise ValueError(
                f"column {name!r} of {self.label} holds {new[0]!r}, which the history never had "
                f"({', '.join(map(repr, known[:5]))}): calibrate on a history that has it, or without this column"
            )
        translation = np.array([known.index(level) for level in levels] or [0], dtype=np.float64)
        gaps = np.isnan(codes)
        return np.where(gaps, np.nan, translation[np.where(gaps, 0, codes).astype(np.intp)])

    def batches(self, levels: Levels | None = None) -> Iterator[Batch]:
        """All rows, some at a time; texts as their places in `levels`, which are those of the table unless given."""
        known, count = self.levels if levels is None else levels, _READINGS // len(self.names) + 1
        for first in range(0, len(self.times), count):
            part = self._part(first, min(first + count, len(self.times)))
            yield Batch(part.times, part.readings(known))

    def readings(self, levels: Levels) -> Array:
        """All rows, (N, K); texts as their places in `levels`."""
        return np.array([self.coded(name, levels.get(name)) for name in self.names]).T

    def _part(self, first: int, last: int) -> Table:
        start = self._rows.start if isinstance(self._rows, slice) else 0
        rows: Any = slice(start + first, start + last) if isinstance(self._rows, slice) else self._rows[first:last]
        if isinstance(self._columns, dict):
            return replace(self, times=self.times[first:last], _rows=rows)
        frame: Any = self._columns  # cut before its columns become arrays, which may be copies
        return replace(self, times=self.times[first:last], _columns=frame[rows], _rows=slice(None))

    @property
    def by_column(self) -> bool:
        """Whether the rows are arrays that lie in memory column by column."""
        return isinstance(self._columns, dict) and all(each.flags.c_contiguous for each in self._columns.values())

    @property
    def interval(self) -> float:
        """The usual number of seconds between rows, 0 for a single row."""
        steps = np.diff(self.times).astype(np.int64)
        return float(np.median(steps[steps > 0])) / 1e6 if (steps > 0).any() else 0.0


def assemble(
    layouts: Sequence[Layout],
    rule: TimeRule,
    chosen: Sequence[str],
    limits: Limits = (None, None),
    zone: str | None = None,
    *,
    expected: Levels | None = None,
    faults: Faults | None = None,
    before: int | None = None,
) -> Table:
    """Read these columns of all files and bring the rows in order.

    zone: of the times. expected, faults: read the columns as in the history, and count values that do not fit;
    without `faults` such values raise. before: the time of the last row of an earlier part, if there was one.
    """
    import polars as pl

    parts: list[pl.DataFrame] = []
    stamps: list[Stamps] = []
    read: list[Layout] = []
    for layout in layouts:
        if rule.columns and any(layout.place(name) is None for name in rule.columns):
            raise ValueError(f"{layout.path} has no time column {' and '.join(map(repr, rule.columns))}")
        places = {name: place for name in chosen if (place := layout.place(name)) is not None}
        layout, frame = load(layout, places, rule.columns, faults)
        if faults is not None and expected is not None:
            frame = as_expected(layout, frame, list(places), expected, faults)
        frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in chosen if name not in places)
        frame, own, rule = read_times(layout, frame, rule, sum(len(each.moments) for each in stamps), faults)
        parts.append(frame)
        stamps.append(own)
        read.append(replace(layout, content=None))  # which may be large
    whole = parts[0] if len(parts) == 1 else _joined(layouts, parts)
    del parts
    schema = whole.schema  # which takes time to put together
    texts = frozenset(name for name in chosen if schema[name] == pl.String)
    return ordered(read, stamps, rule, chosen, texts, whole, limits, zone, before=before)


def ordered(
    layouts: Sequence[Layout],
    stamps: Sequence[Stamps],
    rule: TimeRule,
    chosen: Sequence[str],
    texts: frozenset[str],
    columns: pl.DataFrame | Mapping[str, Array],
    limits: Limits,
    zone: str | None,
    *,
    before: int | None = None,
    levels: Levels | None = None,
) -> Table:
    """The table of rows that were read: on one clock, in order, between the limits."""
    clock, moments, notes = _on_one_clock(stamps, rule, zone, before)
    first, last = between(clock, *limits)
    order, moments = _in_order(moments, first, last)
    if not len(moments):
        limits_shown = [f"from {clock.show(first)}"] if first is not None else []
        limits_shown += [f"before {clock.show(last)}"] if last is not None else []
        others = " and the others" if len(layouts) > 1 else ""
        raise NoRows(f"{layouts[0].path}{others}: no row{' ' + ' and '.join(limits_shown) if limits_shown else 's'}")
    zone_notes, notes = tuple(notes), [*(note for layout in layouts for note in layout.notes), *notes, *rule.notes]
    if not isinstance(order, slice):
        notes.append("rows were not in order of time and were sorted")
    if same := int((moments[1:] == moments[:-1]).sum()):
        notes.append(f"{same} rows have the same time as the row before them: all count")
    return Table(
        moments.view("datetime64[us]"),
        tuple(chosen),
        layouts[0].names,
        texts,
        rule,
        str(layouts[0].path),
        tuple(notes),
        clock,
        zone_notes,
        layouts[0].decimal_comma,
        _columns=columns,
        _levels=levels or {},
        _rows=order,
    )


def check_limits(start: Any, stop: Any) -> None:
    """Refuse limits that are no times or row numbers, before any file is read."""
    for limit, what in ((start, "start"), (stop, "stop")):
        if limit is not None and not str(limit).strip().lower().removeprefix("row").strip().isdigit():
            Clock("UTC").parse(limit, what)


def between(clock: Clock, start: Any, stop: Any) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """The times between which rows are read; None is no limit."""
    first = None if start is None else clock.parse(start, "start")
    last = None if stop is None else clock.parse(stop, "stop")
    if first is not None and last is not None and last <= first:
        raise ValueError(f"stop {clock.show(last)} must be later than start {clock.show(first)}")
    return first, last


def _on_one_clock(
    stamps: Sequence[Stamps], rule: TimeRule, zone: str | None, before: int | None
) -> tuple[Clock, NDArray[np.int64], list[str]]:
    """The times of all files on one clock, times without an offset as local ones."""
    together = np.concatenate([read.moments for read in stamps])
    if rule.row_interval is not None:
        if zone is not None:
            raise ValueError("a time zone needs times, and rows are counted here: leave out --timezone")
        return Clock(row_interval=rule.row_interval, counted=rule.counted), together, []
    notes: list[str] = []
    if zone is None:
        zone, notes = common_zone([read.zone for read in stamps if len(read.moments)])
    clock = Clock(zone)
    if all(read.zone is None for read in stamps):
        moments, more = clock.to_utc(together, before)
        return clock, moments, notes + more
    in_utc = [(read.moments, []) if read.zone else clock.to_utc(read.moments, before) for read in stamps]
    return (
        clock,
        np.concatenate([moments for moments, _ in in_utc]),
        notes + [text for _, more in in_utc for text in more],
    )


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


def _in_order(
    moments: NDArray[np.int64], first: np.datetime64 | None, last: np.datetime64 | None
) -> tuple[NDArray[np.intp] | slice, NDArray[np.int64]]:
    """The rows in order of time between the limits, and their times."""
    order: NDArray[np.intp] | None = None
    if (moments[1:] < moments[:-1]).any():
        order = np.argsort(moments, kind="stable")
        moments = moments[order]
    a = 0 if first is None else int(np.searchsorted(moments, first.astype(np.int64)))
    b = len(moments) if last is None else int(np.searchsorted(moments, last.astype(np.int64)))
    return (slice(a, b) if order is None else order[a:b]), moments[a:b]
