"""A CSV file that still grows, as a source of rows."""

from __future__ import annotations

import csv
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from eccaht.base.clock import Clock
from eccaht.plants.data.encoding import as_utf8
from eccaht.plants.data.layout import Layout, has_decimal_comma, sniff_lines
from eccaht.plants.data.reading import Faults, good_lines
from eccaht.plants.data.source import Expected, Missing
from eccaht.plants.data.table import NoRows, Table, assemble
from eccaht.plants.data.tail import FileTail, Line, Note
from eccaht.plants.data.times import TimeRule
from eccaht.plants.data.windows import Batch

_LOOK = 1 << 18  # bytes at once where several files are looked at in turn
_HEAD = 1 << 20  # bytes in which column names and a row must be found
_BATCH, _SAMPLE = 20_000, 200  # lines read at once; those of them from which their types are guessed


class Unfollowable(ValueError):
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
        self._tail = FileTail(path, self.faults, self.say)
        self._layout: Layout | None = None
        self._rule: TimeRule | None = None
        self._head: list[Line] = []  # lines that do not show the layout yet
        self._waits_for = "column names and a row"
        self._opened = False  # by `look`

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

    def look(self, *, held: bool = True) -> tuple[bool, list[Batch]]:
        """Whether there are new lines, and their rows, some hundred kilobytes at most, without waiting for more.

        held: keep the file open until the next look; else it is opened again once it has changed.
        """
        if not self._opened:
            self._tail.open()
            self._opened = True
        elif not self._tail.come_back():
            return False, []
        try:
            lines = self._tail.lines(_LOOK)
            return bool(lines), list(self._take(lines)) if lines else []
        finally:
            if not held:
                self._tail.leave()

    def leave_out(self, doubted: NDArray[np.datetime64]) -> None:
        """Count rows whose times no other row agrees with."""
        if len(doubted):
            when = f"the row of {self.clock.show(doubted[0])} in {self.path}"
            self.faults.bad_line(when, "is far ahead of all others", len(doubted))

    def close(self) -> None:
        if self._opened:
            self._tail.close()

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
            if isinstance(error, Unfollowable) or sum(map(len, texts)) >= _HEAD:
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
            raise Unfollowable(
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
