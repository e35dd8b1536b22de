"""Whether a plant has data: rows that come, and come in time. One that has none is not watched, and must say so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic

from eccaht.base.durations import show_duration
from eccaht.plants.watch.events import Kind

WINDOWS = 10  # over so many windows rows are counted
_SILENT = 600.0  # seconds without a row in time, at least, until that is reported


class Hearing:
    """Compares the rows of the last windows with those that were lost meanwhile.

    usual: rows of a window; seconds: its length. windows: of the last ones, rows that came too late for theirs before,
    and rows that they are made of. reason: why the plant has no data, None while it has. heard: when the last row came
    in time, None if rows are not expected here. ahead: rows ahead of all others since the last window.
    """

    def __init__(self, usual: float, seconds: float, now: Callable[[], float] = monotonic) -> None:
        self.windows: deque[tuple[int, int]] = deque(maxlen=WINDOWS)
        self.reason: str | None = None
        self.heard: float | None = now()
        self.ahead, self._usual, self._now = 0, usual, now
        self._any = False  # windows since the reason is known
        self._patience = max(WINDOWS * seconds, _SILENT)

    def took(self, late: int, rows: int) -> None:
        self.windows.append((late, rows))
        self.ahead, self.heard, self._any = 0, self._now(), True

    def listen(self, waiting: int) -> bool:
        """See whether the plant has data; waiting: late rows since the last window. Return whether that has changed."""
        late, taken = sum(late for late, _ in self.windows) + waiting, sum(rows for _, rows in self.windows)
        lost, before = late + self.ahead, self.reason
        if before is None and lost > max(taken, WINDOWS / 2 * self._usual):
            self.know(self._lost(late, taken))
        elif self.is_silent:
            self.know(self._silence(late))
        elif before is not None and self._any and 4 * lost < taken:
            self.know(None)
        return (self.reason is None) != (before is None)

    @property
    def news(self) -> tuple[Kind, str]:
        """What is to be reported: a kind of event, and its text."""
        if self.reason is None:
            return "data-back", "data back: rows come in time again"
        return "no-data", f"no data: {self.reason}"

    def know(self, reason: str | None) -> None:
        """Why the plant has no data, None if it has: so until windows come that say otherwise."""
        self.reason, self._any = reason, False

    @property
    def is_silent(self) -> bool:
        """Whether no row came in time for too long, and that is not known."""
        return self.reason is None and self.heard is not None and self._now() - self.heard >= self._patience

    def _lost(self, late: int, taken: int) -> str:
        of = f"of the last {late + self.ahead + taken} rows"
        if late >= self.ahead:
            return f"{late} {of} came too late for their windows: check the clocks of its sources"
        return f"{self.ahead} {of} are ahead of all others or of this machine's clock: check the clocks"

    def _silence(self, late: int) -> str:
        assert self.heard is not None
        lost = f" ({late} came too late, {self.ahead} are ahead of all others)" if late or self.ahead else ""
        return f"no row came in time for {show_duration(round(self._now() - self.heard))}{lost}: check its sources"
