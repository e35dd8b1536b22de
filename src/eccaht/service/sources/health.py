"""What a source reports: a state, a line, how many rows came, and the last gap in their times.

By the gap an operator sees that something was lost on the way. Mere numbers are reported once a second.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.base.clock import Clock
from eccaht.plants.watch.events import iso
from eccaht.service.rows import RowGap, SourceState, Taken

if TYPE_CHECKING:
    from eccaht.service.sources.feed import Sink, Target

State = Literal["connecting", "running", "waiting", "broken"]
_EVERY = 1.0  # seconds between two reports of mere numbers
_WINDOWS = 3  # a gap is longer than so many windows,
_STEPS = 10  # and than so many of the usual steps between two rows,
_KNOWN = 10  # which is known after so many of them


class Health:
    """The state of one source, reported for each of its plants.

    connecting: a try is under way. running: connected. waiting: connected, but held back, because the service is busy
    or cannot store; or for a file that is not there yet. broken: the last try failed, another one follows.
    counts: payloads and rows that were left out, by the reason.
    """

    def __init__(self, sink: Sink, source: str, plants: Iterable[str], where: str) -> None:
        self.source, self.plants, self.counts = source, set(plants), Counter[str]()
        self.state: State = "connecting"
        self.detail, self.rows, self.connected = "", 0, False
        self.last: datetime | None = None
        self._sink, self._where, self._since = sink, where, datetime.now(UTC)
        self._notes: dict[str, str] = {}
        self._gaps: dict[str, Gaps] = {}  # by plant
        self._later: asyncio.TimerHandle | None = None

    def connecting(self) -> None:
        self.connected = False
        self._become("connecting", self._where)

    def running(self) -> None:
        """The source is connected, and nothing holds it back."""
        self.connected = True
        self._become("running", self._where)

    def waiting(self, why: str) -> None:
        self._become("waiting", why)

    def broken(self, why: str) -> None:
        self._become("broken", why)

    def took(self, target: Target, times: NDArray[np.datetime64], taken: Taken) -> None:
        """Rows of a plant were submitted."""
        self.rows, self.last = self.rows + len(times), datetime.now(UTC)
        if not (taken.ahead or taken.held):  # a row from the future would look as if all before it were missing
            self._gaps.setdefault(target.name, Gaps(target.clock, target.seconds)).add(times)
        if self.state == "waiting":
            self.running()
        if taken.unknown:
            self.count("deliveries with unknown sensors", taken.unknown[-1][:80])
        self._report_soon()

    def count(self, kind: str, why: str = "") -> None:
        """Something was left out; why: the reason of the last one."""
        self.counts[kind] += 1
        if why:
            self._notes[kind] = why
        self._report_soon()

    def bring(self, plant: str) -> None:
        """This source brings rows of another plant from now on."""
        self.plants.add(plant)
        self._report()

    def let_go(self, plant: str) -> None:
        """Another service brings the rows of a plant from now on."""
        self.plants.discard(plant)
        self._gaps.pop(plant, None)
        state = SourceState("waiting", datetime.now(UTC), "another service has this plant", self.rows, self.last)
        self._sink.source_state(plant, self.source, state)

    def end(self) -> None:
        """Take back a report that is planned."""
        if self._later is not None:
            self._later.cancel()

    def now(self, plant: str = "") -> SourceState:
        """What is reported, with the last gap of a plant."""
        left_out = [f"{n} {kind}{self._last_of(kind)}" for kind, n in self.counts.items()]
        gap = self._gaps[plant].last() if plant in self._gaps else None
        return SourceState(self.state, self._since, "; ".join([self.detail, *left_out]), self.rows, self.last, gap)

    def _last_of(self, kind: str) -> str:
        return f" (the last: {self._notes[kind]})" if kind in self._notes else ""

    def _become(self, state: State, detail: str) -> None:
        if (state, detail) == (self.state, self.detail):
            return
        if state != self.state:
            self._since = datetime.now(UTC)
        self.state, self.detail = state, detail
        self._report()

    def _report(self) -> None:
        self.end()
        self._later = None
        for plant in sorted(self.plants):
            self._sink.source_state(plant, self.source, self.now(plant))

    def _report_soon(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_EVERY, self._report)


class Gaps:
    """Keeps the last gap of one plant; seconds: the length of its windows.

    Rows that come later and lie in the gap make it smaller, until it is none.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._least = clock, round(_WINDOWS * seconds * 1e6)
        self._steps: deque[int] = deque(maxlen=50)
        self._newest: int | None = None
        self._span: tuple[int, int] | None = None  # the last time before the gap, the first one after it

    def add(self, times: NDArray[np.datetime64]) -> None:
        """Look at the times of rows that were taken."""
        found = np.unique(times.astype("datetime64[us]").astype(np.int64)).tolist()
        if self._span is not None:
            self._fill([time for time in found if self._span[0] < time < self._span[1]])
        if self._newest is not None:
            found = [self._newest, *(time for time in found if time > self._newest)]
        for before, after in pairwise(found):
            if self._is_gap(after - before):
                self._span = (before, after)
            self._steps.append(after - before)
        self._newest = found[-1] if found else self._newest

    def last(self) -> RowGap | None:
        """The last gap; None where rows are counted and have no times."""
        if self._span is None or self._clock.row_interval is not None:
            return None
        before, after = self._span
        return RowGap((after - before) / 1e6, iso(self._clock, np.datetime64(after, "us")))

    def _fill(self, inside: list[int]) -> None:
        if self._span is None or not inside:
            return
        rest = max(pairwise([self._span[0], *inside, self._span[1]]), key=lambda ends: ends[1] - ends[0])
        self._span = rest if self._is_gap(rest[1] - rest[0]) else None

    def _is_gap(self, step: int) -> bool:
        return step > self._least and len(self._steps) >= _KNOWN and step > _STEPS * median(self._steps)
