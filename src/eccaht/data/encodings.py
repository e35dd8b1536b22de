"""Text files as UTF-8, whatever they were written in."""

from __future__ import annotations

import gzip
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import BinaryIO, Literal, cast

Encoding = Literal["utf-8", "utf-16", "latin-1"]
GZIP = b"\x1f\x8b"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


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


def opened(path: Path) -> BinaryIO:
    """Open a file, unpacked if it is gzipped."""
    with path.open("rb") as probe:
        packed = probe.read(2) == GZIP
    return cast(BinaryIO, gzip.open(path)) if packed else path.open("rb")


def transcoded(path: Path, encoding: Encoding) -> bytes:
    """All of a file, as UTF-8."""
    with opened(path) as file:
        return as_text(file.read(), encoding).encode()


def encoding_note(path: Path, encoding: Encoding) -> tuple[str, ...]:
    """What a user should know of it."""
    names = {"utf-16": "UTF-16", "latin-1": "not UTF-8, but Latin-1 (Windows-1252) by the looks of it"}
    return (f"{path} is {names[encoding]}, and was read so",) if encoding in names else ()
