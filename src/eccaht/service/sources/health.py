"""What a source reports: a state, a line, and how many rows came; numbers are reported once a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from eccaht.service.rows import SourceState, Taken
from eccaht.service.sources.gaps import Gaps

if TYPE_CHECKING:
    from eccaht.service.sources.feed import Target

State = Literal["connecting", "running", "waiting", "broken"]
_EVERY = 1.0  # seconds between two reports of mere numbers


class Listener(Protocol):
    """Receives the reports."""

    def source_state(self, plant: str, source: str, state: SourceState) -> None:
        """Take the report of a source."""


class Health:
    """The state of one source, reported for each of its plants.

    connecting: a try is under way. running: connected. waiting: connected, but held back, because the service is busy
    or cannot store. broken: the last try failed, another one follows.
    counts: payloads and rows that were left out, by the reason.
    """

    def __init__(self, sink: Listener, source: str, plants: Iterable[str], where: str) -> None:
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
        self._report_soon()

    def count(self, kind: str, number: int = 1, why: str = "") -> None:
        """Something was left out; why: the reason of the last one."""
        self.counts[kind] += number
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
