"""Complete recordings: files, frames or arrays read as one table, new ones in the form that the history had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import Clock, between, common_zone
from eccaht.base.extras import need
from eccaht.plants.data.columns import joined_columns, numbers_of, unknown_texts
from eccaht.plants.data.layout import Layout, is_number, layout_of_frame, sniff
from eccaht.plants.data.lines import Faults, comma_option
from eccaht.plants.data.long import widened
from eccaht.plants.data.reading import Levels, Stamps, TimeRule, load, read_times, time_rule
from eccaht.plants.data.windows import Table

if TYPE_CHECKING:
    import polars as pl

Missing = Literal["refuse", "allow"]
Limits = tuple[Any, Any]  # rows before the first and from the second on are left out; None is no limit


class NoRows(ValueError):
    """No row is left between the limits."""


class Recorded:
    """Complete files, a frame or arrays: their layout is inspected once, their rows are read when asked for.

    decimal_comma, header: as for `read_table`. strict: refuse lines of another width among the first ones.
    """

    def __init__(
        self, data: Any, *, decimal_comma: bool | None = None, header: bool = True, strict: bool = True
    ) -> None:
        self.header, self._arrays = header, None
        if not isinstance(data, str | PathLike | list | tuple):
            from eccaht.plants.data.source import in_memory  # which is made of what is here

            data, self._arrays = in_memory(data)
        if self._arrays is not None:
            self.layouts = [self._arrays.layout]
        elif is_frame(data):
            self.layouts = widened([layout_of_frame(data, decimal_comma)], decimal_comma, strict=strict)
        else:
            found = [sniff(path, decimal_comma, header=header, strict=strict) for path in paths_of(data)]
            self.layouts = widened(found, decimal_comma, strict=strict)

    @property
    def size(self) -> int:
        return sum(layout.path.stat().st_size for layout in self.layouts if layout.path.is_file())

    def read_as(
        self,
        expected: Expected,
        *,
        missing: Missing,
        limits: Limits,
        faults: Faults | None = None,
        beside: Sequence[str] = (),
    ) -> Table:
        """The expected columns; values that do not fit go to `faults` if it is given, else they raise.

        beside: further columns of numbers, if they are there; values of them that do not fit are missing.
        """
        present = expected.present(self.layouts, missing)
        times, first = expected.times, self.layouts[0]
        if self._arrays is None:
            rule = expected.rule(first)
        else:
            rule = self.rule(None, times.row_interval, times.counted or None)
            expected.check_times(rule, f"{first.path} has no times", "give times")
        beside = [name for name in beside if not self.lacks(name)]
        return self.read(rule, present, limits, expected.zone, expected.levels, faults, beside)

    def unknown(self, known: Sequence[str]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for layout in self.layouts:
            places = {layout.place(name) for name in known}
            found |= dict.fromkeys(name for k, name in enumerate(layout.names) if k not in places)
        return tuple(name for name in found if self._arrays is None or name in self._arrays.names)

    def lacks(self, name: str) -> bool:
        return all(layout.place(name) is None for layout in self.layouts)

    def rule(self, time_column: str | Sequence[str] | None, interval: float | None, counted: bool | None) -> TimeRule:
        """How to get the time of each row, by the options of `read_table`."""
        if self._arrays is not None:
            return self._arrays.time_rule(time_column, interval, counted)
        return time_rule(self.layouts[0], time_column, interval, counted=counted)

    def read(
        self,
        rule: TimeRule,
        chosen: Sequence[str],
        limits: Limits,
        zone: str | None,
        expected: Levels | None = None,
        faults: Faults | None = None,
        beside: Sequence[str] = (),
    ) -> Table:
        """These columns of all rows between the limits; see `assemble`."""
        if self._arrays is not None:
            return self._arrays.table(rule, [*chosen, *beside], limits, zone)
        return assemble(self.layouts, rule, chosen, limits, zone, expected=expected, faults=faults, beside=beside)


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
        found = time_rule(layout, None, self.times.row_interval, counted=self.times.counted or None)
        remedy = "add a column of times" if layout.frame is None else "add a column of times or a DatetimeIndex"
        self.check_times(found, f"no time column found in {layout.path}", remedy)
        return found

    def check_times(self, found: TimeRule, fault: str, remedy: str) -> None:
        """Refuse to count rows where the history had times."""
        if found.counted and not self.times.counted:
            raise ValueError(f"{fault}, but the history of the model has times, so the data need them: {remedy}")

    def present(self, layouts: Sequence[Layout], missing: Missing) -> list[str]:
        """The columns that are there; the others are refused by name unless that is allowed."""
        for layout in layouts:
            absent = [name for name in self.names if layout.place(name) is None]
            if absent and (missing == "refuse" or len(absent) == len(self.names)):
                some = ", ".join(map(repr, absent[:5])) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
                raise ValueError(
                    f"{layout.path} has no column for {len(absent)} of the model's sensors: {some}"
                    + self._hint(layout, len(absent))
                )
        return [name for name in self.names if any(layout.place(name) is not None for layout in layouts)]

    def _hint(self, layout: Layout, absent: int) -> str:
        if absent < len(self.names):
            return "; add " + layout.option("--missing allow", 'missing="allow"') + " to search the others"
        if layout.frame is not None and all(name.isdigit() for name in layout.names[1:]):  # the first may be the time
            return "; its columns are only numbered: rename them as in the history, or give its values with names"
        return ""


def recorded_of(data: Any, **options: Any) -> Recorded:
    """Return a `Recorded` unchanged, and anything else as one with these options."""
    return data if isinstance(data, Recorded) else Recorded(data, **options)


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
    beside: Sequence[str] = (),
) -> Table:
    """Read these columns of all files and bring the rows in order.

    zone: of the times. expected, faults: read the columns as in the history, and count values that do not fit;
    without `faults` such values raise. before: the time of the last row of an earlier part, if there was one.
    beside: further columns of numbers, in which such values are missing without a word.
    """
    need("polars")
    import polars as pl

    parts: list[pl.DataFrame] = []
    stamps: list[Stamps] = []
    read: list[Layout] = []
    for layout in layouts:
        if rule.columns and any(layout.place(name) is None for name in rule.columns):
            raise ValueError(f"{layout.path} has no time column {' and '.join(map(repr, rule.columns))}")
        places = {name: place for name in (*chosen, *beside) if (place := layout.place(name)) is not None}
        layout, frame = load(layout, places, rule.columns, faults, beside)
        if faults is not None and expected is not None:
            frame = as_expected(layout, frame, [name for name in chosen if name in places], expected, faults)
        frame = as_expected(layout, frame, [name for name in beside if name in places], {}, Faults())
        absent = [name for name in (*chosen, *beside) if name not in places]
        frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in absent)
        frame, own, rule = read_times(layout, frame, rule, sum(len(each.moments) for each in stamps), faults, beside)
        parts.append(frame)
        stamps.append(own)
        read.append(replace(layout, content=None))  # which may be large
    whole = parts[0] if len(parts) == 1 else joined_columns(layouts, parts)
    del parts
    schema = whole.schema  # which takes time to put together
    texts = frozenset(name for name in chosen if schema[name] == pl.String)
    return ordered(read, stamps, rule, [*chosen, *beside], texts, whole, limits, zone, before=before)


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
    """The rows that were read on one clock, in order, between the limits."""
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


def _on_one_clock(
    stamps: Sequence[Stamps], rule: TimeRule, zone: str | None, before: int | None
) -> tuple[Clock, NDArray[np.int64], list[str]]:
    """The times of all files on one clock, times without an offset as local ones."""
    together = np.concatenate([read.moments for read in stamps])
    if rule.row_interval is not None:
        if zone is not None:
            raise ValueError("a time zone needs times, and rows are counted here: leave out the time zone")
        return Clock(row_interval=rule.row_interval, counted=rule.counted), together, []
    notes: list[str] = []
    if zone is None:
        zone, notes = common_zone([read.zone for read in stamps if len(read.moments)])
    clock = Clock(zone, formats=rule.formats)
    if all(read.zone is None for read in stamps):
        moments, more = clock.to_utc(together, before)
        return clock, moments, notes + more
    in_utc = [(read.moments, []) if read.zone else clock.to_utc(read.moments, before) for read in stamps]
    return (
        clock,
        np.concatenate([moments for moments, _ in in_utc]),
        notes + [text for _, more in in_utc for text in more],
    )


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


def as_expected(
    layout: Layout, frame: pl.DataFrame, names: Sequence[str], expected: Levels, faults: Faults
) -> pl.DataFrame:
    """Numbers where numbers are expected and known texts where texts are; all else becomes missing."""
    import polars as pl

    changed = []
    for name in names:
        levels, column = expected.get(name), frame[name]
        if levels is None and column.dtype != pl.String:
            continue
        if levels is None:
            kept = numbers_of(column, layout.decimal_comma)
            bad = column.is_not_null() & kept.is_null()
        else:
            bad = unknown_texts(column, levels)
            kept = column.set(bad, None)
        changed.append(kept.alias(name))
        if count := int(bad.sum()):
            first = int(bad.arg_true()[0])
            text = str(column[first])
            why = "no number" if levels is None else "unknown to the history"
            if levels is None and is_number(text, not layout.decimal_comma):
                why = f"add {comma_option(layout)}?"
            faults.bad_values(name, count, f"{layout.where(first)} of {layout.path}", text, why)
    return frame.with_columns(changed)


def paths_of(data: Any) -> list[Path]:
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
            raise ValueError(f"data must be {kinds}, not {given}{_remedy(data, path)}")
    return [Path(path) for path in paths]


def _remedy(data: Any, one: Any) -> str:
    """How to make one frame of what nearly is one."""
    ways = {"Series": "make it a frame by .to_frame()", "LazyFrame": "make it a frame by .collect()"}
    way = ways.get(type(data).__name__, "")
    if type(one).__name__ == "DataFrame":
        way = "join them by pd.concat or pl.concat"
    return way and f": {way}"


def is_frame(data: Any) -> bool:
    return hasattr(data, "to_numpy") and hasattr(data, "columns")  # in this order: a LazyFrame warns of the second
