"""One plant watched: its false-alarm rate, where it goes on, and the loop over its windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import numpy as np

from eccaht.base.clock import Clock
from eccaht.cli.output import note
from eccaht.cli.watch_outlets import Outlets, OutletsOfPlant
from eccaht.cli.watch_windows import Growing, RecordedWindows
from eccaht.plants.data.windows import Sample
from eccaht.plants.model.constants import Moved
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.hearing import Hearing
from eccaht.plants.watch.session import Session


def check_rate(session: Session, every: float, path: Path) -> Session:
    """Refuse a state that was begun with another false-alarm rate."""
    before = session.watcher.false_alarm_every
    if abs(before - every) > 1e-9 * every:
        raise ValueError(
            f"--state {path} was begun with a false alarm in {before:g} windows, not in {every:g}: "
            "give the same --false-alarms, or another file to begin anew"
        )
    return session


@dataclass
class Watching:
    """Takes the windows of one plant, reports their events and keeps the state.

    path: of the state, None if none is kept. saved_every: seconds at least between states without an event.
    unsaved: whether windows were taken since the last state.
    """

    session: Session
    path: Path | None
    outlets: Outlets | OutletsOfPlant
    orders: Path | None = None
    saved_every: float = 1.0
    unsaved: bool = False
    saved: float = field(default_factory=monotonic)
    hearing: Hearing = field(init=False)

    def __post_init__(self) -> None:
        model = self.session.model
        self.hearing = Hearing(float(model.summary.row_counts[0]), model.seconds)

    def run(self, windows: RecordedWindows | Growing, orders: Iterable[str] = ()) -> None:
        """Report what an earlier program may not have reported, then watch until the windows end.

        orders: what is obeyed before the first window.
        """
        self.begin()
        first = list(orders)
        for sample, late in windows:
            self.take(sample, late, windows.clock, first, windows.moved)
            first = []
        self.save()

    def begin(self) -> None:
        """Report what an earlier program may not have reported."""
        if self.session.pending:
            self.outlets.report_again(self.session.pending)
            self.session.settle()
            self.save()

    def take(
        self, sample: Sample, late: int, clock: Clock, orders: Sequence[str] = (), moved: Sequence[Moved] = ()
    ) -> None:
        """Take a window; events are in the state before they are given out, and crossed out there afterwards."""
        session, given = self.session, [*orders, *self._new_orders()]
        events = [event for order in given for event in self._obey(order, sample.start, clock)]
        events += session.take(sample, clock, late=late, moved=_moved(moved, sample, session, clock))
        self.hearing.took(late, 0 if sample.rows is None else int(sample.rows.max()))
        if self.hearing.listen(0):
            events += session.report(*self.hearing.news, sample.start, clock)
        self.unsaved = True
        self.outlets.see(sample.start, sample.values, clock)
        if events:
            self.save()
            self.outlets.report(events)
            session.settle()
        if events or given or monotonic() - self.saved >= self.saved_every:
            self.save()

    def save(self) -> None:
        """Write the state, if one is kept."""
        if self.path is not None:
            self.session.save(self.path)
        self.saved, self.unsaved = monotonic(), False

    def lines(self) -> list[str]:
        """The finished lines of the file of orders, which need not be there yet."""
        if self.orders is None or not self.orders.is_file():
            return []
        text = self.orders.read_text(encoding="utf-8", errors="replace")
        return text[: text.rfind("\n") + 1].splitlines()

    def _new_orders(self) -> list[str]:
        """Those since the last window; a file that became shorter is another one and is read from its beginning."""
        lines = self.lines()
        done = self.session.obeyed if self.session.obeyed <= len(lines) else 0
        self.session.obeyed = len(lines)
        return [line for line in lines[done:] if line.strip()]

    def _obey(self, order: str, time: np.datetime64, clock: Clock) -> list[Event]:
        try:
            return self.session.obey(order, time, clock)
        except ValueError as error:
            note(f"the order {order.strip()!r} was not obeyed: {error}")
            return []


def _moved(moved: Sequence[Moved], sample: Sample, session: Session, clock: Clock) -> dict[str, str]:
    """The constants of the history that have moved by the end of a window, with what is to say of each."""
    end = sample.start + np.timedelta64(round(session.model.seconds * 1e6), "us")
    return {each.name: each.text(clock) for each in moved if each.since < end}
