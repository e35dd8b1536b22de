"""A file that cannot be read as it stands: packed, in another encoding, damaged, or with lines that are no rows."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from eccaht.plants.data.cleaning import MOST_LEVELS
from eccaht.plants.data.layout import (
    DELIMITERS,
    Encoding,
    Layout,
    WrongWidth,
    as_text,
    is_gzip,
    is_number,
    named,
    opened,
    shortened,
    width_fault,
    wrong_width,
)

if TYPE_CHECKING:
    import polars as pl

    from eccaht.plants.data.recorded import Faults

LONGEST_LINE = 1 << 22  # bytes: a row of some hundred thousand readings
_CHUNK = 1 << 24  # bytes at once
_MOST_UNPACKED, _MOST_TIMES = 1 << 30, 100  # bytes, and times the packed size, of which the larger is the limit
_AT_ONCE = 1 << 28  # bytes that may be kept before it is known how many there are


def content_of(path: Path, encoding: Encoding = "utf-8") -> bytes:
    """All of a file in UTF-8, unpacked if it is gzipped, up to a limit that no table reaches."""
    content = _unpacked(path) if is_gzip(path) else path.read_bytes()
    return content if encoding == "utf-8" else as_text(content, encoding).encode()


def _unpacked(path: Path) -> bytes:
    limit = max(_MOST_UNPACKED, _MOST_TIMES * path.stat().st_size)
    parts, size, counted = list[bytes](), 0, False
    try:
        for part in _pieces(path, limit):
            parts.append(part)
            size += len(part)
            if size > _AT_ONCE and not counted:  # what is refused must not have filled the memory before
                _check_size(path, sum(map(len, _pieces(path, limit))), limit)
                counted = True
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is a damaged or incomplete gzip file: {error}") from None
    _check_size(path, size, limit)
    return b"".join(parts)


def _pieces(path: Path, limit: int) -> Iterator[bytes]:
    """The content of a gzipped file, piece by piece, until there is more than the limit."""
    size = 0
    with gzip.open(path) as file:
        while size <= limit and (part := file.read(_CHUNK)):
            yield part
            size += len(part)


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(
            f"{path} unpacks to more than {limit / 2**30:.3g} GiB, {size // path.stat().st_size} times its size and "
            "more: unpack it yourself if that is right"
        )


# -- line by line ----------------------------------------------------------------------------------------


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


def lines_in(layout: Layout) -> Iterator[tuple[int, bytes]]:
    """All lines of a file with their numbers."""
    with _bytes(layout) as file:
        yield from enumerate(file, 1)


def _bytes(layout: Layout) -> BinaryIO:
    return opened(layout.path) if layout.content is None else BytesIO(layout.content)


def check_all_full(layout: Layout) -> None:
    """Refuse lines with too few values."""
    if not _all_full(layout):
        _refuse_lines(layout, lambda found: found < len(layout.names) - 1)


def _all_full(layout: Layout) -> bool:
    """Whether there are as many delimiters as full lines have: much quicker than line by line if nothing is quoted."""
    counts, last = np.zeros(3, dtype=np.intp), b"\n"
    with _bytes(layout) as file:
        for _ in range(layout.skip):
            file.readline()
        while chunk := file.read(LONGEST_LINE):
            block, last = np.frombuffer(chunk, dtype=np.uint8), chunk[-1:]
            counts += [np.count_nonzero(block == ord(mark)) for mark in (layout.delimiter, "\n", '"')]
    delimiters, ends, quotes = counts.tolist()
    return not quotes and delimiters == (ends + (last != b"\n")) * (len(layout.names) - 1)


def _refuse_lines(layout: Layout, wrong: Callable[[int], bool]) -> None:
    """Name the first line with a wrong number of delimiters; quoted texts may hold some, so their lines are passed."""
    delimiter = layout.delimiter.encode()
    for number, line in lines_in(layout):
        if number > layout.skip and line.strip() and b'"' not in line and wrong(found := line.count(delimiter)):
            raise wrong_width(layout.path, number, found + 1, len(layout.names), layout.delimiter)


def damaged(layout: Layout, error: BaseException) -> ValueError:
    """What to raise where polars could not read a file."""
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


# -- value by value --------------------------------------------------------------------------------------


def check_texts(layout: Layout, frame: pl.DataFrame, names: Collection[str]) -> None:
    """Refuse columns of numbers with stray texts among them, naming the first.

    A few levels, some of them whole numbers and the others texts that are no rare exception, are a status.
    """
    import polars as pl

    comma = layout.decimal_comma
    for name, kind in frame.schema.items():
        if kind != pl.String or name not in names:
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


def comma_option(layout: Layout) -> str:
    """What reads decimal commas the other way."""
    if layout.decimal_comma:
        return layout.option("--no-decimal-comma", "decimal_comma=False")
    return layout.option("--decimal-comma", "decimal_comma=True")


def _stray_text(layout: Layout, name: str, column: pl.Series, stray: list[str]) -> ValueError:
    row = int(column.is_in(stray).arg_true()[0])
    text = column[row]
    hint = "mend it, exclude the column, or leave the field empty if there was no reading"
    if is_number(text, not layout.decimal_comma):
        hint = f"add {comma_option(layout)} if commas {'are not' if layout.decimal_comma else 'are'} decimal points"
    where = f"{layout.where(row)} of {layout.path}"
    return ValueError(f"{where}: {shortened(text)!r} in column {name!r} is no number: {hint}")


def as_utf8(raw: bytes) -> bytes:
    """One line of UTF-8, or of Latin-1 made UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return as_text(raw, "latin-1").encode()
    return raw
