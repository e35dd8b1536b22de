"""Which columns hold the time of a row, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.data import times
from eccaht.data.faults import Faults, shortened
from eccaht.data.selection import matching, place_of
from eccaht.data.sniffing import Layout, is_number

if TYPE_CHECKING:
    import polars as pl

TIME = "\0time"  # what the frame calls the time columns: no file can have such a name


@dataclass(frozen=True)
class TimeRule:
    """How to get the time of each row.

    columns: of the time, or of the date and the time; none if rows are `row_interval` seconds apart.
    formats: that read the text of these columns, none for numbers and for times of Parquet.
    counted: the time between rows is not known: they are counted.
    """

    columns: tuple[str, ...]
    formats: tuple[str, ...] = ()
    row_interval: float | None = None
    counted: bool = False
    notes: tuple[str, ...] = ()


class Stamps(NamedTuple):
    """The times of rows in microseconds since 1970: in UTC, with the zone to show them in, or as they stand (None)."""

    moments: NDArray[np.int64]
    zone: str | None = None


def time_rule(
    layout: Layout,
    time_column: str | Sequence[str] | None,
    row_interval: float | None,
    earlier: TimeRule | None = None,
    *,
    counted: bool = False,
) -> TimeRule:
    """Find the time columns of a file: the given ones, an earlier file's, or by their names and contents.

    counted: there must be none, and rows are counted.
    """
    if row_interval is not None:
        return TimeRule((), (), row_interval, counted)
    if earlier is not None and all(place_of(layout, name) is not None for name in earlier.columns):
        return replace(earlier, notes=())
    places = _given(layout, time_column) if time_column is not None else _found(layout)
    if counted and places:
        raise ValueError(f"{layout.path} has times in {layout.names[places[0]]!r}: give --window as a length of time")
    if counted:
        return TimeRule((), (), 1.0, counted)
    if not places:
        raise ValueError(
            f"no time column found in {layout.path}: name it with --time-column, give --row-interval if the rows are "
            "equally spaced, or --window 60rows to count rows"
        )
    return TimeRule(tuple(layout.names[k] for k in places))


def _given(layout: Layout, time_column: str | Sequence[str]) -> tuple[int, ...]:
    names = [time_column] if isinstance(time_column, str) else list(time_column)
    if len(names) == 1 and place_of(layout, names[0]) is None and "," in names[0]:
        names = [name.strip() for name in names[0].split(",")]
    if not 1 <= len(names) <= 2:
        raise ValueError("give one time column, or a date and a time column")
    return tuple(matching(layout, [name], "--time-column")[0] for name in names)


def _found(layout: Layout) -> tuple[int, ...]:
    if layout.format == "parquet":
        import polars as pl

        schema = pl.read_parquet_schema(layout.path)
        typed = [k for k, kind in enumerate(schema.values()) if kind.is_temporal()]
        named = times.find_time_columns(layout.names)
        return named if set(named) & set(typed) or not typed else (typed[0],)
    named = times.find_time_columns(layout.names)
    if named:
        return named
    for k in range(len(layout.names)):
        texts = layout.texts(k)
        if (
            texts
            and not any(is_number(text, layout.decimal_comma) for text in texts[:20])
            and times.guess_formats([texts], 1.0)
        ):
            return (k,)
    return ()


def read_times(
    layout: Layout, frame: pl.DataFrame, rule: TimeRule, rows_before: int, faults: Faults | None = None
) -> tuple[pl.DataFrame, Stamps, TimeRule]:
    """Take the time columns out of a frame: the readings, the time of each row, and the rule made exact.

    Rows without any value are left out. faults: takes rows without a time that can be read, which are refused
    otherwise.
    """
    if rule.row_interval is not None:
        step = rule.row_interval * 1e6
        return frame, Stamps(np.rint((rows_before + np.arange(len(frame))) * step).astype(np.int64)), rule
    own = [f"{TIME}{k}" for k in range(len(rule.columns))]
    columns, readings = [frame[name] for name in own], frame.drop(own)
    read, zone, rule = _stamps(layout, columns, rule, lenient=faults is not None)
    unread = read.is_null()
    if unread.any():
        _check_unread(layout, frame, columns, unread, rule, faults)
        readings, read = readings.filter(~unread), read.drop_nulls()
    return readings, Stamps(read.to_numpy(), zone), rule


def _check_unread(
    layout: Layout,
    frame: pl.DataFrame,
    columns: Sequence[pl.Series],
    unread: pl.Series,
    rule: TimeRule,
    faults: Faults | None,
) -> None:
    """Pass over rows without any value; a row with readings but no time is an error, or counted."""
    import polars as pl

    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    odd = (unread & ~blank).arg_true()
    if not len(odd):
        return
    row = int(odd[0])
    texts = [column[row] for column in columns]
    if any(text is None for text in texts):
        why = f"has readings but no time in {' and '.join(map(repr, rule.columns))}"
    else:
        shown = shortened(" ".join(map(str, texts)))
        why = f"has the time {shown!r}, which does not look like the others"
    if faults is None:
        raise ValueError(f"{layout.where(row)} of {layout.path} {why}: remove or mend it")
    faults.bad_line(f"{layout.where(row)} of {layout.path}", why, len(odd))


def _stamps(
    layout: Layout, columns: Sequence[pl.Series], rule: TimeRule, *, lenient: bool
) -> tuple[pl.Series, str | None, TimeRule]:
    """The time of each row as an integer, null where there is none that can be read, and the zone they are in."""
    import polars as pl

    only = columns[0] if len(columns) == 1 else None
    if len(columns[0]) == 0:
        return pl.Series([], dtype=pl.Int64), None, rule
    if only is not None and only.dtype.is_temporal():
        return only.cast(pl.Datetime("us")).cast(pl.Int64), times.zone_of_type(only.dtype), rule
    if only is not None and (numbers := times.as_numbers(only)) is not None:
        return *times.read_numbers(numbers), rule
    columns = [column.cast(pl.String) for column in columns]
    head = [[text for text in column.drop_nulls().head(1000).str.strip_chars() if text] for column in columns]
    formats = times.guess_formats(head)
    if lenient and not formats:  # most are bad: then any that reads a few, or as before
        formats = times.guess_formats(head, 0.01) or [rule.formats] * bool(rule.formats)
    if rule.formats in formats:
        formats = [rule.formats]
    if not formats:
        shown = " ".join(column[0] for column in head if column)
        raise ValueError(
            f"column {' and '.join(map(repr, rule.columns))} of {layout.path} holds no times that can be read, the "
            f"first is {shortened(shown)!r}: write them as 2017-10-09 18:00:00, or name another one with --time-column"
        )
    chosen, read = times.choose_format(columns, formats)
    notes = rule.notes
    if len({form[0].replace("%d", "%m") for form in formats}) < len({form[0] for form in formats}):
        first = "month" if chosen[0].find("%m") < chosen[0].find("%d") else "day"
        notes = (*notes, f"dates could be read in two ways and were read with the {first} first")
    return read, times.zone_of_texts(columns[-1], chosen[-1]), replace(rule, formats=chosen, notes=notes)
