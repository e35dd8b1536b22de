"""Windows of a CSV file that still grows, each as soon as it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eccaht.data.tail import Line, Tail

if TYPE_CHECKING:
    from eccaht.data.clock import Clock
    from eccaht.data.windows import Sample, Windows
    from eccaht.model.model import Model
    from eccaht.model.preparing import Notation

Note = Callable[[str], object]
_BATCH = 20_000  # lines prepared at once
_HEAD = 1 << 20  # bytes in which column names and a row must be found


class Follower:
    """Yields one window after the other while the file grows, with the sensors in `names`.

    A window is complete once a row of a later window has arrived, and the last one when following ends: by `end()`, by
    `timeout` seconds without a new row, or at the time `stop`. A line counts once it is finished. If the file is
    replaced, cut back or rewritten, the new content is followed from its beginning, and `note` is told; its columns
    must be the same. Rows that come too late for their window are left out. So are lines that are no rows, and values
    that are no numbers are missing: the first of each is told at once, their number at the end.

    Whatever goes wrong once there was a window ends the following as the end of the data would, with a note.
    """

    def __init__(
        self,
        model: Model,
        path: Path,
        *,
        start: Any = None,
        stop: Any = None,
        missing: Literal["refuse", "allow"] = "refuse",
        notation: Notation | None = None,
        poll: float = 1.0,
        timeout: float | None = None,
        note: Note = lambda _: None,
    ) -> None:
        from eccaht.data.faults import Faults
        from eccaht.data.reading import check_limits
        from eccaht.model.growing import GrowingTable
        from eccaht.model.preparing import Notation

        check_limits(start, stop)
        self.path, self.timed_out = path, False
        self._said: list[str] = []
        self._model, self._note = model, note
        self._start, self._stop, self._poll, self._timeout = start, stop, poll, timeout
        self._ended = Event()
        self._cut_short = False
        self._table = GrowingTable(model, path, Faults(note), missing, notation or Notation(), self._say)
        self._tail = Tail(path, self._table.faults, self._say)
        self._head: list[Line] = []  # lines that do not show the layout yet
        self._waits_for = "column names and a row"
        self._emitted: np.datetime64 | None = None

    @property
    def clock(self) -> Clock:
        """What the times mean, known from the first row on."""
        return self._table.clock

    @property
    def counts(self) -> list[str]:
        """How many bad lines and values there were so far, and the first of each."""
        return self._table.faults.notes()

    @property
    def notes(self) -> list[str]:
        """All that a user should know once it is over."""
        return [*self._said, *self.counts]

    def sensors(self) -> tuple[str, ...]:
        """The sensors of the model that the file has, which must have a finished row already."""
        from eccaht.model.preparing import present_names

        lines = self._tail.first_lines()
        if sum(1 for line in lines if line.strip()) < 2:
            raise ValueError(
                f"{self.path} has no row yet, so it is unknown which sensors are missing: start once it has one"
            )
        return tuple(present_names(self._model, [self._table.sniff(lines)], "allow"))

    def end(self) -> None:
        """End at the next chance, with what is there; safe to call from a signal handler."""
        self._ended.set()

    def __iter__(self) -> Iterator[Sample]:
        """Follow the file."""
        from eccaht.data.reading import limits

        self._tail.open()
        some = False
        try:
            for window in self._all():
                first, last = limits(self.clock, self._start, self._stop)
                if last is not None and window.start >= last:
                    break
                if first is None or window.start >= first:
                    some = True
                    yield window
        except (ValueError, OSError) as error:
            if not some:
                raise
            self._say(f"following ended: {error}")
        finally:
            self._tail.close()
        if not some:
            raise ValueError(self._nothing())

    def _say(self, text: str) -> None:
        self._note(text)
        self._said.append(text)

    def _all(self) -> Iterator[Sample]:
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
        if self._table.rows and self._tail.unfinished.strip():
            self._say(f"the last line of {self.path} is not finished and is left out")
        if not self._cut_short:
            yield from self._fresh(self._table.finish())

    def _take(self, lines: list[Line]) -> Iterator[Sample]:
        """The windows that these lines complete; if an end is asked for meanwhile, those of the present batch only."""
        if self._tail.restarted:
            lines = self._begin(lines)
        for first in range(0, len(lines), _BATCH):
            if first and self._ended.is_set():
                self._cut_short = True
                return
            yield from self._fresh(self._table.add(lines[first : first + _BATCH]))

    def _begin(self, lines: list[Line]) -> list[Line]:
        """Find out what precedes the rows; the lines that are left."""
        from eccaht.model.growing import Unfollowable

        self._head += lines
        texts = [line for _, line in self._head]
        if sum(1 for line in texts if line.strip()) < 2:
            return []
        try:
            layout = self._table.sniff(texts)
        except ValueError as error:  # perhaps the lines that follow show it
            self._waits_for = f"column names and a row ({error})"
            if isinstance(error, Unfollowable) or sum(map(len, texts)) >= _HEAD:
                raise
            return []
        self._table.begin(layout)
        rest, self._head, self._tail.restarted = self._head[layout.skip :], [], False
        return rest

    def _fresh(self, windows: Windows | None) -> Iterator[Sample]:
        if windows is None:
            return
        for sample in windows.of(self._table.names).samples():
            if self._emitted is None or sample.start > self._emitted:
                self._emitted = sample.start
                yield sample

    def _nothing(self) -> str:
        """What was waited for."""
        table, bad = self._table, "; ".join(self.counts)
        what = f"waited for {self._waits_for}" if self._tail.restarted else "waited for a row that can be read"
        if table.last is not None:
            start = f"{self._start}" if self._start is not None else "the start"
            what = f"waited for a window from {start} on, of its {table.rows} rows the last is at"
            what = f"{what} {table.clock.show(table.last)}"
        return f"nothing was read from {self.path}: {what}" + (f"; {bad}" if bad else "")
