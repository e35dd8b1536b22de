"""What kind of file it is: found from its first bytes and lines, or refused in one line."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MISSING = (
    *("", "-", "--", "?", "*", ".", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "NaN", "nan", "NAN", "-nan", "-NaN"),
    *(
        "null",
        "NULL",
        "Null",
        "None",
        "none",
        "NONE",
        "nil",
        "missing",
        "Missing",
        "NaT",
        "#VALUE!",
        "#REF!",
        "#DIV/0!",
    ),
    *("<NA>", "(null)", "Bad", "BAD", "Bad Input", "Bad Data", "I/O Timeout", "No Data", "No Sample", "Not Connect"),
    *("Comm Fail", "Configure", "Scan Off", "Scan Timeout", "Pt Created", "Intf Shut", "Under Range", "Over Range"),
    *("1.#QNAN", "-1.#IND", "1.#IND", "1.#INF", "-1.#INF"),
)
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_SAMPLE = 1 << 20
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|[+-]?nan", re.IGNORECASE)
_MISSING = frozenset(MISSING)


@dataclass(frozen=True)
class Layout:
    """Where the values of a file are.

    names: what messages and models call the columns; full: as the file has them.
    skip: lines before the first row of values (CSV). sample: the first rows, as text (CSV).
    """

    path: Path
    format: Literal["csv", "parquet"]
    names: tuple[str, ...]
    full: tuple[str, ...]
    delimiter: str = ","
    skip: int = 0
    sample: tuple[tuple[str, ...], ...] = ()

    def texts(self, position: int) -> list[str]:
        """The values of one column in the sample, without blanks around them and without the missing ones."""
        stripped = (row[position].strip() for row in self.sample)
        return [text for text in stripped if text not in _MISSING]

    def where(self, row: int) -> str:
        """What messages call a row of values."""
        return f"line {self.skip + row + 1}" if self.format == "csv" else f"row {row + 1}"


def is_number(text: str, decimal_comma: bool = False) -> bool:
    """Whether the text is a number in the given notation."""
    wrong = "." if decimal_comma else ","
    return _NUMBER.fullmatch(text) is not None and wrong not in text


def sniff(path: Path, decimal_comma: bool = False) -> Layout:
    """Find the layout of a CSV (also gzipped) or Parquet file."""
    head, whole = _head(path)
    if head.startswith(b"PAR1"):
        return _parquet(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        raise ValueError(f"{path} is named like a Parquet file but is none: is it complete?")
    lines = _decoded(path, head, whole).splitlines()
    if not whole and len(lines) > 1:
        lines.pop()  # cut in the middle
    while lines and not lines[-1].strip():
        lines.pop()
    delimiter, width, rows = _split(path, lines, decimal_comma)
    header = next((k for k, row in enumerate(rows) if len(row) == width and _looks_like_header(row)), None)
    if header is None:
        raise _no_header(path, rows, width)
    first = next((k for k in range(header + 1, len(rows)) if lines[k].strip()), None)
    if first is None:
        raise ValueError(f"{path} has column names but no rows")
    _check_widths(path, rows, header, width, delimiter)
    full = _filled(rows[header])
    sample = tuple(tuple(row) for row in rows[header + 1 :] if len(row) == width)
    return Layout(path, "csv", _short(path, full), full, delimiter, first, sample)


def _head(path: Path) -> tuple[bytes, bool]:
    """The first bytes, unpacked if need be, and whether they are all."""
    if path.is_dir():
        raise ValueError(f"{path} is a directory: name the files in it")
    if not path.exists():
        raise FileNotFoundError(f"no file at {path}")
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
        whole = not file.read(1)
    if not head:
        raise ValueError(f"{path} is empty")
    if head.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path) as packed:
                return packed.read(_SAMPLE), not packed.read(1)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged or incomplete gzip file: {error}") from None
    if path.suffix.lower() == ".gz":
        raise ValueError(f"{path} is named like a gzip file but is none: rename it, or compress it again")
    return head, whole


def _decoded(path: Path, head: bytes, whole: bool) -> str:
    if head.startswith(b"PK\x03\x04"):
        raise ValueError(f"{path} is a zip archive or a workbook: save its table as CSV or Parquet")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head[:200].count(b"\0") > 50:
        raise ValueError(f"{path} is UTF-16 text or no text at all: save it as CSV in UTF-8, or as Parquet")
    if b"\0" in head:
        raise ValueError(f"{path} is no text: give CSV (also gzipped) or Parquet")
    if b"\r" in head and b"\n" not in head:
        raise ValueError(f"{path} ends its lines by carriage returns alone: save it with usual line ends")
    try:
        return head.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        if not whole and error.start > len(head) - 4:  # a character cut in the middle
            return head[: error.start].removeprefix(b"\xef\xbb\xbf").decode()
        line = head[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path} is not UTF-8 text (byte 0x{head[error.start]:02x} in line {line}): save it as UTF-8"
        ) from None


def _split(path: Path, lines: Sequence[str], decimal_comma: bool) -> tuple[str, int, list[list[str]]]:
    """Split by the delimiter that gives most lines the same number of fields, which is the width."""
    best: tuple[int, int] = (0, 0)
    chosen: tuple[str, int, list[list[str]]] | None = None
    for delimiter in DELIMITERS:
        if decimal_comma and delimiter == ",":
            continue
        try:
            rows = [next(csv.reader([line], delimiter=delimiter), []) for line in lines]
        except csv.Error as error:
            raise ValueError(f"{path} is no CSV file: {error}") from None
        widths = Counter(len(row) for row in rows if len(row) > 1)
        if widths and (score := (widths.most_common(1)[0][1], widths.most_common(1)[0][0])) > best:
            best, chosen = score, (delimiter, score[1], rows)
    if chosen is None:
        raise ValueError(
            f"{path} has only one column: values must be separated by {', '.join(DELIMITERS.values())}"
            + (" (not by comma, with --decimal-comma)" if decimal_comma else "")
        )
    return chosen


def _no_header(path: Path, rows: Sequence[Sequence[str]], width: int) -> ValueError:
    near = next((k for k, row in enumerate(rows) if len(row) > 1 and _looks_like_header(row)), None)
    if near is None:
        return ValueError(f"{path} has no line with column names: put one before the values")
    return ValueError(
        f"line {near + 1} of {path} has {len(rows[near])} column names, but most lines have {width} values: mend it"
    )


def _looks_like_header(row: Sequence[str]) -> bool:
    """At least half of the fields are filled, most of them not with numbers."""
    filled = [field.strip() for field in row if field.strip()]
    texts = [field for field in filled if not is_number(field) and not is_number(field, True)]
    return 2 * len(filled) >= len(row) and 2 * len(texts) > len(filled)


def _check_widths(path: Path, rows: Sequence[Sequence[str]], header: int, width: int, delimiter: str) -> None:
    for k, row in enumerate(rows[header + 1 :], header + 2):
        if len(row) not in (width, 0) and not (len(row) == 1 and not row[0].strip()):
            raise wrong_width(path, k, len(row), width, delimiter)


def wrong_width(path: Path, line: int, found: int, expected: int, delimiter: str) -> ValueError:
    """The error for a line with too many or too few values."""
    return ValueError(
        f"line {line} of {path} has {found} value{'s' * (found != 1)} where the header has {expected} (separated by "
        f"{DELIMITERS[delimiter]}): the file is cut off or damaged there, or the delimiter occurs in a text"
    )


def _filled(names: Sequence[str]) -> tuple[str, ...]:
    """Names without blanks around them; a column without a name is called by its place."""
    return tuple(name.strip() or f"column {k}" for k, name in enumerate(names, 1))


def _short(path: Path, full: Sequence[str]) -> tuple[str, ...]:
    """The last part of names that are Windows paths, wherever it is unambiguous."""
    twice = next((name for name, count in Counter(full).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{path} has two columns named {twice!r}: names must be distinct")
    last = [short_name(name) for name in full]
    counts = Counter(last)
    return tuple(short if counts[short] == 1 else name for name, short in zip(full, last, strict=True))


def short_name(name: str) -> str:
    r"""The last part of a name that is a Windows path.

    >>> short_name(r"\\\\SERVER\\LOG\\1_AIT_001_PV")
    '1_AIT_001_PV'
    """
    return name.rstrip("\\").rsplit("\\", 1)[-1].strip() or name


def _parquet(path: Path) -> Layout:
    import polars as pl

    try:
        full = _filled(list(pl.read_parquet_schema(path)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{path} is a damaged or incomplete Parquet file: {_first_line(error)}") from None
    if not full:
        raise ValueError(f"{path} has no columns")
    return Layout(path, "parquet", _short(path, full), full)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
