"""The values of one file as a frame of numbers and texts, and what could not be read of it.

The types are guessed from the first rows and the file is read once, straight into numbers. Only if a later row does
not fit the guess, the file is read again to learn which columns hold what.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from eccaht.plants.data.cleaning import MOST_LEVELS
from eccaht.plants.data.encoding import as_utf8, content_of, is_gzip, opened, transcoded
from eccaht.plants.data.layout import (
    DELIMITERS,
    MISSING,
    Layout,
    WrongWidth,
    is_number,
    named,
    width_fault,
    wrong_width,
)

if TYPE_CHECKING:
    import polars as pl

TIME = "\0time"  # what the frame calls the time columns: no file can have such a name
_CUT = "\0cut"  # and the flag of rows whose last value is missing
_CHUNK = 1 << 22  # bytes read at once
LONGEST_LINE = 1 << 22  # bytes: a row of some hundred thousand readings
Levels = Mapping[str, Sequence[str]]  # the texts that a status may have; columns that are not in it hold numbers
_PARSED = {"nan", "NaN", "NAN", "-nan", "-NaN", ""}  # polars reads these by itself
_SHOWN = 40


def load(
    layout: Layout, chosen: Mapping[str, int], time_columns: Sequence[str], faults: Faults | None = None
) -> tuple[Layout, pl.DataFrame]:
    """Read the chosen columns (name: place) and those of the time, as numbers or texts.

    The layout comes back as it was found to be once all of the file was read. faults: takes lines that are no rows,
    which are refused otherwise; texts are then left as they are.
    """
    if layout.format == "csv" and layout.content is None and is_gzip(layout.path):
        layout = replace(layout, content=content_of(layout.path))
    own = {f"{TIME}{k}": layout.place(name) for k, name in enumerate(time_columns)}
    places = {**chosen, **{name: place for name, place in own.items() if place is not None}}
    try:
        frame = _read(layout, places)
    except UnicodeDecodeError:
        layout = replace(layout, content=transcoded(layout.path, "latin-1"), encoding="latin-1")
        return load(layout, chosen, time_columns, faults)
    except WrongWidth:
        if faults is None:
            raise
        rows = ((k, as_utf8(line)) for k, line in _lines(layout) if k > layout.skip)
        lines, numbers = good_lines(rows, layout, faults)
        layout = replace(layout, skip=0, content=b"".join(lines), lines=numbers)
        frame = _read(layout, places)
    if faults is None:
        _check_texts(layout, frame)
    return layout, frame


def _read(layout: Layout, places: Mapping[str, int]) -> pl.DataFrame:
    import polars as pl

    try:
        return _parquet(layout, places) if layout.format == "parquet" else _csv(layout, places)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, EOFError) as error:
        raise _damaged(layout, error) from None


def _parquet(layout: Layout, places: Mapping[str, int]) -> pl.DataFrame:
    """Numbers and truth values as floats, categories as text; times stay; anything else is refused by name."""
    import polars as pl

    table = layout.scan()
    schema = table.collect_schema()
    columns, kinds = list(schema), list(schema.values())
    wanted = []
    for name, place in places.items():
        column, kind = pl.col(columns[place]), kinds[place]
        if name.startswith(TIME) and (kind.is_temporal() or kind.is_numeric()):
            wanted.append(column.alias(name))
        elif kind.is_numeric() or kind in (pl.Boolean, pl.Null):
            wanted.append(column.cast(pl.Float64).alias(name))
        elif kind in (pl.String, pl.Categorical, pl.Enum):
            wanted.append(_text(column.cast(pl.String)).alias(name))
        else:
            raise ValueError(f"column {name!r} of {layout.path} is of type {kind}, no number or text: exclude it")
    return table.select(wanted).collect(engine="streaming")


def _csv(layout: Layout, places: Mapping[str, int]) -> pl.DataFrame:
    import polars as pl

    comma = layout.decimal_comma
    numeric = {k for k in places.values() if all(is_number(text, comma) for text in layout.texts(k))}
    dates = {place for name, place in places.items() if name.startswith(TIME) and not is_epoch(layout, place)}
    numeric -= dates
    seen = {row[k] for row in layout.sample for k in numeric}
    spellings = sorted(seen & set(MISSING) - _PARSED)  # of missing values: each one that is looked for costs time
    columns = {name: pl.col(str(k)) for name, k in places.items()}
    wanted = [
        (column if places[name] in numeric | dates else _text(column)).alias(name) for name, column in columns.items()
    ]
    last = len(layout.names) - 1  # lines with too few values come as missing ones at the end
    wanted.append(pl.col(str(last)).is_null().alias(_CUT))
    try:
        frame = _scan(layout, numeric, spellings).select(wanted).collect(engine="streaming")
    except pl.exceptions.ComputeError as error:
        if "could not parse" not in str(error):
            raise
        frame = _leniently(layout, places, numeric, wanted[-1])
    if frame.drop_in_place(_CUT).any() and not _all_full(layout):
        _refuse_lines(layout, lambda found: found < last)
    return frame


def is_epoch(layout: Layout, place: int) -> bool:
    """Whether a time column holds numbers that are no digits of a date like 20171009180000."""
    texts = layout.texts(place)
    digits = all(len(text) in (8, 14) and text.isdigit() and text[:2] in ("19", "20") for text in texts)
    return not digits and all(is_number(text) or is_number(text, True) for text in texts)


def _scan(layout: Layout, numeric: set[int], spellings: list[str]) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_csv(
        layout.path if layout.content is None else BytesIO(layout.content),
        has_header=False,
        skip_lines=layout.skip,
        separator=layout.delimiter,
        schema={str(k): pl.Float64 if k in numeric else pl.String for k in range(len(layout.names))},
        null_values=spellings or None,
        decimal_comma=layout.decimal_comma,
        glob=False,
    )


def _text(column: pl.Expr) -> pl.Expr:
    """Text without blanks around it, null if missing."""
    import polars as pl

    stripped = column.str.strip_chars()
    return pl.when(stripped.is_in(list(MISSING))).then(None).otherwise(stripped)


def number_of(column: pl.Expr, decimal_comma: bool) -> pl.Expr:
    """Text as a number, null if it is none."""
    import polars as pl

    text = _text(column)
    if decimal_comma:
        text = text.str.replace(",", ".", literal=True)
    return text.cast(pl.Float64, strict=False)


def _leniently(layout: Layout, places: Mapping[str, int], numeric: set[int], flag: pl.Expr) -> pl.DataFrame:
    """Read again: columns that hold any text that is no number stay text, the others become numbers."""
    import polars as pl

    lines, comma = _scan(layout, set(), []), layout.decimal_comma
    columns = {k: pl.col(str(k)) for k in places.values()}
    odd = [
        (_text(columns[k]).is_not_null() & number_of(columns[k], comma).is_null()).any().alias(str(k))
        for k in sorted(numeric)
    ]
    answers = lines.select(odd).collect(engine="streaming").row(0, named=True)
    numbers = {k for k in numeric if not answers[str(k)]}
    wanted = [
        (number_of(columns[k], comma) if k in numbers else _text(columns[k])).alias(name) for name, k in places.items()
    ]
    return lines.select([*wanted, flag]).collect(engine="streaming")


def _check_texts(layout: Layout, frame: pl.DataFrame) -> None:
    """Refuse columns of numbers with stray texts among them, naming the first.

    A few levels, some of them whole numbers and the others texts that are no rare exception, are a status.
    """
    import polars as pl

    comma = layout.decimal_comma
    for name, kind in frame.schema.items():
        if kind != pl.String or name.startswith(TIME):
            continue
        counts = frame[name].drop_nulls().value_counts()
        rows = dict(zip(counts[name].to_list(), counts["count"].to_list(), strict=True))
        stray = [text for text in rows if not is_number(text, comma)]
        other = [text for text in stray if is_number(text, not comma)]
        n_stray, n_other, n = (sum(rows[text] for text in texts) for texts in (stray, other, rows))
        whole = all(text.isdigit() for text in rows if text not in stray)
        if len(rows) <= MOST_LEVELS and whole and not other and 20 * n_stray >= n:
            continue
        if 2 * n_stray < n or 2 * (n - n_stray + n_other) > n:
            raise _stray_text(layout, name, frame[name], stray)


def _stray_text(layout: Layout, name: str, column: pl.Series, stray: list[str]) -> ValueError:
    row = int(column.is_in(stray).arg_true()[0])
    text = column[row]
    hint = "mend it, exclude the column, or leave the field empty if there was no reading"
    if is_number(text, not layout.decimal_comma):
        no, are = ("no-", "are not") if layout.decimal_comma else ("", "are")
        hint = f"add --{no}decimal-comma if commas {are} decimal points"
    where = f"{layout.where(row)} of {layout.path}"
    return ValueError(f"{where}: {shortened(text)!r} in column {name!r} is no number: {hint}")


def _refuse_lines(layout: Layout, wrong: Callable[[int], bool]) -> None:
    """Name the first line with a wrong number of delimiters; quoted texts may hold some, so their lines are passed."""
    delimiter = layout.delimiter.encode()
    for number, line in _lines(layout):
        if number > layout.skip and line.strip() and b'"' not in line and wrong(found := line.count(delimiter)):
            raise wrong_width(layout.path, number, found + 1, len(layout.names), layout.delimiter)


def _all_full(layout: Layout) -> bool:
    """Whether there are as many delimiters as full lines have: much quicker than line by line if nothing is quoted."""
    counts, last = np.zeros(3, dtype=np.intp), b"\n"
    with _bytes(layout) as file:
        for _ in range(layout.skip):
            file.readline()
        while chunk := file.read(_CHUNK):
            block, last = np.frombuffer(chunk, dtype=np.uint8), chunk[-1:]
            counts += [np.count_nonzero(block == ord(mark)) for mark in (layout.delimiter, "\n", '"')]
    delimiters, ends, quotes = counts.tolist()
    return not quotes and delimiters == (ends + (last != b"\n")) * (len(layout.names) - 1)


def _lines(layout: Layout) -> Iterator[tuple[int, bytes]]:
    with _bytes(layout) as file:
        yield from enumerate(file, 1)


def _bytes(layout: Layout) -> BinaryIO:
    return opened(layout.path) if layout.content is None else BytesIO(layout.content)


def _damaged(layout: Layout, error: BaseException) -> ValueError:
    text = " ".join(str(error).split())
    if "utf-8" in text.lower() and layout.format == "csv" and layout.encoding == "utf-8":
        return UnicodeDecodeError("utf-8", b"", 0, 0, text)
    if "more fields" in text or "n_extra" in text or "n_missing" in text:
        _refuse_lines(layout, lambda found: found != len(layout.names) - 1)
        return WrongWidth(
            f"{layout.path} has lines with more or fewer values than the {len(layout.names)} of its header (separated "
            f"by {DELIMITERS[layout.delimiter]}): mend them, or quote texts that hold the delimiter"
        )
    kind = WrongWidth if "malformed" in text else ValueError  # that is a quotation mark without its partner
    return kind(f"{layout.path} is damaged or incomplete: {text[:120]}")


# -- new data in the form of the history: bad values become missing, and are counted -----------------------------


@dataclass
class Faults:
    """Lines and values left out; `note` is called at once with the first of each kind."""

    note: Callable[[str], object] = lambda _: None
    lines: int = 0
    first_line: str = ""
    values: dict[str, tuple[int, str]] = field(default_factory=dict)  # column: how many, the first
    late: int = 0  # rows that came after their window was complete

    def bad_line(self, where: str, why: str, count: int = 1) -> None:
        """Count bad lines; where: the place of the first, why: what is wrong with it."""
        if not self.lines:
            self.first_line = f"{where} {why}"
            self.note(f"{self.first_line}: left out, as are others like it")
        self.lines += count

    def bad_values(self, column: str, count: int, where: str, text: str, why: str) -> None:
        """Count bad values of a column; where, text and why: place, content and fault of the first."""
        before, first = self.values.get(column, (0, f"{shortened(text)!r} in {where} ({why})"))
        if not before:
            self.note(f"column {column!r} has {first}: counted as missing, as are others like it")
        self.values[column] = (before + count, first)

    def notes(self) -> list[str]:
        """One text for the bad lines, and one for each column with bad values."""
        notes = []
        if self.lines:
            were = "line was" if self.lines == 1 else "lines were"
            notes.append(f"{self.lines} bad {were} left out, the first: {self.first_line}")
        for column, (count, first) in self.values.items():
            them = "value counts" if count == 1 else "values count"
            notes.append(f"column {column!r}: {count} {them} as missing, the first: {first}")
        if self.late:
            one = self.late == 1
            came = "row came too late for its window and was" if one else "rows came too late for their window and were"
            notes.append(f"{self.late} {came} left out")
        return notes


def good_lines(
    lines: Iterable[tuple[int, bytes]], layout: Layout, faults: Faults
) -> tuple[list[bytes], tuple[int, ...]]:
    """The lines that are rows of a file, and their numbers; blank ones and repeated column names are passed over."""
    kept, numbers = [], []
    for number, line in lines:
        text = line.strip(b"\r\n")
        if not text.strip():
            continue
        fields = _fields(text, layout.delimiter)
        if fields == len(layout.names) and b"\0" not in text:
            if not _is_header(text, layout):
                kept.append(text + b"\n")
                numbers.append(number)
        else:
            why = "holds NUL bytes" if b"\0" in text else width_fault(fields, len(layout.names), layout.delimiter)
            faults.bad_line(f"line {number} of {layout.path}", why)
    return kept, tuple(numbers)


def _fields(line: bytes, delimiter: str) -> int:
    """How many values a line has; 0 where its quotes do not close."""
    if b'"' not in line:
        return line.count(delimiter.encode()) + 1
    if line.count(b'"') % 2:
        return 0
    try:
        return len(next(csv.reader([line.decode(errors="replace")], delimiter=delimiter)))
    except (csv.Error, StopIteration):
        return 0


def _is_header(line: bytes, layout: Layout) -> bool:
    """Whether these are the column names once more; only looked at where the line begins as they do."""
    first = layout.full[0].encode()
    if first not in line[: len(first) + 8]:
        return False
    return named(next(csv.reader([line.decode(errors="replace")], delimiter=layout.delimiter))) == layout.full


def why_no_number(text: str, decimal_comma: bool) -> str:
    if not is_number(text, not decimal_comma):
        return "no number"
    return "leave out --decimal-comma?" if decimal_comma else "add --decimal-comma?"


def shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


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
            alone = column.to_frame("texts")  # pl.col takes a name such as * for several
            kept = alone.select(number_of(pl.col("texts"), layout.decimal_comma)).to_series()
            bad = column.is_not_null() & kept.is_null()
        else:
            bad = _unknown(column, levels)
            kept = column.set(bad, None)
        changed.append(kept.alias(name))
        if count := int(bad.sum()):
            first = int(bad.arg_true()[0])
            text = str(column[first])
            why = why_no_number(text, layout.decimal_comma) if levels is None else "unknown to the history"
            faults.bad_values(name, count, f"{layout.where(first)} of {layout.path}", text, why)
    return frame.with_columns(changed)


def _unknown(column: pl.Series, levels: Sequence[str]) -> pl.Series:
    """Which values are none of these texts; numbers are compared with the texts that are numbers."""
    import polars as pl

    if column.dtype == pl.String:
        return column.is_not_null() & ~column.is_in(list(levels))
    known = [float(level) for level in levels if is_number(level)]
    return column.is_not_null() & ~column.is_nan() & ~column.is_in(known)
