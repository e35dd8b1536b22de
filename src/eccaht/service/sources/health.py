"""What a source reports: a state, a line, and how many rows came; mere numbers once a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from eccaht.service.rows import Receipt, SourceState

if TYPE_CHECKING:
    from eccaht.service.sources.feed import Sink

State = Literal["connecting", "running", "waiting", "broken"]
_EVERY = 1.0  # seconds between two reports of mere numbers


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

    def took(self, taken: Receipt) -> None:
        """Rows of a plant were submitted."""
        self.rows, self.last = self.rows + taken.rows, datetime.now(UTC)
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
        state = SourceState("waiting", datetime.now(UTC), "another service has this plant", self.rows, self.last)
        self._sink.source_state(plant, self.source, state)

    def end(self) -> None:
        """Take back a report that is planned."""
        if self._later is not None:
            self._later.cancel()

    def now(self) -> SourceState:
        """What is reported."""
        last = {kind: f" (the last: {note})" for kind, note in self._notes.items()}
        left_out = [f"{n} {kind}{last.get(kind, '')}" for kind, n in self.counts.items()]
        return SourceState(self.state, self._since, "; ".join([self.detail, *left_out]), self.rows, self.last)

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
            self._sink.source_state(plant, self.source, self.now())

    def _report_soon(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_EVERY, self._report)
