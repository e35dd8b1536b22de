"""Windows of a CSV file that still grows, each as soon as it is complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from eccaht.files import regular_file

if TYPE_CHECKING:
    from eccaht.data.sniffing import Layout
    from eccaht.data.windows import Sample, Windows

Prepare = Callable[[Path], "Windows"]
Note = Callable[[str], object]
_BATCH = 20_000  # lines prepared at once
_READ = 1 << 24  # bytes


class Follower:
    """Yields one window after the other while the file grows.

    A window is complete once a row of a later window has arrived, and the last one when following ends: by `end()`, by
    `timeout` seconds without a new row, or at the time `stop`. A line counts once it is finished. If the file is
    replaced or cut back, the new content is followed from its beginning, and `note` is told; its column names
    must be the same. Rows that come too late for their window are left out.

    prepare: turns a CSV file of the same columns into windows, as `Model.prepare` does.
    """

    def __init__(
        self,
        path: Path,
        prepare: Prepare,
        *,
        start: np.datetime64 | None = None,
        stop: np.datetime64 | None = None,
        decimal_comma: bool = False,
        poll: float = 1.0,
        timeout: float | None = None,
        note: Note = lambda _: None,
    ) -> None:
        self.path, self.timed_out = path, False
        self._prepare, self._note, self._decimal_comma = prepare, note, decimal_comma
        self._start, self._stop, self._poll, self._timeout = start, stop, poll, timeout
        self._ended = Event()
        self._tail = _Tail(path, note)
        self._head: bytes | None = None  # what precedes the rows
        self._chunks: list[tuple[list[bytes], np.datetime64]] = []  # lines, and the last window when they came
        self._emitted: np.datetime64 | None = None

    def end(self) -> None:
        """End at the next chance, with the windows that are there; safe to call from a signal handler."""
        self._ended.set()

    def __iter__(self) -> Iterator[Sample]:
        """Follow the file."""
        self._tail.open()
        try:
            for window in self._all():
                if self._stop is not None and window.start >= self._stop:
                    return
                yield window
        finally:
            self._tail.close()

    def _all(self) -> Iterator[Sample]:
        heard = monotonic()
        while True:
            lines = self._tail.lines()
            if lines:
                heard = monotonic()
                yield from self._take(lines)
                continue
            self.timed_out = self._timeout is not None and monotonic() - heard >= self._timeout
            if self._ended.is_set() or self.timed_out:
                break
            self._ended.wait(self._poll)
        if self._head is not None and self._tail.unfinished.strip():
            self._note(f"the last line of {self.path} is not finished and is left out")
        yield from self._last()

    def _take(self, lines: list[bytes]) -> Iterator[Sample]:
        """The windows that these lines complete."""
        if self._tail.restarted:
            head = self._head_of(lines)
            if self._head not in (None, head):
                raise ValueError(f"{self.path} was replaced by a file with other columns: start again for that one")
            self._head, lines, self._tail.restarted = head, lines[head.count(b"\n") :], False
        for first in range(0, len(lines), _BATCH):
            batch = lines[first : first + _BATCH]
            windows = self._windows([line for chunk, _ in self._chunks for line in chunk] + batch)
            if len(windows.starts):
                pending = windows.starts[-1]
                self._chunks = [chunk for chunk in self._chunks if chunk[1] >= pending]
                self._chunks.append((batch, pending))
                yield from self._fresh(windows, len(windows.starts) - 1)

    def _last(self) -> Iterator[Sample]:
        """The window that no later row has closed."""
        lines = [line for chunk, _ in self._chunks for line in chunk]
        self._chunks = []
        if lines:
            windows = self._windows(lines)
            yield from self._fresh(windows, len(windows.starts))

    def _fresh(self, windows: Windows, count: int) -> Iterator[Sample]:
        for sample in islice(windows.samples(), count):
            start = sample.start
            if self._emitted is None or start > self._emitted:
                self._emitted = start
                if self._start is None or start >= self._start:
                    yield sample

    def _windows(self, lines: list[bytes]) -> Windows:
        assert self._head is not None
        with _as_file([self._head, *lines], self.path) as part:
            return self._prepare(part)

    def _head_of(self, lines: list[bytes]) -> bytes:
        """What precedes the rows: metadata and column names."""
        from eccaht.data.sniffing import sniff

        with _as_file(lines, self.path) as part:
            return b"".join(lines[: sniff(part, self._decimal_comma).skip])


class _Tail:
    """Finished lines as they are appended, across rotation and truncation."""

    def __init__(self, path: Path, note: Note) -> None:
        self._path, self._note = path, note
        self._file: BinaryIO | None = None
        self._started = self._lost = False
        self.unfinished = b""
        self.restarted = True  # the next lines are the first of a file

    def open(self) -> None:
        if self._path.is_dir():
            raise ValueError(f"{self._path} is a directory: name one CSV file to follow")
        self._file = regular_file(self._path, "file")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def lines(self) -> list[bytes]:
        """New finished lines; of a fresh file none before there are column names and a row."""
        assert self._file is not None
        text = self._file.read(_READ)
        if not text and self._replaced():
            self._reopen()
            text = self._file.read(_READ)
        *lines, self.unfinished = (self.unfinished + text).splitlines(keepends=True) or [b""]
        if self.unfinished.endswith(b"\n"):
            lines, self.unfinished = [*lines, self.unfinished], b""
        if not self._started:
            if sum(1 for line in lines if line.strip()) < 2:
                self.unfinished = b"".join(lines) + self.unfinished
                return []
            self._started = True
        return lines

    def _replaced(self) -> bool:
        assert self._file is not None
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            if not self._lost:
                self._note(f"{self._path} is gone: waiting for it to come back")
            self._lost = True
            return False
        here = os.fstat(self._file.fileno())
        same = (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
        return not same or there.st_size < self._file.tell()

    def _reopen(self) -> None:
        self._note(f"{self._path} was replaced or cut back: following it from its beginning")
        self.close()
        self._file = self._path.open("rb")
        self.unfinished, self._started, self._lost, self.restarted = b"", False, False, True


def read_layout(path: Path, decimal_comma: bool = False) -> Layout:
    """The layout of a growing file that has at least one finished row."""
    from eccaht.data.sniffing import sniff

    with path.open("rb") as file:
        lines = [line for line in file.read(_READ).splitlines(keepends=True) if line.endswith(b"\n")]
    if sum(1 for line in lines if line.strip()) < 2:
        raise ValueError(f"{path} has no row yet, so it is unknown which sensors are missing: start once it has one")
    with _as_file(lines, path) as part:
        return sniff(part, decimal_comma)


@contextmanager
def _as_file(lines: list[bytes], path: Path) -> Iterator[Path]:
    """The lines as a file of their own; errors about it name the file that they are from."""
    with tempfile.TemporaryDirectory() as directory:
        part = Path(directory) / path.name
        part.write_bytes(b"".join(lines))
        try:
            yield part
        except ValueError as error:
            raise ValueError(str(error).replace(str(part), str(path))) from None
