"""The time of each row: which columns hold it, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.clock import DIFFERENT, as_zone
from eccaht.plants.data.layout import Layout, is_number
from eccaht.plants.data.reading import TIME, Faults, shortened

if TYPE_CHECKING:
    import polars as pl

_JOINT = re.compile(r"(date|time|day)?[\s_./&-]*(time|stamp)s?|ts|t[_ ]stamp|time\b.*|date\b.*", re.IGNORECASE)
_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y.%m.%d"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%Y", "%d %b %Y", "%d-%b-%y", "%Y%m%d"),
)
_CLOCKS = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S%.f %p", "%I:%M %p", "%I:%M:%S%.f%p", "%H%M%S")
_HOUR = "%H"  # without minutes, after a date only: a column of hours alone could be any small number
_ZONES = ("", "%z", " %z", "Z")
_HEAD = re.compile(r"^(%[A-Za-z][^%]*%[A-Za-z])")  # with what a format begins
_PARTS = {
    **dict.fromkeys(("%m", "%d", "%H", "%I", "%M", "%S"), r"\d{1,2}"),
    "%Y": r"\d{4}",
    "%y": r"\d\d",
    "%b": "[A-Za-z]{3}",
    "%p": "[AaPp][Mm]",
    "%.f": r"(\.\d+)?",
    "%z": r"([+-]\d\d:?\d\d|Z)",
}
EPOCHS = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3), (0.0, 1e6))  # from this number on: its unit in microseconds

_NO_TIMES = "no time column found: rows are counted; name it with --time-column if there is one"
_LARGEST = 1e19
SINCE_1970 = 1e8  # seconds: smaller numbers are no times of this age


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


def counted_stamps(interval: float, before: int, rows: int) -> Stamps:
    """The times of `rows` rows, `interval` seconds apart, after `before` earlier ones, counted from 1970-01-01 on."""
    return Stamps(np.rint((before + np.arange(rows)) * (interval * 1e6)).astype(np.int64))


def time_rule(
    layout: Layout, time_column: str | Sequence[str] | None, row_interval: float | None, *, counted: bool | None = False
) -> TimeRule:
    """Find the time columns of a file: the given ones, or by their names and contents.

    counted: there must be none, and rows are counted; None: rows are counted if there are none, with a note.
    """
    if row_interval is not None:
        return TimeRule((), (), row_interval, bool(counted))
    places = _given(layout, time_column) if time_column is not None else _found(layout)
    if counted and places:
        raise ValueError(f"{layout.path} has times in {layout.names[places[0]]!r}: give --window as a length of time")
    if counted:
        return TimeRule((), (), 1.0, counted)
    if not places and counted is None:
        return TimeRule((), (), 1.0, True, (_NO_TIMES,))
    if not places:
        raise ValueError(
            f"no time column found in {layout.path}: name it with --time-column, give --row-interval if the rows are "
            "equally spaced, or --window 60rows to count rows"
        )
    return TimeRule(tuple(layout.names[k] for k in places))


def _given(layout: Layout, time_column: str | Sequence[str]) -> tuple[int, ...]:
    names = [time_column] if isinstance(time_column, str) else list(time_column)
    if len(names) == 1 and layout.place(names[0]) is None and "," in names[0]:
        names = [name.strip() for name in names[0].split(",")]
    if not 1 <= len(names) <= 2:
        raise ValueError("give one time column, or a date and a time column")
    return tuple(layout.matching([name], "--time-column")[0] for name in names)


def _found(layout: Layout) -> tuple[int, ...]:
    named = _columns_by_name(layout.names)
    if layout.format == "parquet":
        kinds = layout.scan().collect_schema().values()
        typed = [k for k, kind in enumerate(kinds) if kind.is_temporal()]
        return named if set(named) & set(typed) or not typed else (typed[0],)
    if named:
        return named
    for k in range(len(layout.names)):
        texts = layout.texts(k)
        numbers = any(is_number(text, layout.decimal_comma) for text in texts[:20])
        if texts and not numbers and _guess_formats([texts], 1.0):
            return (k,)
    return ()


def read_times(
    layout: Layout, frame: pl.DataFrame, rule: TimeRule, rows_before: int, faults: Faults | None = None
) -> tuple[pl.DataFrame, Stamps, TimeRule]:
    """Take the time columns out of a frame: the readings, the time of each row, and the rule made exact.

    Rows without any value are left out. faults: takes rows without a time that can be read, which are refused
    otherwise.
    """
    import polars as pl

    if rule.row_interval is not None:
        return frame, counted_stamps(rule.row_interval, rows_before, len(frame)), rule
    own = [f"{TIME}{k}" for k in range(len(rule.columns))]
    columns, readings = [frame[name] for name in own], frame.drop(own)
    read, zone, rule = _stamps(layout, columns, rule, lenient=faults is not None)
    unread = read.is_null()
    if unread.any():
        blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        if len(odd := (unread & ~blank).arg_true()):
            row = int(odd[0])
            where, why = f"{layout.where(row)} of {layout.path}", _why_unread([column[row] for column in columns], rule)
            if faults is None:
                raise ValueError(f"{where} {why}: remove or mend it")
            faults.bad_line(where, why, len(odd))
        readings, read = readings.filter(~unread), read.drop_nulls()
    return readings, Stamps(read.to_numpy(), zone), rule


def _why_unread(texts: Sequence[Any], rule: TimeRule) -> str:
    """What is wrong with the time of a row with readings."""
    if any(text is None for text in texts):
        return f"has readings but no time in {' and '.join(map(repr, rule.columns))}"
    return f"has the time {shortened(' '.join(map(str, texts)))!r}, which does not look like the others"


def _stamps(
    layout: Layout, columns: Sequence[pl.Series], rule: TimeRule, *, lenient: bool
) -> tuple[pl.Series, str | None, TimeRule]:
    """The time of each row as an integer, null where there is none that can be read, and the zone they are in."""
    import polars as pl

    only = columns[0] if len(columns) == 1 else None
    if len(columns[0]) == 0:
        return pl.Series([], dtype=pl.Int64), None, rule
    if only is not None and only.dtype.is_temporal():
        zone = only.dtype.time_zone if isinstance(only.dtype, pl.Datetime) else None
        return only.cast(pl.Datetime("us")).cast(pl.Int64), zone and as_zone(zone), rule
    if only is not None and (numbers := _as_numbers(only)) is not None:
        return *_read_numbers(numbers), rule
    columns = [column.cast(pl.String) for column in columns]
    head = [[text for text in column.drop_nulls().head(1000).str.strip_chars() if text] for column in columns]
    formats = _guess_formats(head)
    if lenient and not formats:  # most texts are bad: accept a format that reads a few, else the earlier one
        formats = _guess_formats(head, 0.01) or [rule.formats] * bool(rule.formats)
    if rule.formats in formats:
        formats = [rule.formats]
    if not formats:
        shown = " ".join(column[0] for column in head if column)
        raise ValueError(
            f"column {' and '.join(map(repr, rule.columns))} of {layout.path} holds no times that can be read, the "
            f"first is {shortened(shown)!r}: write them as 2017-10-09 18:00:00, or name another one with --time-column"
        )
    chosen, read = _choose_format(columns, formats)
    notes = rule.notes
    if len({form[0].replace("%d", "%m") for form in formats}) < len({form[0] for form in formats}):
        first = "month" if chosen[0].find("%m") < chosen[0].find("%d") else "day"
        notes = (*notes, f"dates could be read in two ways and were read with the {first} first")
    return read, _zone_of_texts(columns[-1], chosen[-1]), replace(rule, formats=chosen, notes=notes)


# -- what the texts and numbers of a time column mean ----------------------------------------------------


def _columns_by_name(names: Sequence[str]) -> tuple[int, ...]:
    """The places of the columns whose names say that they hold the time; a date and a time column belong together."""
    lower = [name.casefold().strip() for name in names]
    if "date" in lower and "time" in lower:
        return (lower.index("date"), lower.index("time"))
    exact = [k for k, name in enumerate(lower) if name in ("timestamp", "datetime", "time")]
    return tuple(exact[:1] or [k for k, name in enumerate(lower) if _JOINT.fullmatch(name)][:1])


@cache
def _joint_formats() -> list[str]:
    """Formats of a column that holds both date and time, or a date alone."""
    with_clock = [f"{d}{s}{c}{z}" for d, s, c, z in product(_DATES, (" ", "T"), _CLOCKS, _ZONES)]
    return [*with_clock, *(f"{d}{s}{_HOUR}" for d, s in product(_DATES, (" ", "T"))), "%Y%m%d%H%M%S", *_DATES]


def _fitting_formats(texts: Sequence[str], formats: Sequence[str], kind: str, share: float) -> list[str]:
    import polars as pl

    few = [text.strip() for text in (*texts[:5], *texts[len(texts) // 2 :][:5], *texts[-5:])]
    many = pl.Series(texts, dtype=pl.String)

    def most(looks_like: Callable[[str], object]) -> bool:
        return sum(map(bool, map(looks_like, few))) >= share * len(few)

    begin = {form: _HEAD.split(form)[1] for form in formats}  # patterns take longer to make than to try
    likely = [form for form in formats if most(_pattern(begin[form]).match) and most(_pattern(form).fullmatch)]
    return [form for form in likely if _read(many, form, kind).null_count() <= (1.0 - share) * len(many)]


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """What texts of a format look like: quick to try, where reading them by hundreds of formats is not."""
    parts = re.split(r"(%\.f|%[A-Za-z])", form)
    return re.compile("".join(_PARTS.get(part, re.escape(part)) for part in parts))


def _guess_formats(columns: Sequence[Sequence[str]], share: float = 0.6) -> list[tuple[str, ...]]:
    """All formats that read most of a sample of one column, or of a date and a time column."""
    if not all(columns):
        return []
    if len(columns) == 1:
        return [(form,) for form in _fitting_formats(columns[0], _joint_formats(), "datetime", share)]
    dates = _fitting_formats(columns[0], _DATES, "date", share)
    return list(product(dates, _fitting_formats(columns[1], _CLOCKS, "time", share)))


def _read_texts(columns: Sequence[pl.Series], formats: Sequence[str]) -> pl.Series:
    """Microseconds since 1970-01-01 as integers, null where the text does not have the format."""
    import polars as pl

    if len(columns) == 1:
        return _read(columns[0], formats[0], "datetime").cast(pl.Int64)
    dates = _read(columns[0], formats[0], "date").cast(pl.Int64)
    clock = _read(columns[1], formats[1], "time").cast(pl.Int64)
    return dates * 86_400_000_000 + clock // 1000


def _read(series: pl.Series, form: str, kind: str) -> pl.Series:
    texts = series.str.strip_chars()
    if kind == "date":
        return texts.str.to_date(form, strict=False)
    if kind == "time":
        return texts.str.to_time(form, strict=False)
    if form.endswith(_HOUR):  # polars reads no hour without its minutes
        texts, form = texts + ":00", f"{form}:%M"
    read = texts.str.to_datetime(form, strict=False, time_unit="us")
    return read.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if "%z" in form else read


def _choose_format(
    columns: Sequence[pl.Series], formats: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], pl.Series]:
    """The format that reads every row; where day and month could both come first, the one with the shorter span."""

    def rank(choice: tuple[tuple[str, ...], pl.Series]) -> tuple[int, int]:
        unread = choice[1].null_count()
        return unread, 0 if unread else int(np.ptp(choice[1].to_numpy()))

    return min(((form, _read_texts(columns, form)) for form in formats), key=rank)


def _as_numbers(column: pl.Series) -> pl.Series | None:
    """A column of numbers, null where they can be no times; None if it rather holds texts."""
    import polars as pl

    if column.dtype == pl.String:
        head = column.drop_nulls().head(1000).str.strip_chars()
        digits = head.str.contains(r"^(19|20)(\d{6}|\d{12})$")  # of dates like 20171009180000
        if 5 * head.cast(pl.Float64, strict=False).count() < 3 * len(head) or 2 * int(digits.sum()) > len(head):
            return None
        column = column.str.strip_chars()
    numbers = column.cast(pl.Float64, strict=False).fill_nan(None)
    return numbers.set(numbers.abs() > _LARGEST, None)


def _read_numbers(numbers: pl.Series) -> tuple[pl.Series, str | None]:
    """Seconds, milliseconds, microseconds or nanoseconds since 1970, distinguished by their size, and their zone.

    Small numbers do not count from 1970, and have no zone.
    """
    import polars as pl

    present = numbers.drop_nulls()
    usual = float(np.median(np.abs(present.to_numpy()))) if len(present) else 0.0
    unit = next(unit for least, unit in EPOCHS if usual >= least)
    filled = numbers.fill_null(0.0).to_numpy() * unit
    possible = np.abs(filled) < 2.0**62
    read = pl.Series(np.rint(np.where(possible, filled, 0.0)).astype(np.int64))
    return read.set(numbers.is_null() | ~pl.Series(possible), None), "UTC" if usual >= SINCE_1970 else None


def _zone_of_texts(texts: pl.Series, form: str) -> str | None:
    """The zone of times that say their offset: their common one, or DIFFERENT."""
    if form.endswith("Z"):
        return "UTC"
    if not form.endswith("%z"):
        return None
    offsets = texts.str.strip_chars().str.extract(r"([+-]\d\d:?\d\d|Z)$").drop_nulls().unique().to_list()
    zones = {as_zone(offset) for offset in offsets}
    return zones.pop() if len(zones) == 1 else DIFFERENT
