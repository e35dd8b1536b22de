"""Finding and reading the time of each row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from eccaht.data.clock import DIFFERENT, as_zone

if TYPE_CHECKING:
    import polars as pl

_JOINT = re.compile(r"(date|time|day)?[\s_./&-]*(time|stamp)s?|ts|t[_ ]stamp|time\b.*|date\b.*", re.IGNORECASE)
_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y.%m.%d"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%Y", "%d %b %Y", "%d-%b-%y", "%Y%m%d"),
)
_CLOCKS = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S%.f %p", "%I:%M %p", "%I:%M:%S%.f%p", "%H%M%S")
_ZONES = ("", "%z", " %z", "Z")
_PARTS = {
    **dict.fromkeys(("%m", "%d", "%H", "%I", "%M", "%S"), r"\d{1,2}"),
    "%Y": r"\d{4}",
    "%y": r"\d\d",
    "%b": "[A-Za-z]{3}",
    "%p": "[AaPp][Mm]",
    "%.f": r"(\.\d+)?",
    "%z": r"([+-]\d\d:?\d\d|Z)",
}
_EPOCHS = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3), (0.0, 1e6))  # from so many on, a unit is so many microseconds

_LARGEST = 1e19
_SINCE_1970 = 1e8  # seconds: smaller numbers are no times of this age


def find_time_columns(names: Sequence[str]) -> tuple[int, ...]:
    """The places of the columns whose names say that they hold the time; a date and a time column belong together."""
    lower = [name.casefold().strip() for name in names]
    if "date" in lower and "time" in lower:
        return (lower.index("date"), lower.index("time"))
    exact = [k for k, name in enumerate(lower) if name in ("timestamp", "datetime", "time")]
    return tuple(exact[:1] or [k for k, name in enumerate(lower) if _JOINT.fullmatch(name)][:1])


@cache
def joint_formats() -> list[str]:
    """Formats of a column that holds both date and time, or a date alone."""
    with_clock = [f"{d}{s}{c}{z}" for d, s, c, z in product(_DATES, (" ", "T"), _CLOCKS, _ZONES)]
    return [*with_clock, *(d + c for d, c in product(("%Y%m%d",), ("%H%M%S",))), *_DATES]


def fitting_formats(texts: Sequence[str], formats: Sequence[str], kind: str, share: float) -> list[str]:
    """The formats that read at least this share of the texts."""
    import polars as pl

    few = [text.strip() for text in (*texts[:5], *texts[len(texts) // 2 :][:5], *texts[-5:])]
    many = pl.Series(texts, dtype=pl.String)
    likely = [form for form in formats if sum(map(bool, map(_pattern(form).fullmatch, few))) >= share * len(few)]
    return [form for form in likely if _read(many, form, kind).null_count() <= (1.0 - share) * len(many)]


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """What texts of a format look like: quick to try, where reading them by hundreds of formats is not."""
    parts = re.split(r"(%\.f|%[A-Za-z])", form)
    return re.compile("".join(_PARTS.get(part, re.escape(part)) for part in parts))


def guess_formats(columns: Sequence[Sequence[str]], share: float = 0.6) -> list[tuple[str, ...]]:
    """All formats that read most of a sample of one column, or of a date and a time column."""
    if not all(columns):
        return []
    if len(columns) == 1:
        return [(form,) for form in fitting_formats(columns[0], joint_formats(), "datetime", share)]
    dates = fitting_formats(columns[0], _DATES, "date", share)
    return list(product(dates, fitting_formats(columns[1], _CLOCKS, "time", share)))


def read_texts(columns: Sequence[pl.Series], formats: Sequence[str]) -> pl.Series:
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
    read = texts.str.to_datetime(form, strict=False, time_unit="us")
    return read.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if "%z" in form else read


def choose_format(
    columns: Sequence[pl.Series], formats: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], pl.Series]:
    """The format that reads every row; where day and month could both come first, the one with the shorter span."""
    best: tuple[Any, tuple[str, ...], pl.Series] | None = None
    for place, form in enumerate(formats):
        read = read_texts(columns, form)
        span = 0 if read.null_count() else int(np.ptp(read.to_numpy()))
        rank = (read.null_count(), span, place)
        if best is None or rank < best[0]:
            best = (rank, form, read)
    assert best is not None
    return best[1], best[2]


def as_numbers(column: pl.Series) -> pl.Series | None:
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


def read_numbers(numbers: pl.Series) -> tuple[pl.Series, str | None]:
    """Seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size, and their zone.

    Small numbers count from some other beginning, of which no zone is known.
    """
    import polars as pl

    present = numbers.drop_nulls()
    usual = float(np.median(np.abs(present.to_numpy()))) if len(present) else 0.0
    unit = next(unit for least, unit in _EPOCHS if usual >= least)
    filled = numbers.fill_null(0.0).to_numpy() * unit
    possible = np.abs(filled) < 2.0**62
    read = pl.Series(np.rint(np.where(possible, filled, 0.0)).astype(np.int64))
    return read.set(numbers.is_null() | ~pl.Series(possible), None), "UTC" if usual >= _SINCE_1970 else None


def zone_of_type(kind: pl.DataType) -> str | None:
    """The zone of a Parquet column."""
    import polars as pl

    zone = kind.time_zone if isinstance(kind, pl.Datetime) else None
    return None if zone is None else as_zone(zone)


def zone_of_texts(texts: pl.Series, form: str) -> str | None:
    """The zone of times that say their offset: their common one, or DIFFERENT."""
    if form.endswith("Z"):
        return "UTC"
    if not form.endswith("%z"):
        return None
    offsets = texts.str.strip_chars().str.extract(r"([+-]\d\d:?\d\d|Z)$").drop_nulls().unique().to_list()
    zones = {as_zone(offset) for offset in offsets}
    return zones.pop() if len(zones) == 1 else DIFFERENT
