"""The values of one file as a frame of numbers and texts, which columns hold the time, and the time of each row.

The types are guessed from the first rows and the file is read once, straight into numbers. Only if a later row does
not fit the guess, the file is read again to learn which columns hold what. New data are read as the history was: bad
values become missing, and are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.clock import DIFFERENT, as_zone
from eccaht.plants.data.columns import TIME, WORDS, read_leniently, text_of, typed_columns, words_for_missing
from eccaht.plants.data.layout import MEND_LINE, MISSING, Layout, WrongWidth, is_gzip, is_number, shortened
from eccaht.plants.data.lines import Faults, all_full, as_utf8, check_texts, content_of, damaged, good_lines, lines_in

if TYPE_CHECKING:
    import polars as pl

_CUT = "\0cut"  # and the flag of rows whose last value is missing
Levels = Mapping[str, Sequence[str]]  # the texts that a status may have; columns that are not in it hold numbers
_PARSED = {"nan", "NaN", "NAN", "-nan", "-NaN", ""}  # polars reads these by itself
EPOCHS = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3), (0.0, 1e6))  # from this number on: its unit in microseconds
_LARGEST = 1e19
SINCE_1970 = 1e8  # seconds: smaller numbers are no times of this age
_LATEST = 4.1e15  # microseconds, in the year 2099: numbers that would be times after that count something else
_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y.%m.%d"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%Y", "%d %b %Y", "%d-%b-%y", "%Y%m%d"),
)
_CLOCKS = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S%.f %p", "%I:%M %p", "%I:%M:%S%.f%p", "%H%M%S")
_ZONES = ("", "%z", " %z", "Z")
_HOUR = "%H"  # without minutes, after a date only: a column of hours alone could be any small number
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


def load(
    layout: Layout,
    chosen: Mapping[str, int],
    time_columns: Sequence[str],
    faults: Faults | None = None,
    unchecked: Collection[str] = (),
) -> tuple[Layout, pl.DataFrame]:
    """Read the chosen columns (name: place) and those of the time, as numbers or texts.

    The layout comes back as it was found to be once all of the file was read. faults: takes lines that are no rows,
    which are refused otherwise; texts are then left as they are. unchecked: columns in which they are so in any case.
    """
    if layout.format == "csv" and layout.content is None and (layout.encoding != "utf-8" or is_gzip(layout.path)):
        layout = replace(layout, content=content_of(layout.path, layout.encoding))
    own = {f"{TIME}{k}": layout.place(name) for k, name in enumerate(time_columns)}
    places = {**chosen, **{name: place for name, place in own.items() if place is not None}}
    try:
        frame, told = _read(layout, places, unchecked)
    except UnicodeDecodeError:
        layout = replace(layout, content=content_of(layout.path, "latin-1"), encoding="latin-1")
        return load(layout, chosen, time_columns, faults, unchecked)
    except WrongWidth:
        rows, odd = ((k, as_utf8(line)) for k, line in lines_in(layout) if k > layout.skip), faults or Faults()
        lines, numbers = good_lines(rows, layout, odd)
        if faults is None and odd.lines:
            raise ValueError(f"{odd.first_line}: {MEND_LINE}") from None
        layout = replace(layout, skip=0, content=b"".join(lines), lines=numbers)
        frame, told = _read(layout, places, unchecked)
    if faults is None:
        check_texts(layout, frame, set(chosen).difference(unchecked))
    return replace(layout, told=(*layout.told, *told)), frame


def _read(
    layout: Layout, places: Mapping[str, int], unchecked: Collection[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The columns, and a note of the words that stand for missing readings in them."""
    import polars as pl

    try:
        if layout.format == "csv":
            return _csv(layout, places)
        return typed_columns(layout, places, unchecked), words_for_missing(layout, places)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, EOFError) as error:
        raise damaged(layout, error) from None


def _csv(layout: Layout, places: Mapping[str, int]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    import polars as pl

    comma = layout.decimal_comma
    numeric = {k for k in places.values() if all(is_number(text, comma) for text in layout.texts(k))}
    dates = {place for name, place in places.items() if name.startswith(TIME) and not layout.is_epoch(place)}
    numeric -= dates
    seen = {row[k] for row in layout.sample for k in numeric}
    spellings = sorted(seen & set(MISSING) - _PARSED)  # of missing values: each one that is looked for costs time
    worded = any(row[k].strip() in WORDS for row in layout.sample for k in places.values())
    columns = {name: pl.col(str(k)) for name, k in places.items()}
    wanted = [
        (column if places[name] in numeric | dates else text_of(column)).alias(name) for name, column in columns.items()
    ]
    wanted.append(pl.col(str(len(layout.names) - 1)).is_null().alias(_CUT))  # where lines with too few values end
    try:
        frame = layout.scan(numeric, spellings).select(wanted).collect(engine="streaming")
    except pl.exceptions.ComputeError as error:
        if "could not parse" not in str(error):
            raise
        frame, worded = read_leniently(layout, places, numeric, wanted[-1]), True
    if frame.drop_in_place(_CUT).any() and not all_full(layout):
        raise WrongWidth(f"{layout.path} has lines with too few values")
    return frame, words_for_missing(layout, places) if worded else ()


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


def read_times(
    layout: Layout,
    frame: pl.DataFrame,
    rule: TimeRule,
    rows_before: int,
    faults: Faults | None = None,
    unchecked: Collection[str] = (),
) -> tuple[pl.DataFrame, Stamps, TimeRule]:
    """Take the time columns out of a frame: the readings, the time of each row, and the rule made exact.

    Rows without any value are left out; those of `unchecked` columns are none. faults: takes rows without a time that
    can be read, which are refused otherwise.
    """
    import polars as pl

    if rule.row_interval is not None:
        return frame, counted_stamps(rule.row_interval, rows_before, len(frame)), rule
    own = [f"{TIME}{k}" for k in range(len(rule.columns))]
    columns, readings = [frame[name] for name in own], frame.drop(own)
    read, zone, rule = _stamps(layout, columns, rule, lenient=faults is not None)
    unread = read.is_null()
    if unread.any():
        blank = frame.drop(unchecked).select(pl.all_horizontal(pl.all().is_null())).to_series()
        if len(odd := (unread & ~blank).arg_true()):
            texts, where = [column[int(odd[0])] for column in columns], f"{layout.where(int(odd[0]))} of {layout.path}"
            why = f"has the time {shortened(' '.join(map(str, texts)))!r}, which does not look like the others"
            if None in texts:
                why = f"has readings but no time in {' and '.join(map(repr, rule.columns))}"
            if faults is None:
                raise ValueError(f"{where} {why}: remove or mend it")
            faults.bad_line(where, why, len(odd))
        readings, read = readings.filter(~unread), read.drop_nulls()
    return readings, Stamps(read.to_numpy(), zone), rule


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
    formats = guess_formats(head, known=rule.formats)
    if lenient and not formats:  # most texts are bad: accept a format that reads a few, else the earlier one
        formats = guess_formats(head, 0.01, rule.formats) or [rule.formats] * bool(rule.formats)
    if not formats:
        shown = " ".join(column[0] for column in head if column)
        raise ValueError(
            f"column {' and '.join(map(repr, rule.columns))} of {layout.path} holds no times that can be read, the "
            f"first is {shortened(shown)!r}: write them as 2017-10-09 18:00:00, or name another one with "
            f"{layout.option('--time-column', 'time_column')}"
        )
    chosen, read = choose_format(columns, formats)
    notes = rule.notes
    if len({form[0].replace("%d", "%m") for form in formats}) < len({form[0] for form in formats}):
        first = "month" if chosen[0].find("%m") < chosen[0].find("%d") else "day"
        notes = (*notes, f"dates could be read in two ways and were read with the {first} first")
    return read, _zone_of_texts(columns[-1], chosen[-1]), replace(rule, formats=chosen, notes=notes)


def times_in(column: pl.Series) -> pl.Series | None:
    """A column that holds times, whatever its name is: as such, as texts or counted from 1970 on; else None."""
    import polars as pl

    if column.dtype.is_temporal():
        return column
    if (numbers := _as_numbers(column)) is None:
        head = column.drop_nulls().head(1000).to_list()
        return column if guess_formats([head], 1.0) else None
    read, zone = _read_numbers(numbers)
    usual = float(np.median(read.drop_nulls().to_numpy())) if zone is not None else np.inf
    return read.cast(pl.Datetime("us", zone)) if usual < _LATEST else None


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


def guess_formats(
    columns: Sequence[Sequence[str]], share: float = 0.6, known: Sequence[str] = ()
) -> list[tuple[str, ...]]:
    """All formats that read most of a sample of a column, or of a date and a time column; the known ones if they do."""
    if not all(columns):
        return []
    kinds, lists = (("datetime",), (_joint_formats(),)) if len(columns) == 1 else (("date", "time"), (_DATES, _CLOCKS))

    def fitting(lists: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
        return list(product(*(_fitting(*each, share) for each in zip(columns, lists, kinds, strict=True))))

    found = []
    if len(known) == len(lists) and all(form in forms for form, forms in zip(known, lists, strict=True)):
        found = fitting([form] for form in known)
    return found or fitting(lists)


@cache
def _joint_formats() -> list[str]:
    """Formats of a column that holds both date and time, or a date alone."""
    with_clock = [f"{d}{s}{c}{z}" for d, s, c, z in product(_DATES, (" ", "T"), _CLOCKS, _ZONES)]
    return [*with_clock, *(f"{d}{s}{_HOUR}" for d, s in product(_DATES, (" ", "T"))), "%Y%m%d%H%M%S", *_DATES]


def _fitting(texts: Sequence[str], formats: Sequence[str], kind: str, share: float) -> list[str]:
    import polars as pl

    few = [text.strip() for text in (*texts[:5], *texts[len(texts) // 2 :][:5], *texts[-5:])]
    many = pl.Series(texts, dtype=pl.String)

    def most(looks_like: Callable[[str], object]) -> bool:
        return sum(map(bool, map(looks_like, few))) >= share * len(few)

    begin = {form: _HEAD.split(form)[1] for form in formats}  # patterns take longer to make than to try
    likely = [form for form in formats if most(_pattern(begin[form]).match) and most(_pattern(form).fullmatch)]
    return [form for form in likely if _read_text(many, form, kind).null_count() <= (1.0 - share) * len(many)]


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """What texts of a format look like: quick to try, where reading them by hundreds of formats is not."""
    parts = re.split(r"(%\.f|%[A-Za-z])", form)
    return re.compile("".join(_PARTS.get(part, re.escape(part)) for part in parts))


def _read_texts(columns: Sequence[pl.Series], formats: Sequence[str]) -> pl.Series:
    """Microseconds since 1970-01-01 as integers, null where the text does not have the format."""
    import polars as pl

    if len(columns) == 1:
        return _read_text(columns[0], formats[0], "datetime").cast(pl.Int64)
    dates = _read_text(columns[0], formats[0], "date").cast(pl.Int64)
    clock = _read_text(columns[1], formats[1], "time").cast(pl.Int64)
    return dates * 86_400_000_000 + clock // 1000


def _read_text(series: pl.Series, form: str, kind: str) -> pl.Series:
    texts = series.str.strip_chars()
    if kind == "date":
        return texts.str.to_date(form, strict=False)
    if kind == "time":
        return texts.str.to_time(form, strict=False)
    if form.endswith(_HOUR):  # polars reads no hour without its minutes
        texts, form = texts + ":00", f"{form}:%M"
    read = texts.str.to_datetime(form, strict=False, time_unit="us")
    return read.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if "%z" in form else read


def choose_format(
    columns: Sequence[pl.Series], formats: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], pl.Series]:
    """The format that reads every row; where day and month could both come first, the one with the shorter span."""

    def rank(choice: tuple[tuple[str, ...], pl.Series]) -> tuple[int, int]:
        unread = choice[1].null_count()
        return unread, 0 if unread else int(np.ptp(choice[1].to_numpy()))

    return min(((form, _read_texts(columns, form)) for form in formats), key=rank)


_JOINT = re.compile(r"(date|time|day)?[\s_./&-]*(time|stamp)s?|ts|t[_ ]stamp|time\b.*|date\b.*", re.IGNORECASE)


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
        window = layout.option("--window", "window")
        raise ValueError(f"{layout.path} has times in {layout.names[places[0]]!r}: give {window} as a length of time")
    if counted:
        return TimeRule((), (), 1.0, counted)
    named = f"name it with {layout.option('--time-column', 'time_column')}"
    if not places and counted is None:
        return TimeRule((), (), 1.0, True, (f"no time column found: rows are counted; {named} if there is one",))
    if not places:
        interval = layout.option("--row-interval", "row_interval")
        window = layout.option("--window 60rows", 'window="60rows"')
        raise ValueError(
            f"no time column found in {layout.path}: {named}, give {interval} if the rows are equally spaced, "
            f"or {window} to count rows"
        )
    return TimeRule(tuple(layout.names[k] for k in places))


def _given(layout: Layout, time_column: str | Sequence[str]) -> tuple[int, ...]:
    names = [str(name) for name in ([time_column] if isinstance(time_column, str | int) else time_column)]
    if len(names) == 1 and layout.place(names[0]) is None and "," in names[0]:
        names = [name.strip() for name in names[0].split(",")]
    if not 1 <= len(names) <= 2:
        raise ValueError("give one time column, or a date and a time column")
    return tuple(layout.matching([name], "time column")[0] for name in names)


def _found(layout: Layout) -> tuple[int, ...]:
    named = _columns_by_name(layout.names)
    if layout.format == "parquet":
        kinds = layout.scan().collect_schema().values()
        typed = [k for k, kind in enumerate(kinds) if kind.is_temporal()]
        if typed and not set(named) & set(typed):
            return (typed[0],)
    if named:
        return named
    for k in range(len(layout.names)):
        texts = layout.texts(k)
        numbers = any(is_number(text, layout.decimal_comma) for text in texts[:20])
        if texts and not numbers and guess_formats([texts], 1.0):
            return (k,)
    return ()


def _columns_by_name(names: Sequence[str]) -> tuple[int, ...]:
    """The places of the columns whose names say that they hold the time; a date and a time column belong together."""
    lower = [name.casefold().strip() for name in names]
    if "date" in lower and "time" in lower:
        return (lower.index("date"), lower.index("time"))
    exact = [k for k, name in enumerate(lower) if name in ("timestamp", "datetime", "time")]
    return tuple(exact[:1] or [k for k, name in enumerate(lower) if _JOINT.fullmatch(name)][:1])
