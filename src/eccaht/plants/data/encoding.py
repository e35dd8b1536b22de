"""The bytes of a file as text: its encoding, and gzip unpacked within bounds."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, cast

Encoding = Literal["utf-8", "utf-16", "latin-1"]
GZIP = b"\x1f\x8b"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_CHUNK = 1 << 24
_MOST_UNPACKED, _MOST_TIMES = 1 << 30, 100  # bytes, and times the packed size, of which the larger is the limit
_AT_ONCE = 1 << 28  # bytes that may be kept before it is known how many there are


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


def as_utf8(raw: bytes) -> bytes:
    """One line of UTF-8, or of Latin-1 made UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return as_text(raw, "latin-1").encode()
    return raw


def is_gzip(path: Path) -> bool:
    """Whether a file is packed, whatever its name is."""
    with path.open("rb") as probe:
        return probe.read(2) == GZIP


def opened(path: Path) -> BinaryIO:
    """Open a file, unpacked if it is gzipped."""
    return cast(BinaryIO, gzip.open(path)) if is_gzip(path) else path.open("rb")


def content_of(path: Path) -> bytes:
    """All of a file, unpacked if it is gzipped, up to a limit that no table reaches."""
    if not is_gzip(path):
        return path.read_bytes()
    limit = max(_MOST_UNPACKED, _MOST_TIMES * path.stat().st_size)
    parts, size, counted = list[bytes](), 0, False
    try:
        for part in _unpacked(path, limit):
            parts.append(part)
            size += len(part)
            if size > _AT_ONCE and not counted:  # what is refused must not have filled the memory before
                _check_size(path, sum(map(len, _unpacked(path, limit))), limit)
                counted = True
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is a damaged or incomplete gzip file: {error}") from None
    _check_size(path, size, limit)
    return b"".join(parts)


def _unpacked(path: Path, limit: int) -> Iterator[bytes]:
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


def transcoded(path: Path, encoding: Encoding) -> bytes:
    return as_text(content_of(path), encoding).encode()
