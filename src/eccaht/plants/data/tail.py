"""The lines of a file that still grows, across rotation, truncation and rewriting."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from eccaht.plants.data.reading import LONGEST_LINE, Faults

Line = tuple[int, bytes]  # its number in the file, from 1
Note = Callable[[str], object]
READ = 1 << 22  # bytes at once
_MARK = 1 << 12  # bytes by which a file is recognised


class FileTail:
    """Reads finished lines; `restarted` says that the next ones are the first of a file.

    A file is another one if it has another inode, if it is shorter than what was read of it, or if its first bytes or
    those before the present position are not what they were: these are looked at whenever its size or time changed.
    """

    def __init__(self, path: Path, faults: Faults, note: Note) -> None:
        self.restarted = True
        self.unfinished = b""
        self._path, self._faults, self._note = path, faults, note
        self._file: BinaryIO  # set by `open`
        self._lost = False
        self._first = self._last = b""  # first and last bytes read, to recognise the file
        self._stamp: tuple[int, int] | None = None  # size and time when these were last compared
        self._number, self._skipping = 0, False  # of the last finished line; inside a line that is too long
        self._left: tuple[os.stat_result, int] | None = None  # the file and the place in it where it was left

    def open(self) -> None:
        if self._path.is_dir():
            raise ValueError(f"{self._path} is a directory: name one CSV file to follow")
        if self._path.exists() and not self._path.is_file():
            raise ValueError(f"{self._path} is no regular file and cannot be followed")
        self._file = self._path.open("rb")

    def close(self) -> None:
        self._file.close()

    def leave(self) -> None:
        """Close the file until `come_back`."""
        self._left = os.fstat(self._file.fileno()), self._file.tell()
        self.close()

    def come_back(self) -> bool:
        """Open the file again where it was left; False if there is nothing new in it.

        What was appended to it before another one took its name, and not read, is lost.
        """
        if self._left is None:
            return True
        before, place = self._left
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            self._miss()
            return False
        same = os.path.samestat(before, there)
        if same and there.st_size == place and (place, there.st_mtime_ns) == self._stamp:
            return False
        self.open()
        self._left = None
        if same:
            self._file.seek(place)
        else:
            self._reopen()
        return True

    def first_lines(self) -> list[bytes]:
        """The finished lines at the beginning, without following the file."""
        self.open()
        with self._file as file:
            return [line for line in file.read(READ).splitlines(keepends=True) if line.endswith(b"\n")]

    def lines(self, most: int = READ) -> list[Line]:
        """New finished lines with their numbers, of so many bytes at most."""
        if self._rewritten():
            self._reopen()
        text = self._file.read(most)
        if not text and self._replaced():
            self._reopen()
            text = self._file.read(most)
        if not text:
            return []
        if len(self._first) < _MARK:
            self._first += text[: _MARK - len(self._first)]
        self._last = (self._last + text)[-_MARK:]
        return self._split(text)

    def _split(self, text: bytes) -> list[Line]:
        *finished, self.unfinished = (self.unfinished + text).split(b"\n")
        lines = []
        for line in finished:
            self._number += 1
            if self._skipping:  # that was the end of a line that is too long
                self._skipping = False
            elif not self._too_long(line, self._number):
                lines.append((self._number, line + b"\n"))
        if self._skipping or self._too_long(self.unfinished, self._number + 1):
            self._skipping, self.unfinished = True, b""
        return lines

    def _too_long(self, line: bytes, number: int) -> bool:
        if len(line) > LONGEST_LINE:
            self._faults.bad_line(f"line {number} of {self._path}", f"is longer than {LONGEST_LINE >> 20} MiB")
        return len(line) > LONGEST_LINE

    def _rewritten(self) -> bool:
        """Whether the open file is no longer what it was up to the present position."""
        status = os.fstat(self._file.fileno())
        stamp = (status.st_size, status.st_mtime_ns)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        place = self._file.tell()
        if status.st_size < place:
            return True
        same = self._at(0, len(self._first)) == self._first
        same = same and self._at(place - len(self._last), len(self._last)) == self._last
        self._file.seek(place)
        return not same

    def _at(self, place: int, length: int) -> bytes:
        self._file.seek(place)
        return self._file.read(length)

    def _replaced(self) -> bool:
        """Whether another file has the name now."""
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            self._miss()
            return False
        here = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _miss(self) -> None:
        if not self._lost:
            self._note(f"{self._path} is gone: waiting for it to come back")
        self._lost = True

    def _reopen(self) -> None:
        self._note(f"{self._path} was replaced or cut back: following it from its beginning")
        self.close()
        self.open()
        self.unfinished, self._lost, self.restarted = b"", False, True
        self._first = self._last = b""
        self._stamp, self._number, self._skipping = None, 0, False
