"""What kind of file it is, how its text is written and which columns it has: found from its first bytes and lines."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from eccaht.base.files import regular_file
from eccaht.base.presentation.text import counted, did_you_mean

if TYPE_CHECKING:
    import polars as pl

Encoding = Literal["utf-8", "utf-16", "latin-1"]
MISSING = (
    *("", "-", "--", "?", "*", ".", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "NaN", "nan", "NAN", "-nan", "-NaN"),
    *("null", "NULL", "Null", "None", "none", "NONE", "nil", "missing", "Missing", "NaT"),
    *("#VALUE!", "#REF!", "#DIV/0!", "1.#QNAN", "-1.#IND", "1.#IND", "1.#INF", "-1.#INF"),
    *("<NA>", "(null)", "Bad", "BAD", "Bad Input", "Bad Data", "I/O Timeout", "No Data", "No Sample", "Not Connect"),
    *("Comm Fail", "Configure", "Scan Off", "Scan Timeout", "Pt Created", "Intf Shut", "Under Range", "Over Range"),
)
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
MEND_LINE = "the file is cut off or damaged there, or the delimiter occurs in a text"
_GZIP = b"\x1f\x8b"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_SAMPLE = 1 << 20
_SAMPLE_ROWS = 1000  # of a Parquet file or a frame
_SHOWN = 40  # characters of a text in a message
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|[+-]?nan", re.ASCII | re.IGNORECASE)
_MISSING = frozenset(MISSING)
_FRAME = Path("the frame")


class WrongWidth(ValueError):
    """A line has too many or too few values."""


@dataclass(frozen=True)
class Layout:
    """Where the values of a file, or of a frame in memory, are.

    names: what messages and models call the columns; full: as the file has them.
    skip: lines before the first row of values (CSV). sample: the first rows, as text; "" for values that are none.
    content: the text in UTF-8 where it is not read from the path. lines: the numbers of its rows' lines in the file,
    where some were left out. frame: what is in memory already, read as a Parquet file is. told: notes of its reading.
    """

    path: Path
    format: Literal["csv", "parquet"]
    names: tuple[str, ...]
    full: tuple[str, ...]
    delimiter: str = ","
    skip: int = 0
    sample: tuple[tuple[str, ...], ...] = ()
    decimal_comma: bool = False
    encoding: Encoding = "utf-8"
    content: bytes | None = field(default=None, repr=False)
    lines: tuple[int, ...] | None = field(default=None, repr=False)
    frame: pl.DataFrame | None = field(default=None, repr=False)
    told: tuple[str, ...] = ()

    def texts(self, position: int) -> list[str]:
        """The values of one column in the sample, without blanks around them and without the missing ones."""
        stripped = (row[position].strip() for row in self.sample)
        return [text for text in stripped if text not in _MISSING]

    def is_epoch(self, position: int) -> bool:
        """Whether a time column holds numbers that are no digits of a date like 20171009180000."""
        texts = self.texts(position)
        digits = all(len(text) in (8, 14) and text.isdigit() and text[:2] in ("19", "20") for text in texts)
        return not digits and all(is_number(text) or is_number(text, True) for text in texts)

    def option(self, shell: str, python: str) -> str:
        """What messages call an option: a frame is given in Python, a file at the shell too."""
        return python if self.path == _FRAME else f"{shell} (in Python {python})"

    def where(self, row: int) -> str:
        """What messages call a row of values."""
        if self.format == "parquet":
            return f"row {row + 1}"
        return f"line {self.skip + row + 1 if self.lines is None else self.lines[row]}"

    def scan(self, numeric: Collection[int] = (), missing: Sequence[str] = ()) -> pl.LazyFrame:
        """All columns: of a Parquet file or a frame with their types, of CSV by place, texts but for `numeric` ones.

        missing: texts that stand for missing values, beside those that polars knows.
        """
        import polars as pl

        if self.format == "parquet":
            return pl.scan_parquet(self.path, glob=False) if self.frame is None else self.frame.lazy()
        return pl.scan_csv(
            self.path if self.content is None else BytesIO(self.content),
            has_header=False,
            skip_lines=self.skip,
            separator=self.delimiter,
            schema={str(k): pl.Float64 if k in numeric else pl.String for k in range(len(self.names))},
            null_values=list(missing) or None,
            decimal_comma=self.decimal_comma,
            glob=False,
        )

    def place(self, name: str) -> int | None:
        """Where a column is, called by its name, its full name or the last part of that; None if there is none."""
        for names in (self.names, self.full):
            if name in names:
                return names.index(name)
        shorts = [short_name(full) for full in self.full]
        return shorts.index(short_name(name)) if shorts.count(short_name(name)) == 1 else None

    def matching(self, wanted: Iterable[object], option: str) -> list[int]:
        """Where the columns with these names are, in the order of the file; * and ? stand for any characters.

        Both the name as the file has it and its short form are understood, and several names with commas between
        them. A name that fits nothing is refused. Names of pandas may be numbers: their text is meant.
        """
        found: set[int] = set()
        for name in map(str, wanted):
            place = self.place(name)
            places = [k for k, own in enumerate(self.names) if fnmatchcase(own, name)] if place is None else [place]
            if not places and "," in name:
                places = self.matching([part.strip() for part in name.split(",") if part.strip()], option)
            if not places:
                raise ValueError(f"{option}: {self.path} has no column {name!r}{did_you_mean(name, self.names)}")
            found.update(places)
        return sorted(found)

    def named(self, wanted: Iterable[object]) -> set[str]:
        """Those of the columns that `matching` finds that are called by name, not by * and ?."""
        parts = [[name] if self.place(name) is not None else name.split(",") for name in map(str, wanted)]
        places = [self.place(part.strip()) for several in parts for part in several]
        return {self.names[place] for place in places if place is not None}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of how it is written."""
        names = {"utf-16": "UTF-16", "latin-1": "not UTF-8, but Latin-1 (Windows-1252) by the looks of it"}
        encoded = [f"{self.path} is {names[self.encoding]}, and was read so"] if self.encoding in names else []
        return (*encoded, *self.told)


def is_number(text: str, decimal_comma: bool = False) -> bool:
    wrong = "." if decimal_comma else ","
    return _NUMBER.fullmatch(text) is not None and wrong not in text


def sniff(path: Path, decimal_comma: bool | None = None, *, header: bool = True, strict: bool = True) -> Layout:
    """Find the layout of a CSV (also gzipped) or Parquet file.

    decimal_comma: found by itself unless given. header: whether there is a line with column names; without one they
    are called c1, c2, ... strict: refuse lines of another width among the first ones.
    """
    raw, whole = _head(path)
    if raw.startswith(b"PAR1"):
        return _parquet(path, decimal_comma)
    if path.suffix.lower() in (".parquet", ".pq"):
        raise ValueError(f"{path} is named like a Parquet file but is none: is it complete?")
    encoding = encoding_of(path, raw, whole, strict)
    lines = lines_of(as_text(raw, encoding))
    if not whole and len(lines) > 1:
        lines.pop()  # cut in the middle
    return replace(sniff_lines(path, lines, decimal_comma, header=header, strict=strict), encoding=encoding)


def sniff_lines(
    path: Path, lines: list[str], decimal_comma: bool | None = None, *, header: bool = True, strict: bool = True
) -> Layout:
    """Find the layout from the first lines of a CSV file."""
    while lines and not lines[-1].strip():
        lines.pop()
    delimiter, width, rows = _split(path, lines, decimal_comma)
    before = _header(path, rows, width) + 1 if header else next(k for k, row in enumerate(rows) if len(row) == width)
    first = next((k for k in range(before, len(rows)) if lines[k].strip()), None)
    if first is None:
        raise ValueError(f"{path} has column names but no rows")
    for k, row in enumerate(rows[before:] if strict else (), before + 1):
        if len(row) not in (width, 0) and not (len(row) == 1 and not row[0].strip()):
            raise ValueError(f"line {k} of {path} {width_fault(len(row), width, delimiter)}: {MEND_LINE}")
    full = named(rows[before - 1]) if header else tuple(f"c{k}" for k in range(1, width + 1))
    sample = tuple(tuple(row) for row in rows[before:] if len(row) == width)
    comma, told = has_decimal_comma(sample, delimiter) if decimal_comma is None else decimal_comma, list[str]()
    if passed := sum(1 for line in lines[: before - 1] if line.strip()) if header else 0:
        told.append(f"{path}: {counted(passed, 'line')} before the column names passed over")
    told += _told_of_commas(path, comma, decimal_comma)
    return Layout(path, "csv", _short(path, full), full, delimiter, first, sample, comma, told=tuple(told))


def _told_of_commas(path: Path, comma: bool, given: bool | None) -> list[str]:
    return [f"{path}: commas are decimal points"] if comma and given is None else []


def lines_of(text: str) -> list[str]:
    """The lines of a text, ended as a file ends them: other marks, such as U+0085 or U+2028, are part of a value.

    >>> lines_of("time,a\\x85b\\r\\n1,2\\n")
    ['time,a\\x85b', '1,2', '']
    """
    return [line.removesuffix("\r") for line in text.split("\n")]


def has_decimal_comma(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Whether more numbers of these rows have a decimal comma than a decimal point."""
    if delimiter == ",":
        return False
    parts = [text.strip() for row in rows for text in row if "," in text or "." in text]
    return sum(2 * is_number(text, True) - 1 for text in parts if is_number(text) or is_number(text, True)) > 0


def _head(path: Path) -> tuple[bytes, bool]:
    """The first bytes, unpacked if need be, and whether they are all."""
    with regular_file(path, "file") as file:
        start = file.read(2)
    if not start:
        raise ValueError(f"{path} is empty")
    if path.suffix.lower() == ".gz" and start != _GZIP:
        raise ValueError(f"{path} is named like a gzip file but is none: rename it, or compress it again")
    try:
        with opened(path) as file:
            return file.read(_SAMPLE), not file.read(1)
    except (OSError, EOFError, zlib.error) as error:
        if start != _GZIP:
            raise
        raise ValueError(f"{path} is a damaged or incomplete gzip file: {error}") from None


def _split(path: Path, lines: Sequence[str], decimal_comma: bool | None) -> tuple[str, int, list[list[str]]]:
    """Split by the delimiter that gives most lines the same number of fields, which is the width."""
    best = (0, False, 0)  # if two delimiters fit equally well the comma loses: it is rather part of numbers
    chosen: tuple[str, int, list[list[str]]] | None = None
    for delimiter in DELIMITERS:
        if decimal_comma and delimiter == ",":
            continue
        try:
            rows = [next(csv.reader([line], delimiter=delimiter), []) for line in lines]
        except csv.Error as error:
            raise ValueError(f"{path} is no CSV file: {error}") from None
        widths = Counter(len(row) for row in rows if len(row) > 1)
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        if (score := (count, delimiter != ",", width)) > best and widths:
            best, chosen = score, (delimiter, width, rows)
    if chosen is None:
        raise ValueError(
            f"{path} has only one column: values must be separated by {', '.join(DELIMITERS.values())}"
            + (" (not by comma, with --decimal-comma)" if decimal_comma else "")
        )
    return chosen


def _header(path: Path, rows: Sequence[Sequence[str]], width: int) -> int:
    """The place of the line with column names."""
    found = next((k for k, row in enumerate(rows) if len(row) == width and _looks_like_header(row)), None)
    if found is not None:
        return found
    near = next((k for k, row in enumerate(rows) if len(row) > 1 and _looks_like_header(row)), None)
    if near is None:
        raise ValueError(
            f"{path} has no line with column names: put one before the values, or add --no-header to have them "
            "called c1, c2, ..."
        )
    raise ValueError(
        f"line {near + 1} of {path} has {len(rows[near])} column names, but most lines have {width} values: mend it"
    )


def _looks_like_header(row: Sequence[str]) -> bool:
    """At least half of the fields are filled, most of them not with numbers."""
    filled = [field.strip() for field in row if field.strip()]
    texts = [field for field in filled if not is_number(field) and not is_number(field, True)]
    return 2 * len(filled) >= len(row) and 2 * len(texts) > len(filled)


def width_fault(found: int, expected: int, delimiter: str) -> str:
    """What is wrong with a line of another width; 0 values stand for quotes that do not close."""
    if not found:
        return "has a quotation mark without its partner"
    return (
        f"has {found} value{'s' * (found != 1)} where the header has {expected} (separated by {DELIMITERS[delimiter]})"
    )


def named(names: Sequence[str]) -> tuple[str, ...]:
    """Names without blanks around them; a column without a name is called by its place."""
    return tuple(name.strip() or f"column {k}" for k, name in enumerate(names, 1))


def _short(path: Path, full: Sequence[str]) -> tuple[str, ...]:
    """The last part of names that are Windows paths, wherever it is unambiguous."""
    twice = next((name for name, count in Counter(full).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{path} has two columns named {twice!r}: names must be distinct")
    last = [short_name(name) for name in full]
    counts = Counter(last)
    names = tuple(short if counts[short] == 1 else name for name, short in zip(full, last, strict=True))
    if patterns := [name for name in names if name.startswith("^") and name.endswith("$")]:
        raise ValueError(f"{path} has a column named {patterns[0]!r:.60}, which polars takes for a pattern: rename it")
    return names


def short_name(name: str) -> str:
    r"""The last part of a name that is a Windows path.

    >>> short_name(r"\\\\SERVER\\LOG\\1_AIT_001_PV")
    '1_AIT_001_PV'
    """
    return name.rstrip("\\").rsplit("\\", 1)[-1].strip() or name


def _parquet(path: Path, decimal_comma: bool | None) -> Layout:
    import polars as pl

    try:
        return _typed(path, list(pl.read_parquet_schema(path)), decimal_comma)
    except (pl.exceptions.PolarsError, OSError) as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{path} is a damaged or incomplete Parquet file: {text}") from None


def layout_of_frame(frame: pl.DataFrame, decimal_comma: bool | None = None) -> Layout:
    if not len(frame):
        raise ValueError("the frame has no rows")
    return _typed(_FRAME, frame.columns, decimal_comma, frame)


def _typed(path: Path, columns: list[str], decimal_comma: bool | None, frame: pl.DataFrame | None = None) -> Layout:
    if not columns:
        raise ValueError(f"{path} has no columns")
    full = named(columns)
    layout = Layout(path, "parquet", _short(path, full), full, frame=frame)
    sample = _first_texts(layout)
    comma = has_decimal_comma(sample, "") if decimal_comma is None else decimal_comma
    return replace(layout, sample=sample, decimal_comma=comma, told=tuple(_told_of_commas(path, comma, decimal_comma)))


def _first_texts(layout: Layout) -> tuple[tuple[str, ...], ...]:
    """The first rows of the columns of text; the others have types that say what they hold."""
    import polars as pl

    head = layout.scan().select(pl.col(pl.String)).head(_SAMPLE_ROWS).collect()
    texts = {name: head[name].fill_null("").to_list() for name in head.columns}
    blank = [""] * len(head)
    return tuple(zip(*(texts.get(name, blank) for name in layout.scan().collect_schema()), strict=True))


def shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def encoding_of(path: Path, head: bytes, whole: bool, strict: bool = True) -> Encoding:
    """What the first bytes of a file are written in; what is no text is refused, if strict also a few such bytes."""
    if head.startswith(b"PK\x03\x04"):
        raise ValueError(f"{path} is a zip archive or a workbook: save its table as CSV or Parquet")
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    if head[:200].count(b"\0") > 50:
        raise ValueError(f"{path} is UTF-16 text without its mark or no text at all: save it as CSV in UTF-8")
    if strict and b"\0" in head:
        raise ValueError(f"{path} is no text: give CSV (also gzipped) or Parquet")
    if b"\r" in head and b"\n" not in head:
        raise ValueError(f"{path} ends its lines by carriage returns alone: save it with usual line ends")
    try:
        head.decode()
    except UnicodeDecodeError as error:
        cut = not whole and error.start > len(head) - 4  # a character cut in the middle
        if not cut and len(_CONTROL.findall(head)) > (0 if strict else len(head) // 10):
            raise ValueError(f"{path} is no text: give CSV (also gzipped) or Parquet") from None
        return "utf-8" if cut else "latin-1"
    return "utf-8"


def as_text(raw: bytes, encoding: Encoding) -> str:
    """Decode, without a mark at the beginning; a character cut off at the end is left out.

    >>> as_text("Ölstand".encode("cp1252"), "latin-1")
    'Ölstand'
    """
    if encoding == "utf-16":
        return raw[: len(raw) // 2 * 2].decode("utf-16", errors="ignore")
    if encoding == "utf-8":
        return raw.removeprefix(BOM_UTF8).decode(errors="ignore")
    try:
        return raw.decode("cp1252")  # Latin-1 with more letters, which is what Windows writes
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def is_gzip(path: Path) -> bool:
    with path.open("rb") as probe:  # whatever its name is
        return probe.read(2) == _GZIP


def opened(path: Path) -> BinaryIO:
    """Open a file, unpacked if it is gzipped."""
    return cast(BinaryIO, gzip.open(path)) if is_gzip(path) else path.open("rb")
