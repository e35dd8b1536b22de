"""Which columns hold the time of a row, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eccaht.data import times
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
    """

    columns: tuple[str, ...]
    formats: tuple[str, ...] = ()
    row_interval: float | None = None
    notes: tuple[str, ...] = ()


def time_rule(
    layout: Layout,
    time_column: str | Sequence[str] | None,
    row_interval: float | None,
    decimal_comma: bool,
    earlier: TimeRule | None = None,
) -> TimeRule:
    """Find the time columns of a file: the given ones, an earlier file's, or by their names and contents."""
    if row_interval is not None:
        return TimeRule((), (), row_interval)
    if earlier is not None and all(place_of(layout, name) is not None for name in earlier.columns):
        return replace(earlier, notes=())
    places = _given(layout, time_column) if time_column is not None else _found(layout, decimal_comma)
    if not places:
        raise ValueError(
            f"no time column found in {layout.path}: name it with --time-column, "
            "or give --row-interval if the rows are equally spaced"
        )
    return TimeRule(tuple(layout.names[k] for k in places))


def _given(layout: Layout, time_column: str | Sequence[str]) -> tuple[int, ...]:
    names = [time_column] if isinstance(time_column, str) else list(time_column)
    if len(names) == 1 and place_of(layout, names[0]) is None and "," in names[0]:
        names = [name.strip() for name in names[0].split(",")]
    if not 1 <= len(names) <= 2:
        raise ValueError("give one time column, or a date and a time column")
    return tuple(matching(layout, [name], "--time-column")[0] for name in names)


def _found(layout: Layout, decimal_comma: bool) -> tuple[int, ...]:
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
            and not any(is_number(text, decimal_comma) for text in texts[:20])
            and times.guess_formats([texts], 1.0)
        ):
            return (k,)
    return ()


def read_times(
    layout: Layout, frame: pl.DataFrame, rule: TimeRule, rows_before: int
) -> tuple[pl.DataFrame, NDArray[np.int64], TimeRule]:
    """Take the time columns out of a frame: the readings, microseconds since 1970 of each row, and the rule made exact.

    Rows without any value are left out.
    """
    if rule.row_interval is not None:
        step = rule.row_interval * 1e6
        return frame, np.rint((rows_before + np.arange(len(frame))) * step).astype(np.int64), rule
    own = [f"{TIME}{k}" for k in range(len(rule.columns))]
    columns, readings = [frame[name] for name in own], frame.drop(own)
    empty = columns[0].is_null()
    for column in columns[1:]:
        empty |= column.is_null()
    if empty.any():
        readings, columns = _without_blank_rows(layout, frame, readings, columns, empty, rule)
    moments, rule = _moments(layout, columns, rule)
    return readings, moments, rule


def _without_blank_rows(
    layout: Layout,
    frame: pl.DataFrame,
    readings: pl.DataFrame,
    columns: list[pl.Series],
    empty: pl.Series,
    rule: TimeRule,
) -> tuple[pl.DataFrame, list[pl.Series]]:
    """Leave out rows without any value; a row with readings but no time is an error."""
    import polars as pl

    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    odd = (empty & ~blank).arg_true()
    if len(odd):
        raise ValueError(
            f"{layout.where(int(odd[0]))} of {layout.path} has readings but no time in "
            f"{' and '.join(map(repr, rule.columns))}: remove or mend it"
        )
    return readings.filter(~blank), [column.filter(~blank) for column in columns]


def _moments(layout: Layout, columns: Sequence[pl.Series], rule: TimeRule) -> tuple[NDArray[np.int64], TimeRule]:
    import polars as pl

    name = " and ".join(map(repr, rule.columns))
    if len(columns[0]) == 0:
        return np.zeros(0, dtype=np.int64), rule
    if len(columns) == 1 and columns[0].dtype.is_temporal():
        return columns[0].cast(pl.Datetime("us")).cast(pl.Int64).to_numpy(), rule
    if len(columns) == 1 and columns[0].dtype.is_numeric():
        numbers = columns[0].cast(pl.Float64).to_numpy()
        if not np.isfinite(numbers).all() or np.abs(numbers).max() > 1e19:
            raise ValueError(f"column {name} of {layout.path} holds no times: name another one with --time-column")
        return times.read_numbers(numbers), rule
    columns = [column.cast(pl.String) for column in columns]
    head = [[text for text in column.head(1000).str.strip_chars().to_list() if text] for column in columns]
    formats = times.guess_formats(head)
    if rule.formats in formats:
        formats = [rule.formats]
    if not formats:
        shown = " ".join(column[0] for column in head if column)
        raise ValueError(
            f"column {name} of {layout.path} holds no times that can be read, the first is {shown!r}: "
            "write them as 2017-10-09 18:00:00, or name another column with --time-column"
        )
    return _read(layout, columns, formats, rule)


def _read(
    layout: Layout, columns: Sequence[pl.Series], formats: Sequence[tuple[str, ...]], rule: TimeRule
) -> tuple[NDArray[np.int64], TimeRule]:
    chosen, read = times.choose_format(columns, formats)
    wrong = read.is_null().arg_true()
    if len(wrong):
        row = int(wrong[0])
        text = " ".join(str(column[row]) for column in columns)
        raise ValueError(
            f"{layout.where(row)} of {layout.path} has the time {text!r}, which does not look like the others: "
            "remove or mend it"
        )
    notes = rule.notes
    if len({form[0].replace("%d", "%m") for form in formats}) < len({form[0] for form in formats}):
        first = "month" if chosen[0].find("%m") < chosen[0].find("%d") else "day"
        notes = (*notes, f"dates could be read in two ways and were read with the {first} first")
    return read.to_numpy(), replace(rule, formats=chosen, notes=notes)
