"""All data enter here: files, frames, arrays, pieces of CSV and a user's own objects become rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eccaht.base.arrays import Array, as_floats
from eccaht.base.clock import Clock, as_zone, check_limits, parse_duration
from eccaht.plants.data.layout import Layout, as_text, encoding_of, lines_of, sniff_lines
from eccaht.plants.data.lines import Faults, good_lines
from eccaht.plants.data.reading import Levels, Stamps, TimeRule, counted_stamps, times_in
from eccaht.plants.data.recorded import Expected, Limits, NoRows, assemble, is_frame, ordered, recorded_of
from eccaht.plants.data.windows import Batch, Table

if TYPE_CHECKING:
    import polars as pl

TIME = "time"  # what the times of an index or an array are called among the columns
_SAMPLE = 1 << 18  # characters that show the layout
_PACKED = {b"\x1f\x8b": "gzip", b"PAR1": "Parquet", b"PK\x03\x04": "zip"}


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
    names: of the columns, c1, c2, ... unless given.
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
        if len(set(self.names)) < shape[1] or (times is not None and TIME in self.names):
            raise ValueError(f"the names of {label} must be distinct, and {TIME!r} is that of the times: rename some")
        self.times = None if times is None else _moments(times, len(self.values))
        self.row_interval = row_interval
        if times is not None:
            self.clock = Clock(zone and as_zone(zone))
        else:
            self.clock = Clock(row_interval=row_interval or 1.0, counted=row_interval is None)

    @property
    def layout(self) -> Layout:
        """The columns, that of the times among them, as those of a file."""
        names = (TIME,) * (self.times is not None) + self.names
        return Layout(Path(self.label), "parquet", names, names)

    def batches(self) -> Iterator[Batch]:
        """All rows at once."""
        interval = self.clock.row_interval
        times = self.times if interval is None else counted_stamps(interval, 0, len(self.values)).moments
        assert times is not None
        order = np.argsort(times, kind="stable")
        yield Batch(times[order].astype("datetime64[us]"), self.values[order])

    def time_rule(
        self, time_column: str | Sequence[str] | None, interval: float | None, counted: bool | None
    ) -> TimeRule:
        """How to get the time of each row, by the options of `read_table`."""
        if time_column is not None:
            raise ValueError(f"{self.label} has no time column: give its times beside it, as Arrays takes them")
        if counted and interval is None and self.times is not None:
            raise ValueError(f"{self.label} has times: give the window as a length of time")
        if interval is None and not counted and self.times is None:
            interval = self.row_interval
        if counted is None:
            counted = interval is None and self.times is None
        if interval is not None or counted:
            return TimeRule((), (), 1.0 if interval is None else interval, counted)
        if self.times is None:
            raise ValueError(
                f"{self.label} has no times: give them, as Arrays takes them, or the row interval if the rows "
                "are equally spaced, or a window like 60rows to count rows"
            )
        return TimeRule((TIME,))

    def table(self, rule: TimeRule, chosen: Sequence[str], limits: Limits, zone: str | None) -> Table:
        """These columns of all rows between the limits."""
        if rule.row_interval is not None:
            stamps = counted_stamps(rule.row_interval, 0, len(self.values))
        else:
            assert self.times is not None
            stamps = Stamps(self.times.astype(np.int64), self.clock.zone)
        columns = {name: self.values[:, self.names.index(name)] for name in chosen}
        levels = {name: self.levels[name] for name in chosen if name in self.levels}
        texts = frozenset(levels)
        return ordered([self.layout], [stamps], rule, chosen, texts, columns, limits, zone, levels=levels)


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
    """Read files that have the same columns, by name, a frame of pandas or polars, an array or a source.

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


def _chosen(
    layouts: Sequence[Layout], rule: TimeRule, columns: Sequence[str] | None, exclude: Sequence[str]
) -> list[str]:
    """The columns to read, which every file must have."""
    model = layouts[0]
    times = {model.place(name) for name in rule.columns}
    places = range(len(model.names)) if columns is None else model.matching(columns, "columns")
    out = set(model.matching(exclude, "exclude"))
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


def in_memory(data: Any) -> tuple[Any, Arrays | None]:
    """An array, or all rows of a source, as arrays; else the data themselves, a frame of pandas as one of polars."""
    if isinstance(data, Arrays | np.ndarray | Source):
        return data, _arrays(data)
    return (as_polars(data) if is_frame(data) else data), None


def _arrays(data: Arrays | NDArray[Any] | Source) -> Arrays:
    if isinstance(data, Arrays):
        return data
    if isinstance(data, np.ndarray):
        return Arrays(data)
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


@dataclass(frozen=True)
class Chunk:
    """A piece of CSV and what is expected of it; how many rows and columns it has is known before they are read."""

    layout: Layout
    expected: Expected

    @staticmethod
    def of(content: bytes, expected: Expected, label: str = "the CSV") -> Chunk:
        """Find the layout: delimiter, column names, decimal comma, encoding; label: what messages call it."""
        for start, kind in _PACKED.items():
            if content.startswith(start):
                raise ValueError(f"{label} is a {kind} file: send plain text")
        if not content.strip():
            raise ValueError(f"{label} is empty")
        encoding = encoding_of(Path(label), content, True)
        text = as_text(content, encoding)
        lines = lines_of(text[:_SAMPLE])
        if len(text) > _SAMPLE and len(lines) > 1:
            lines.pop()  # cut in the middle
        layout = sniff_lines(Path(label), lines, expected.decimal_comma, header=expected.header)
        return Chunk(_with_rows(replace(layout, encoding=encoding), text.encode()), expected)

    @property
    def rows(self) -> int:
        return len(self.layout.lines or ())

    @property
    def time_rule(self) -> TimeRule:
        """How the times are read: as the history's, or by the names and contents of columns."""
        return self.expected.rule(self.layout)

    def counts_time(self, column: str) -> bool:
        """Whether a time column of this name holds plain numbers."""
        place = self.layout.place(column)
        return place is not None and self.layout.is_epoch(place)

    def columns(self, times: Sequence[str]) -> tuple[str, ...]:
        """All columns but those of the time: what is expected by the names of the history, the others by their own."""
        places = {self.layout.place(name): name for name in reversed(self.expected.names)}
        out = {self.layout.place(name) for name in times}
        return tuple(places.get(k, name) for k, name in enumerate(self.layout.names) if k not in out)

    def read(self, rule: TimeRule, names: Sequence[str]) -> Table:
        """The rows; a line that is none, and a text that is no number in an expected column, is a ValueError.

        Texts that a status never had in the history are missing, as are those of columns that are not expected.
        """
        faults, levels = Faults(), self.expected.levels
        table = assemble([self.layout], rule, names, zone=self.expected.zone, expected=levels, faults=faults)
        if faults.lines:
            raise ValueError(faults.first_line)
        for name, (_, first) in faults.values.items():
            if name in self.expected.names and name not in levels:
                raise ValueError(f"column {name!r} holds {first}: leave the field empty where there is no reading")
        return table

    def numbered(self, column: str, names: Sequence[str]) -> tuple[Array, Table]:
        """The same, with a column of numbers in the place of times: its values, and the rows."""
        counted = TimeRule((), (), 1.0, True)
        whole = replace(self.expected, names=(*self.expected.names, column), zone=None)
        table = replace(self, expected=whole).read(counted, (*names, column))
        return table.numbers(column), table


def _with_rows(layout: Layout, content: bytes) -> Layout:
    """The layout of the rows alone; each line must be one, since what follows an odd one cannot be trusted."""
    faults = Faults()
    lines = enumerate(content.split(b"\n")[layout.skip :], layout.skip + 1)
    kept, numbers = good_lines(lines, layout, faults)
    if faults.lines:
        raise ValueError(faults.first_line)
    return replace(layout, skip=0, content=b"".join(kept), lines=numbers)


def as_polars(frame: Any) -> pl.DataFrame:
    """A frame of pandas as one of polars; an index of times is its first column."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    _check_indices(frame)
    names = [str(name) for name in frame.columns]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"the frame has two columns named {twice[0]!r}: names must be distinct")
    columns: dict[str, pl.Series] = {}
    index = frame.index.to_timestamp() if hasattr(frame.index, "to_timestamp") else frame.index  # the start of periods
    if (times := times_in(_series(index.to_series()))) is not None:
        columns[TIME if index.name is None else str(index.name)] = times
    return pl.DataFrame(columns | {name: _series(frame[key]) for name, key in zip(names, frame.columns, strict=True)})


def _check_indices(frame: Any) -> None:
    if frame.index.nlevels > 1:
        raise ValueError(
            "the frame has a MultiIndex of rows: choose one plant by .xs(), or make columns of it by .reset_index()"
        )
    if frame.columns.nlevels > 1:
        raise ValueError("the frame has a MultiIndex of columns: make one name of each, as frame.columns.map('/'.join)")
    if getattr(frame.index.dtype, "kind", "") == "m":
        raise ValueError(
            "the index of the frame holds lengths of time, no times: add them to a pd.Timestamp, or count rows "
            "after frame.reset_index(drop=True)"
        )


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
    return pl.Series([None if value is None else _as_text(value) for value in values], dtype=pl.String)


def _as_text(value: object) -> str:
    """A value among texts; a number without its point, so that it reads alike beside decimal commas and points."""
    if not isinstance(value, float) or not isfinite(value):
        return str(value)
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    return f"{value:.0f}" if int(exponent) >= 0 else f"{'-' * sign}{''.join(map(str, digits))}e{exponent}"
