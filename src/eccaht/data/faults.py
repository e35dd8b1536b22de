"""What could not be read in new data: counted, the first named, and left out."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from eccaht.data.sniffing import Layout, is_number, named, width_fault

LONGEST_LINE = 1 << 22  # bytes: a row of some hundred thousand readings
_SHOWN = 40


@dataclass
class Faults:
    """Lines and values left out; `note` is told of the first of each kind at once."""

    note: Callable[[str], object] = lambda _: None
    lines: int = 0
    first_line: str = ""
    values: dict[str, tuple[int, str]] = field(default_factory=dict)  # column: how many, the first

    def bad_line(self, where: str, why: str, count: int = 1) -> None:
        """Count lines, of which the first is here and this is wrong with it."""
        if not self.lines:
            self.first_line = f"{where} {why}"
            self.note(f"{self.first_line}: left out, as are others like it")
        self.lines += count

    def bad_values(self, column: str, count: int, where: str, text: str, why: str) -> None:
        """Count values of a column."""
        before, first = self.values.get(column, (0, f"{shortened(text)!r} in {where} ({why})"))
        if not before:
            self.note(f"column {column!r} has {first}: counted as missing, as are others like it")
        self.values[column] = (before + count, first)

    def notes(self) -> list[str]:
        """How many there were."""
        told = []
        if self.lines:
            were = "line was" if self.lines == 1 else "lines were"
            told.append(f"{self.lines} bad {were} left out, the first: {self.first_line}")
        for column, (count, first) in self.values.items():
            them = "value counts" if count == 1 else "values count"
            told.append(f"column {column!r}: {count} {them} as missing, the first: {first}")
        return told


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
    """What is wrong with a text where a number should be."""
    if not is_number(text, not decimal_comma):
        return "no number"
    return "leave out --decimal-comma?" if decimal_comma else "add --decimal-comma?"


def shortened(text: str) -> str:
    """A text that fits into a line."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
