"""A file that cannot be read as it stands: packed, in another encoding, damaged, or with lines that are no rows."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from eccaht.plants.data.cleaning import MOST_LEVELS
from eccaht.plants.data.layout import (
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
)

if TYPE_CHECKING:
    import polars as pl

LONGEST_LINE = 1 << 22  # bytes: a row of some hundred thousand readings


def content_of(path: Path, encoding: Encoding = "utf-8") -> bytes:
    """All of a file in UTF-8, unpacked if it is gzipped."""
    try:
        with opened(path) as file:
            content = file.read()
    except (OSError, EOFError, zlib.error) as error:
        if not is_gzip(path):
            raise
        raise ValueError(f"{path} is a damaged or incomplete gzip file: {error}") from None
    return content if encoding == "utf-8" else as_text(content, encoding).encode()


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


def lines_in(layout: Layout) -> Iterator[tuple[int, bytes]]:
    with _bytes(layout) as file:
        yield from enumerate(file, 1)


def _bytes(layout: Layout) -> BinaryIO:
    return opened(layout.path) if layout.content is None else BytesIO(layout.content)


def all_full(layout: Layout) -> bool:
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


def damaged(layout: Layout, error: BaseException) -> ValueError:
    """What to raise where polars could not read a file."""
    text = " ".join(str(error).split())
    if "utf-8" in text.lower() and layout.format == "csv" and layout.encoding == "utf-8":
        return UnicodeDecodeError("utf-8", b"", 0, 0, text)
    # the last is a quotation mark without its partner
    odd = any(word in text for word in ("more fields", "n_extra", "n_missing", "malformed"))
    return (WrongWidth if odd else ValueError)(f"{layout.path} is damaged or incomplete: {text[:120]}")


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
