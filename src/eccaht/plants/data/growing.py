"""A CSV file that still grows, as a source of rows: its finished lines, across rotation, truncation and rewriting."""

import csv
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from eccaht.base.clock import Clock
from eccaht.plants.data.layout import Layout, has_decimal_comma, sniff_lines
from eccaht.plants.data.lines import LONGEST_LINE, Faults, as_utf8, good_lines
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.data.recorded import Expected, Missing, NoRows, assemble
from eccaht.plants.data.windows import Batch, Table

Line = tuple[int, bytes]  # its number in the file, from 1
Note = Callable[[str], object]
READ = 1 << 22  # bytes at once
_MARK = 1 << 12  # bytes by which a file is recognised
_HEAD = 1 << 20  # bytes in which column names and a row must be found
_BATCH, _SAMPLE = 20_000, 200  # lines read at once; those of them from which their types are guessed


class _Unfollowable(ValueError):
    """The file cannot be followed, whatever lines come next."""


class GrowingFile:
    """Yields rows as they are appended, with the columns in `names`; texts are places in `levels`.

    It ends by `end()`, or by `timeout` seconds without a new row. A line counts once it is finished. If the file is
    replaced, cut back or rewritten, the new content is followed from its beginning, and `note` is called; its columns
    must be the same. Lines that are no rows are left out, unexpected values count as missing: `note` is called with
    the first of each, and `faults` counts them.

    clock: what the times mean, known from the first row on. rows, last: how many were read, and the latest time.
    timed_out: whether the timeout ended it. cut_short: whether lines were left unread when it was ended.
    """

    repeatable = False

    def __init__(
        self,
        path: Path,
        expected: Expected,
        *,
        missing: Missing = "refuse",
        poll: float = 1.0,
        timeout: float | None = None,
        note: Note = lambda _: None,
    ) -> None:
        self.path, self.label, self.names, self.levels = path, str(path), expected.names, expected.levels
        self.clock, self.faults, self.said = Clock(expected.zone), Faults(note), list[str]()
        self.rows, self.timed_out, self.cut_short = 0, False, False
        self.last: np.datetime64 | None = None
        self._expected, self._missing, self._note = expected, missing, note
        self._poll, self._timeout, self._ended = poll, timeout, Event()
        self._tail = _FileTail(path, self.faults, self.say)
        self._layout: Layout | None = None
        self._rule: TimeRule | None = None
        self._head: list[Line] = []  # lines that do not show the layout yet
        self._waits_for = "column names and a row"

    def say(self, text: str) -> None:
        """Call `note` with a text, and keep the text in `said`."""
        self._note(text)
        self.said.append(text)

    def end(self) -> None:
        """End at the next chance, with what is there; safe to call from a signal handler."""
        self._ended.set()

    @property
    def waits_for(self) -> str:
        """What is missing before a first row can be read."""
        return self._waits_for if self._tail.restarted else "a row that can be read"

    def present(self) -> tuple[str, ...]:
        """The columns that the file has, which must have a finished row already."""
        lines = self._tail.first_lines()
        if sum(1 for line in lines if line.strip()) < 2:
            raise ValueError(
                f"{self.path} has no row yet, so it is unknown which sensors are missing: start once it has one"
            )
        return tuple(self._expected.present([self._sniff(lines)], "allow"))

    def batches(self) -> Iterator[Batch]:
        self._tail.open()
        try:
            heard = monotonic()
            while True:
                while lines := self._tail.lines():
                    heard = monotonic()
                    yield from self._take(lines)
                    if self._ended.is_set():
                        break
                self.timed_out = self._timeout is not None and monotonic() - heard >= self._timeout
                if self._ended.is_set() or self.timed_out:
                    break
                self._ended.wait(self._poll)
            if self.rows and self._tail.unfinished.strip():
                self.say(f"the last line of {self.path} is not finished and is left out")
        finally:
            self._tail.close()

    def leave_out(self, doubted: NDArray[np.datetime64]) -> None:
        """Count rows whose times no other row agrees with."""
        if len(doubted):
            when = f"the row of {self.clock.show(doubted[0])} in {self.path}"
            self.faults.bad_line(when, "is far ahead of all others", len(doubted))

    def _take(self, lines: list[Line]) -> Iterator[Batch]:
        """The rows of these lines; if an end is asked for meanwhile, those of the present batch only."""
        if self._tail.restarted:
            lines = self._begin(lines)
        for first in range(0, len(lines), _BATCH):
            if first and self._ended.is_set():
                self.cut_short = True
                return
            if (table := self._read(lines[first : first + _BATCH])) is not None:
                yield self._batch(table)

    def _begin(self, lines: list[Line]) -> list[Line]:
        """The lines after what precedes the rows; a file with other columns than before is refused."""
        self._head += lines
        texts = [line for _, line in self._head]
        if sum(1 for line in texts if line.strip()) < 2:
            return []
        try:
            layout = self._sniff(texts)
        except ValueError as error:  # perhaps too few lines: try again with the next ones
            self._waits_for = f"column names and a row ({error})"
            if isinstance(error, _Unfollowable) or sum(map(len, texts)) >= _HEAD:
                raise
            return []
        if self._layout is None:
            self.names = tuple(self._expected.present([layout], self._missing))
            self._rule = self._expected.rule(layout)
        elif self._layout.full != layout.full:
            raise ValueError(f"{self.path} was replaced by a file with other columns: start again for that one")
        self._layout = layout
        rest, self._head, self._tail.restarted = self._head[layout.skip :], [], False
        return rest

    def _sniff(self, lines: Sequence[bytes]) -> Layout:
        """The layout of the file from its first lines; a ValueError if they do not show it (yet)."""
        if lines[0].startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise _Unfollowable(
                f"{self.path} is UTF-16, which cannot be followed: write UTF-8, or wait until it is complete"
            )
        texts = ["" if b"\0" in line else as_utf8(line).decode().removeprefix("\ufeff") for line in lines]
        expected = self._expected
        return sniff_lines(self.path, texts, expected.decimal_comma, header=expected.header, strict=False)

    def _read(self, lines: Sequence[Line]) -> Table | None:
        assert self._layout is not None
        assert self._rule is not None
        kept, numbers = good_lines(((k, as_utf8(line)) for k, line in lines), self._layout, self.faults)
        if not kept:
            return None
        try:
            table = assemble(
                [self._part(self._layout, kept, numbers)],
                self._rule,
                self.names,
                zone=self.clock.zone,
                expected=self.levels,
                faults=self.faults,
                before=None if self.last is None else int(self.last.astype(np.int64)),
            )
        except NoRows:
            return None
        for note in table.zone_notes:
            self.say(note)
        self.clock, self._rule = table.clock, replace(table.rule, notes=())
        return table

    def _part(self, layout: Layout, lines: list[bytes], numbers: tuple[int, ...]) -> Layout:
        delimiter, comma_given = layout.delimiter, self._expected.decimal_comma
        commas = delimiter != "," and comma_given is None and any(b"," in line for line in lines)
        shown = [line.decode() for line in (lines if commas else lines[:_SAMPLE])]
        sample = tuple(tuple(row) for row in csv.reader(shown, delimiter=delimiter) if len(row) == len(layout.names))
        comma = has_decimal_comma(sample, delimiter) if comma_given is None else comma_given
        return replace(layout, skip=0, sample=sample, decimal_comma=comma, content=b"".join(lines), lines=numbers)

    def _batch(self, table: Table) -> Batch:
        times = table.times
        self.rows += len(times)
        if len(times):
            self.last = times[-1] if self.last is None else max(self.last, times[-1])
        return Batch(times, table.readings(self.levels))


class _FileTail:
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

    def open(self) -> None:
        if self._path.is_dir():
            raise ValueError(f"{self._path} is a directory: name one CSV file to follow")
        if self._path.exists() and not self._path.is_file():
            raise ValueError(f"{self._path} is no regular file and cannot be followed")
        self._file = self._path.open("rb")

    def close(self) -> None:
        self._file.close()

    def first_lines(self) -> list[bytes]:
        """The finished lines at the beginning, without following the file."""
        self.open()
        with self._file as file:
            return [line for line in file.read(READ).splitlines(keepends=True) if line.endswith(b"\n")]

    def lines(self) -> list[Line]:
        """New finished lines with their numbers."""
        if self._rewritten():
            self._reopen()
        text = self._file.read(READ)
        if not text and self._replaced():
            self._reopen()
            text = self._file.read(READ)
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
