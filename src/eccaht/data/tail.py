"""The lines of a file as they are appended, across rotation, truncation and rewriting."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from eccaht.data.faults import LONGEST_LINE, Faults

Line = tuple[int, bytes]  # its number in the file, from 1
_READ = 1 << 22  # bytes at once
_MARK = 1 << 12  # bytes by which a file is known again


class Tail:
    """Reads finished lines; `restarted` says that the next ones are the first of a file.

    A file is another one if it has another inode, if it is shorter than what was read of it, or if its first bytes or
    those before the present position are not what they were: these are looked at whenever its size or time changed.
    """

    def __init__(self, path: Path, faults: Faults, note: Callable[[str], object]) -> None:
        self.restarted = True
        self.unfinished = b""
        self._path, self._faults, self._note = path, faults, note
        self._file: BinaryIO | None = None
        self._lost = False
        self._first = self._last = b""  # of what was read, to know the file again
        self._stamp: tuple[int, int] | None = None  # size and time when these were last compared
        self._number, self._skipping = 0, False  # of the last finished line; inside a line that is too long

    def open(self) -> None:
        """Open the file."""
        if self._path.is_dir():
            raise ValueError(f"{self._path} is a directory: name one CSV file to follow")
        if self._path.exists() and not self._path.is_file():
            raise ValueError(f"{self._path} is no regular file and cannot be followed")
        self._file = self._path.open("rb")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def first_lines(self) -> list[bytes]:
        """The finished lines at the beginning, without following the file."""
        self.open()
        assert self._file is not None
        with self._file as file:
            return [line for line in file.read(_READ).splitlines(keepends=True) if line.endswith(b"\n")]

    def lines(self) -> list[Line]:
        """New finished lines with their numbers."""
        assert self._file is not None
        if self._rewritten():
            self._reopen()
        text = self._file.read(_READ)
        if not text and self._replaced():
            self._reopen()
            text = self._file.read(_READ)
        if not text:
            return []
        if len(self._first) < _MARK:
            self._first += text[: _MARK - len(self._first)]
        self._last = (self._last + text)[-_MARK:]
        return self._split(text)

    def _split(self, text: bytes) -> list[Line]:
        *finished, self.unfinished = (self.unfinished + text).split(b"\n")
        if self._skipping and finished:
            self._skipping = False
            self._number += 1
            finished = finished[1:]
        lines = []
        for line in finished:
            self._number += 1
            if len(line) > LONGEST_LINE:
                self._too_long()
            else:
                lines.append((self._number, line + b"\n"))
        if len(self.unfinished) > LONGEST_LINE and not self._skipping:
            self._number += 1
            self._too_long()
            self._number -= 1
            self._skipping = True
        if self._skipping:
            self.unfinished = b""
        return lines

    def _too_long(self) -> None:
        self._faults.bad_line(f"line {self._number} of {self._path}", f"is longer than {LONGEST_LINE >> 20} MiB")

    def _rewritten(self) -> bool:
        """Whether the open file is no longer what it was up to the present position."""
        assert self._file is not None
        told = os.fstat(self._file.fileno())
        stamp = (told.st_size, told.st_mtime_ns)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        place = self._file.tell()
        if told.st_size < place:
            return True
        same = self._at(0, len(self._first)) == self._first
        same = same and self._at(place - len(self._last), len(self._last)) == self._last
        self._file.seek(place)
        return not same

    def _at(self, place: int, length: int) -> bytes:
        assert self._file is not None
        self._file.seek(place)
        return self._file.read(length)

    def _replaced(self) -> bool:
        """Whether another file has the name now."""
        assert self._file is not None
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            if not self._lost:
                self._note(f"{self._path} is gone: waiting for it to come back")
            self._lost = True
            return False
        here = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _reopen(self) -> None:
        self._note(f"{self._path} was replaced or cut back: following it from its beginning")
        self.close()
        self.open()
        self.unfinished, self._lost, self.restarted = b"", False, True
        self._first = self._last = b""
        self._stamp, self._number, self._skipping = None, 0, False
