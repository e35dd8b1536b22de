"""All data enter here: files, frames, arrays and a user's own objects become sources of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eccaht.base.arrays import as_floats
from eccaht.base.clock import Clock, as_zone
from eccaht.base.durations import parse_duration
from eccaht.plants.data.layout import Layout, layout_of_frame, sniff
from eccaht.plants.data.reading import Faults, Levels
from eccaht.plants.data.table import Limits, NoRows, Table, assemble, check_limits, ordered
from eccaht.plants.data.times import Stamps, TimeRule, counted_stamps, time_rule
from eccaht.plants.data.windows import Batch

if TYPE_CHECKING:
    import polars as pl

Missing = Literal["refuse", "allow"]
_TIME = "time"  # what the times of arrays are called among their columns


@runtime_checkable
class Source(Protocol):
    """Rows of readings, from wherever they come; `eccaht.checks.check_source` tries one.

    names: one for each column. clock: what the times mean, known at the latest once there was a batch.
    Optional: `levels`, the texts of status columns by name, whose values are places in them; `repeatable`, whether the
    rows can be read again (taken as True if absent).
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    @property
    def clock(self) -> Clock:
        """What the times mean."""

    def batches(self) -> Iterator[Batch]:
        """The rows in order of time, some at a time."""


class Arrays:
    """Rows in memory.

    values: (N, K), NaN where there is no reading. times: datetime64, (N,); rows are counted if there are none.
    names: of the columns, c1, c2, ... unless given. quality: (N, K), False where a value is bad and counts as missing.
    zone: where the times, which are UTC then, are shown; without one they are taken as they stand.
    levels: the texts of status columns, whose values are places in them. label: what messages call it.
    row_interval: seconds between rows without times, if that is known.

    >>> minutes = np.datetime64("2024-05-01T08:00") + np.arange(3)
    >>> Arrays([[1.0], [2.0], [3.0]], minutes, ["flow"]).names
    ('flow',)
    """

    def __init__(
        self,
        values: ArrayLike,
        times: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        *,
        quality: ArrayLike | None = None,
        zone: str | None = None,
        levels: Levels | None = None,
        label: str = "the array",
        row_interval: float | None = None,
    ) -> None:
        self.values, self.label, self.levels = as_floats(values, label), label, dict(levels or {})
        shape = self.values.shape
        if self.values.ndim != 2 or not self.values.size:
            raise ValueError(f"{label} must have rows and columns, not the shape {shape}")
        self.names = tuple(f"c{k}" for k in range(1, shape[1] + 1)) if names is None else tuple(names)
        if len(self.names) != shape[1] or not all(isinstance(name, str) for name in self.names):
            raise ValueError(f"{label} has {shape[1]} columns and needs as many names, which are texts")
        if len(set(self.names)) < shape[1] or (times is not None and _TIME in self.names):
            raise ValueError(f"the names of {label} must be distinct, and {_TIME!r} is that of the times: rename some")
        if quality is not None:
            good = np.asarray(quality)
            if good.dtype != bool or good.shape != shape:
                raise ValueError(f"the quality of {label} must be true or false for each value, of the shape {shape}")
            self.values = np.where(good, self.values, np.nan)
        self.times = None if times is None else _moments(times, len(self.values))
        self.row_interval = row_interval
        if times is not None:
            self.clock = Clock(zone and as_zone(zone))
        else:
            self.clock = Clock(row_interval=row_interval or 1.0, counted=row_interval is None)

    def batches(self) -> Iterator[Batch]:
        return read_table(self, count_rows=self.clock.counted).batches()


class Recorded:
    """Complete files, a frame or arrays: their layout is inspected once, their rows are read when asked for.

    decimal_comma, header: as for `read_table`. strict: refuse lines of another width among the first ones.
    """

    def __init__(
        self, data: Any, *, decimal_comma: bool | None = None, header: bool = True, strict: bool = True
    ) -> None:
        self.header, self._arrays = header, _arrays(data)
        if self._arrays is not None:
            names = (_TIME,) * (self._arrays.times is not None) + self._arrays.names
            self.layouts = [Layout(Path(self._arrays.label), "parquet", names, names)]
        elif hasattr(data, "columns") and hasattr(data, "to_numpy"):
            self.layouts = [layout_of_frame(_as_polars(data))]
        else:
            self.layouts = [sniff(path, decimal_comma, header=header, strict=strict) for path in _paths(data)]

    @property
    def size(self) -> int:
        return sum(layout.path.stat().st_size for layout in self.layouts if layout.path.is_file())

    def read_as(self, expected: Expected, *, missing: Missing, limits: Limits, faults: Faults | None = None) -> Table:
        """The expected columns; values that do not fit go to `faults` if it is given, else they raise."""
        present = expected.present(self.layouts, missing)
        times, first = expected.times, self.layouts[0]
        rule = expected.rule(first) if self._arrays is None else self.rule(None, times.row_interval, times.counted)
        return self.read(rule, present, limits, expected.zone, expected.levels, faults)

    def unknown(self, known: Sequence[str]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for layout in self.layouts:
            places = {layout.place(name) for name in known}
            found |= dict.fromkeys(name for k, name in enumerate(layout.names) if k not in places)
        return tuple(name for name in found if self._arrays is None or name != _TIME)

    def lacks(self, name: str) -> bool:
        return all(layout.place(name) is None for layout in self.layouts)

    def rule(self, time_column: str | Sequence[str] | None, interval: float | None, counted: bool | None) -> TimeRule:
        """How to get the time of each row, by the options of `read_table`."""
        if self._arrays is None:
            return time_rule(self.layouts[0], time_column, interval, counted=counted)
        if time_column is not None:
            raise ValueError(f"{self._arrays.label} has no time column: give its times beside it, as Arrays takes them")
        if counted and interval is None and self._arrays.times is not None:
            raise ValueError(f"{self._arrays.label} has times: give the window as a length of time")
        if interval is None and not counted and self._arrays.times is None:
            interval = self._arrays.row_interval
        if counted is None:
            counted = interval is None and self._arrays.times is None
        if interval is not None or counted:
            return TimeRule((), (), 1.0 if interval is None else interval, counted)
        if self._arrays.times is None:
            raise ValueError(
                f"{self._arrays.label} has no times: give them, as Arrays takes them, or the row interval if the rows "
                "are equally spaced, or a window like 60rows to count rows"
            )
        return TimeRule((_TIME,))

    def read(
        self,
        rule: TimeRule,
        chosen: Sequence[str],
        limits: Limits,
        zone: str | None,
        expected: Levels | None = None,
        faults: Faults | None = None,
    ) -> Table:
        """These columns of all rows between the limits; see `assemble`."""
        rows = self._arrays
        if rows is None:
            return assemble(self.layouts, rule, chosen, limits, zone, expected=expected, faults=faults)
        if rule.row_interval is not None:
            stamps = counted_stamps(rule.row_interval, 0, len(rows.values))
        else:
            assert rows.times is not None
            stamps = Stamps(rows.times.astype(np.int64), rows.clock.zone)
        columns = {name: rows.values[:, rows.names.index(name)] for name in chosen}
        levels = {name: rows.levels[name] for name in chosen if name in rows.levels}
        texts = frozenset(levels)
        return ordered(self.layouts, [stamps], rule, chosen, texts, columns, limits, zone, levels=levels)


@dataclass(frozen=True)
class Expected:
    """What new data should look like, as the history did.

    names: the columns. levels: the texts of the status columns among them. times: how those of the history were read,
    tried first. zone: of times without an offset. header, decimal_comma: how files are written; None: to be found.
    """

    names: tuple[str, ...]
    levels: Levels
    times: TimeRule
    zone: str | None = None
    header: bool = True
    decimal_comma: bool | None = None

    def rule(self, layout: Layout) -> TimeRule:
        """How to read the times of a file: as the history's, if it has the same columns."""
        if self.times.columns and all(layout.place(name) is not None for name in self.times.columns):
            return self.times
        return time_rule(layout, None, self.times.row_interval, counted=self.times.counted)

    def present(self, layouts: Sequence[Layout], missing: Missing) -> list[str]:
        """The columns that are there; the others are refused by name unless that is allowed."""
        for layout in layouts:
            absent = [name for name in self.names if layout.place(name) is None]
            if absent and (missing == "refuse" or len(absent) == len(self.names)):
                some = ", ".join(map(repr, absent[:5])) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
                hint = "" if len(absent) == len(self.names) else "; add --missing allow to search the others"
                raise ValueError(f"{layout.path} has no column for {len(absent)} of the model's sensors: {some}{hint}")
        return [name for name in self.names if any(layout.place(name) is not None for layout in layouts)]


def as_source(data: Any, *, times: ArrayLike | None = None, names: Sequence[str] | None = None) -> Source:
    """Return paths of files, a frame of pandas or polars, an array (with times and names) or a source as a source.

    >>> as_source(np.ones((4, 2))).names
    ('c1', 'c2')
    """
    if times is not None or names is not None:
        if isinstance(data, str | PathLike):
            raise ValueError("times and names are for arrays: a file has its own")
        return Arrays(data, times, names)
    if isinstance(data, np.ndarray):
        return Arrays(data)
    return data if isinstance(data, Source) else read_table(data)


def read_table(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    time_column: str | Sequence[str] | None = None,
    row_interval: str | float | None = None,
    count_rows: bool | None = False,
    timezone: str | None = None,
    decimal_comma: bool | None = None,
    header: bool = True,
    start: Any = None,
    stop: Any = None,
) -> Table:
    """Read files that have the same columns, by name, or whatever else `as_source` takes.

    columns, exclude: names, in which * and ? stand for any characters; all columns unless given.
    time_column: its name, or those of a date and a time column; found by itself unless given.
    row_interval: for files without times, the time between rows. count_rows: for such files if that is unknown;
        None: rows are counted if there are no times.
    timezone: where times without an offset are, and where all are shown; as `as_zone` takes it.
    decimal_comma: whether numbers are written as 1,5; found by itself in each file unless given.
    header: whether the files have column names; without them they are called c1, c2, ...
    start, stop: rows before `start` and from `stop` on are left out: local times, or the numbers of rows without times.
    """
    check_limits(start, stop)
    interval = None if row_interval is None else parse_duration(row_interval, "row interval")
    if time_column is not None and (interval is not None or count_rows):
        raise ValueError("give either a time column, or rows that are counted or so far apart, not both")
    zone = None if timezone is None else as_zone(timezone)
    source = recorded_of(data, decimal_comma=decimal_comma, header=header)
    rule = source.rule(time_column, interval, count_rows)
    return source.read(rule, _chosen(source.layouts, rule, columns, exclude), (start, stop), zone)


def recorded_of(data: Any, **options: Any) -> Recorded:
    """Return a `Recorded` unchanged, and anything else as one with these options."""
    return data if isinstance(data, Recorded) else Recorded(data, **options)


def _chosen(
    layouts: Sequence[Layout], rule: TimeRule, columns: Sequence[str] | None, exclude: Sequence[str]
) -> list[str]:
    """The columns to read, which every file must have."""
    model = layouts[0]
    times = {model.place(name) for name in rule.columns}
    places = range(len(model.names)) if columns is None else model.matching(columns, "--columns")
    out = set(model.matching(exclude, "--exclude"))
    chosen = [model.names[k] for k in places if k not in times and k not in out]
    if not chosen:
        raise ValueError(f"no column of {model.path} is left to read")
    for layout in layouts[1:]:
        absent = [name for name in chosen if layout.place(name) is None]
        if absent:
            raise ValueError(f"{layout.path} has no column {absent[0]!r}, which {model.path} has")
        if columns is None:
            known = {layout.place(name) for name in (*model.names, *rule.columns)}
            extra = [name for k, name in enumerate(layout.names) if k not in known]
            if extra:
                raise ValueError(f"{layout.path} has a column {extra[0]!r}, which {model.path} has not")
    return chosen


def _arrays(data: Any) -> Arrays | None:
    """An array, or all rows of a source; None for files and frames."""
    if isinstance(data, Arrays):
        return data
    if isinstance(data, np.ndarray):
        return Arrays(data)
    if not isinstance(data, Source):
        return None
    batches = [Batch(*batch) for batch in data.batches()]
    if not batches:
        raise NoRows("the source: no rows")
    clock = data.clock
    for batch in batches:
        shape = (len(batch.times), len(data.names))
        if np.shape(batch.values) != shape or (batch.quality is not None and np.shape(batch.quality) != shape):
            raise ValueError(f"a batch of {shape[0]} rows of this source must have values and quality of shape {shape}")
    counted = clock.row_interval is not None
    return Arrays(
        np.concatenate([batch.readings for batch in batches]),
        None if counted else np.concatenate([batch.times for batch in batches]),
        data.names,
        zone=clock.zone,
        levels=getattr(data, "levels", None),
        label=getattr(data, "label", "the source"),
        row_interval=None if clock.counted else clock.row_interval,
    )


def _paths(data: Any) -> list[Path]:
    """One or several paths as a list; anything else is refused."""
    several = [data] if isinstance(data, str | PathLike) else data
    if not isinstance(several, Iterable) or isinstance(several, Mapping):
        several = [several]
    paths = list(several)
    if not paths:
        raise ValueError("give at least one file")
    for path in paths:
        if not isinstance(path, str | PathLike):
            kinds = "paths of files, one frame of pandas or polars, one array, or one Source"
            given = type(path).__name__ if path is data else f"a {type(data).__name__} of {type(path).__name__}"
            raise ValueError(f"data must be {kinds}, not {given}")
    return [Path(path) for path in paths]


def _moments(times: ArrayLike, rows: int) -> NDArray[np.datetime64]:
    given = np.asarray(times)
    try:
        if given.dtype.kind in "iufb":
            raise ValueError
        moments = given.astype("datetime64[us]")
    except ValueError:
        raise ValueError("the times of an array must be datetime64, or texts like 2024-05-01T08:00") from None
    if moments.shape != (rows,) or np.isnat(moments).any():
        raise ValueError(f"the times must be {rows}, one for each row, and none of them missing")
    return moments


def _as_polars(frame: Any) -> pl.DataFrame:
    """A frame of pandas as one of polars; an index of times is its first column."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    names = [str(name) for name in frame.columns]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"the frame has two columns named {twice[0]!r}: names must be distinct")
    columns: dict[str, pl.Series] = {}
    if getattr(frame.index.dtype, "kind", "") == "M":
        columns[str(frame.index.name or _TIME)] = _series(frame.index.to_series())
    return pl.DataFrame(columns | {name: _series(frame[key]) for name, key in zip(names, frame.columns, strict=True)})


def _series(column: Any) -> pl.Series:
    """A column of pandas as numbers, times or texts."""
    import polars as pl

    kind = getattr(column.dtype, "kind", "O")
    if kind == "M":
        zone = getattr(column.dtype, "tz", None)
        read = pl.Series(np.asarray(column, dtype="datetime64[us]"))
        return read if zone is None else read.dt.replace_time_zone("UTC").dt.convert_time_zone(str(zone))
    if kind in "iufb":
        return pl.Series(column.to_numpy(dtype="float64", na_value=np.nan)).fill_nan(None)
    present = np.asarray(column.notna())
    values = [value if there else None for value, there in zip(column.astype(object), present, strict=True)]
    if all(value is None or isinstance(value, Real) for value in values):
        return pl.Series([None if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)
