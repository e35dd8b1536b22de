"""The values of one file as a frame of numbers and texts.

The types are guessed from the first rows and the file is read once, straight into numbers. Only if a later row does
not fit the guess, the file is read again to learn which columns hold what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from eccaht.data.cleaning import MOST_LEVELS
from eccaht.data.encodings import encoding_note, opened, transcoded
from eccaht.data.faults import Faults, good_lines, shortened
from eccaht.data.selection import place_of
from eccaht.data.sniffing import DELIMITERS, MISSING, Layout, WrongWidth, is_number, wrong_width
from eccaht.data.timing import TIME, TimeRule

if TYPE_CHECKING:
    import polars as pl

_PARSED = {"nan", "NaN", "NAN", "-nan", "-NaN", ""}  # polars reads these by itself
_CHUNK = 1 << 24


def load(
    layout: Layout, chosen: Mapping[str, int], rule: TimeRule, faults: Faults | None = None
) -> tuple[Layout, pl.DataFrame]:
    """Read the chosen columns (name: place) and those of the time, as numbers or texts.

    The layout comes back as it was found to be once all of the file was read. faults: takes lines that are no rows,
    which are refused otherwise; texts are then left as they are.
    """
    own = {f"{TIME}{k}": place_of(layout, name) for k, name in enumerate(rule.columns)}
    places = {**chosen, **{name: place for name, place in own.items() if place is not None}}
    try:
        frame = _read(layout, places)
    except UnicodeDecodeError:
        layout = replace(
            layout, content=transcoded(layout.path, "latin-1"), notes=encoding_note(layout.path, "latin-1")
        )
        return load(layout, chosen, rule, faults)
    except WrongWidth:
        if faults is None:
            raise
        layout = _mended(layout, faults)
        frame = _read(layout, places)
    if faults is None:
        _check_texts(layout, frame)
    return layout, frame


def _read(layout: Layout, places: Mapping[str, int]) -> pl.DataFrame:
    import polars as pl

    try:
        return _parquet(layout, places) if layout.format == "parquet" else _csv(layout, places)
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        raise _damaged(layout, error) from None


def _mended(layout: Layout, faults: Faults) -> Layout:
    """The file without the lines that are no rows."""
    lines, numbers = good_lines(((k, line) for k, line in _lines(layout) if k > layout.skip), layout, faults)
    return replace(layout, skip=0, content=b"".join(lines), lines=numbers)


def _parquet(layout: Layout, places: Mapping[str, int]) -> pl.DataFrame:
    """Numbers and truth values as floats, categories as text; times stay; anything else is refused by name."""
    import polars as pl

    schema = pl.read_parquet_schema(layout.path)
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
    return pl.scan_parquet(layout.path, glob=False).select(wanted).collect(engine="streaming")


def _csv(layout: Layout, places: Mapping[str, int]) -> pl.DataFrame:
    import polars as pl

    comma = layout.decimal_comma
    numeric = {k for k in places.values() if all(is_number(text, comma) for text in layout.texts(k))}
    dates = {place for name, place in places.items() if name.startswith(TIME) and not _is_epoch(layout, place)}
    numeric -= dates
    spellings = _spellings(layout, numeric)
    columns = {name: pl.col(str(k)) for name, k in places.items()}
    wanted = [
        (column if places[name] in numeric | dates else _text(column)).alias(name) for name, column in columns.items()
    ]
    try:
        frame = _scan(layout, numeric, spellings).select(wanted).collect(engine="streaming")
    except pl.exceptions.ComputeError as error:
        if "could not parse" not in str(error):
            raise
        frame = _leniently(layout, places, numeric)
    _check_short_lines(layout, frame, places)
    return frame


def _is_epoch(layout: Layout, place: int) -> bool:
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


def _spellings(layout: Layout, numeric: set[int]) -> list[str]:
    """The spellings of missing values that the first rows show: each one that is looked for costs time."""
    seen = {row[k] for row in layout.sample for k in numeric}
    return sorted(seen & set(MISSING) - _PARSED)


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


def _leniently(layout: Layout, places: Mapping[str, int], numeric: set[int]) -> pl.DataFrame:
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
    return lines.select(wanted).collect(engine="streaming")


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
        hint = "add --no-decimal-comma if commas are not decimal points"
        hint = hint if layout.decimal_comma else "add --decimal-comma if commas are decimal points"
    where = f"{layout.where(row)} of {layout.path}"
    return ValueError(f"{where}: {shortened(text)!r} in column {name!r} is no number: {hint}")


def _check_short_lines(layout: Layout, frame: pl.DataFrame, places: Mapping[str, int]) -> None:
    """Lines with too few values come as missing ones at the end: look for them where the last value is missing."""
    last = len(layout.names) - 1
    name = next((name for name, place in places.items() if place == last), None)
    delimiter = layout.delimiter.encode()
    if (name is not None and frame[name].null_count() == 0) or _all_full(layout, delimiter):
        return
    _refuse_lines(layout, lambda found: found < last)


def _refuse_lines(layout: Layout, wrong: Callable[[int], bool]) -> None:
    """Name the first line with a wrong number of delimiters; quoted texts may hold some, so their lines are passed."""
    delimiter = layout.delimiter.encode()
    for number, line in _lines(layout):
        if number > layout.skip and line.strip() and b'"' not in line and wrong(found := line.count(delimiter)):
            raise wrong_width(layout.path, number, found + 1, len(layout.names), layout.delimiter)


def _all_full(layout: Layout, delimiter: bytes) -> bool:
    """Whether there are as many delimiters as full lines have; quick, but blind to which line lacks one."""
    delimiters, ends, block = 0, 0, b"\n"
    with _opened(layout) as file:
        for _ in range(layout.skip):
            file.readline()
        while chunk := file.read(_CHUNK):
            data, block = np.frombuffer(chunk, dtype=np.uint8), chunk
            delimiters += int(np.count_nonzero(data == delimiter[0]))
            ends += int(np.count_nonzero(data == 10))
    return delimiters == (ends + (not block.endswith(b"\n"))) * (len(layout.names) - 1)


def _lines(layout: Layout) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers."""
    with _opened(layout) as file:
        yield from enumerate(file, 1)


def _opened(layout: Layout) -> BinaryIO:
    return opened(layout.path) if layout.content is None else BytesIO(layout.content)


def _damaged(layout: Layout, error: BaseException) -> ValueError:
    """One line for what polars says in many."""
    text = " ".join(str(error).split())
    if "utf-8" in text.lower() and layout.format == "csv" and layout.content is None:
        return UnicodeDecodeError("utf-8", b"", 0, 0, text)
    if "more fields" in text or "n_extra" in text or "n_missing" in text:
        _refuse_lines(layout, lambda found: found != len(layout.names) - 1)
        return WrongWidth(
            f"{layout.path} has lines with more or fewer values than the {len(layout.names)} of its header (separated "
            f"by {DELIMITERS[layout.delimiter]}): mend them, or quote texts that hold the delimiter"
        )
    kind = WrongWidth if "malformed" in text else ValueError  # that is a quotation mark without its partner
    return kind(f"{layout.path} is damaged or incomplete: {text[:120]}")
