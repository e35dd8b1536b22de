"""Whether a plant is watched, and if not, why: a plant that is not watched must not look normal."""

from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic

from eccaht.base.codec import Field
from eccaht.base.presentation.text import listed
from eccaht.plants.watch.events import Kind

WINDOWS = 10  # unwatched windows until that is reported, and windows over which rows are counted
_LONGEST_REASON = 400  # characters
_LONGEST_NAME, _NAMES = 40, 3  # of columns that the model does not have
_SILENT = 600.0  # seconds without a row in time, at least, until that is reported
_LastWindows: Callable[..., deque[int]] = partial(deque, maxlen=WINDOWS)


class Hearing:
    """Notices that a plant is not watched: no window can be judged, no row comes, or more rows are lost than taken.

    usual: rows of a window; seconds: its length. late, rows: of the last windows, rows that came too late for theirs
    before, and rows that they are made of. reason: why the plant is not watched, None while it is. unwatched: windows
    in a row that could not be judged; one that could halves them, so that a single one ends nothing. why: the last
    window could not be judged, None if it could. heard: when the last row came in time, None if rows are not expected
    here. ahead: rows ahead of all others since the last window. strange: the columns of the last rows, if the model has
    none of them. last: when the last row was, for people; senders: where rows come from.
    """

    FIELDS = (
        Field("late", ("windows",), int, row=_LastWindows),
        Field("rows", ("windows",), int, row=_LastWindows),
        Field("reason", (), str, high=_LONGEST_REASON, optional=True),
        Field("unwatched", (), int, high=WINDOWS),
        Field("why", (), str, high=_LONGEST_REASON, optional=True),
        Field("_any", (), bool),
    )

    def __init__(self, usual: float, seconds: float, now: Callable[[], float] = monotonic) -> None:
        self.late, self.rows = _LastWindows(), _LastWindows()
        self.reason: str | None = None
        self.unwatched = 0
        self.heard: float | None = now()
        self.last, self.senders = "the watch began", "what sends them"
        self.strange: tuple[str, ...] = ()
        self.ahead, self._usual, self._now = 0, usual, now
        self.why: str | None = None
        self._any = False  # windows since the reason is known
        self._patience = max(WINDOWS * seconds, _SILENT)

    def took(self, late: int, rows: int, why: str | None = None, missed: int = 0) -> None:
        """Take note of a window; why: it could not be judged. missed: windows without any row before it."""
        self.late.append(late)
        self.rows.append(rows)
        self.ahead, self.heard, self._any = 0, self._now(), True
        self.why = None if why is None else why[:_LONGEST_REASON]
        self.unwatched = self.unwatched // 2 if why is None else min(self.unwatched + 1 + missed, WINDOWS)

    def listen(self, waiting: int) -> bool:
        """Look whether the plant is watched; return whether that changed. waiting: late rows since the last window."""
        late, taken = sum(self.late) + waiting, sum(self.rows)
        lost, before = late + self.ahead, self.reason
        if before is None and lost > max(taken, WINDOWS / 2 * self._usual):
            self.know(self._lost(late, taken))
        elif self._any and self.unwatched == WINDOWS:
            self.know(self.why)
        elif self.is_silent:
            self.know(self._silence(late))
        elif before is not None and self._any and not self.unwatched and 4 * lost <= taken:
            self.know(None)
        return (self.reason is None) != (before is None)

    @property
    def news(self) -> tuple[Kind, str]:
        """What is to be reported: a kind of event, and its text."""
        if self.reason is None:
            return "data-back", "data back: the plant is watched again"
        return "no-data", f"no data: {self.reason}"

    def know(self, reason: str | None) -> None:
        """Why the plant is not watched, None if it is: so until windows come that say otherwise."""
        self.reason, self._any = reason, False

    @property
    def is_silent(self) -> bool:
        """Whether no row came in time for too long, and that is not known."""
        return self.reason is None and self.heard is not None and self._now() - self.heard >= self._patience

    def no_value(self) -> str:
        """Why a window has rows and no reading."""
        if not self.strange:
            return "no sensor has a value: check what its source sends"
        columns = listed([name[:_LONGEST_NAME] for name in self.strange[:_NAMES]])
        return f"no column that comes is a sensor of the model ({columns}): check their names"

    def _lost(self, late: int, taken: int) -> str:
        of = f"of the last {late + self.ahead + taken} rows"
        if late >= self.ahead:
            return f"{late} {of} came too late for their windows: check the clocks of its sources"
        return f"{self.ahead} {of} are in the future and wait: check the clocks of the sender and of this machine"

    def _silence(self, late: int) -> str:
        if late or self.ahead:
            lost = f"({late} came too late, {self.ahead} have timestamps in the future)"
            return f"no row in time since {self.last} {lost}: check {self.senders}"
        return f"no row since {self.last}: check {self.senders}"
