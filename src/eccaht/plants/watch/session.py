"""A watch that survives its program: the watcher, the operator's orders and the place in the data in one file.

Events are kept in the file before they are reported, and crossed out once they are. At whatever moment the program is
killed, the next one reads the file, reports what is still pending and takes the windows after the last one that was
counted: no event is lost, and none is made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from eccaht.base.archive import archive_bytes, check_keys, parse_archive, read_archive, write_archive
from eccaht.base.arrays import as_count
from eccaht.base.clock import PLAIN, Clock
from eccaht.base.durations import parse_duration
from eccaht.base.presentation.text import listed
from eccaht.plants.data.windows import Sample
from eccaht.plants.incident.engine import SHORT_GAP
from eccaht.plants.model.model import Model
from eccaht.plants.watch.events import (
    STILL,
    Event,
    Kind,
    Reported,
    Standing,
    Watcher,
    events_of,
    iso,
    microseconds,
    moment,
)
from eccaht.plants.watch.operator import Operator

_KIND, _VERSION = "watch-state", 2
_FEW = 0.005  # share of the windows of a history: fewer missing ones are no habit
_KEYS = {"model", "position", "windows", "number", "told", "orders", "obeyed", "pending", "watcher"}


@runtime_checkable
class Kept(Watcher, Protocol):
    """A watcher that a file can keep."""

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is needed to go on exactly from here, as values of JSON and arrays."""


Restore = Callable[[Model, Any, dict[str, NDArray[Any]]], Watcher]  # from what `Kept.parts` gave


class Session:
    """One plant watched from one program to the next.

    model: what prepares the windows; digest: of its file, so that a state is never used with another model.
    position: start of the last window that was counted, None before the first. windows: how many were counted.
    number: of the last event. pending: events that may not have been reported yet. obeyed: lines of a file of orders
    that were read.
    """

    def __init__(self, model: Model, watcher: Watcher, digest: str = "") -> None:
        self.model, self.watcher, self.digest = model, watcher, digest
        self.operator, self.reported = Operator(model.names), Reported()
        self.position: np.datetime64 | None = None
        self.windows = self.number = self.obeyed = 0
        self.pending: list[Event] = []

    def take(
        self, sample: Sample, clock: Clock = PLAIN, *, late: int = 0, moved: Mapping[str, str] | None = None
    ) -> list[Event]:
        """Take a window of all sensors, in robust units; return its events, which are pending from now on.

        late: rows since the window before that came after their own window was counted. moved: columns that never
        changed in the history and do now, with what is to say of each. A window that was counted
        already is refused. One with less than half of the usual rows, whose means are noisier than the history's,
        is not watched.
        """
        time = sample.start
        if self.position is not None and time <= self.position:
            raise ValueError(f"the window of {clock.show(time)} was counted before")
        watched, thin = sample._replace(values=self.operator.apply(sample.values, time)), self._is_thin(sample)
        if not thin:
            self.watcher.update(watched)
        shelved = frozenset(self.operator.shelved)
        still = {kind: _held(self.watcher.still(kind), getattr(self.reported, kind), shelved, time) for kind in STILL}
        now = Standing(
            time,
            self.watcher.fault,
            changed=self.watcher.changed,
            settled=self.watcher.settled,
            cautions=self.watcher.cautions,
            moved=moved or {},
            missed=self._missed(time),
            late=late,
            thin=thin,
            shelved=shelved,
            **still,
        )
        events, self.reported = events_of(self.reported, now, clock)
        self.position, self.windows = time, self.windows + 1
        return self._keep(events)

    def obey(self, order: str, time: np.datetime64, clock: Clock = PLAIN) -> list[Event]:
        """Carry out what an operator writes before the window at `time`; return its events, pending from now on.

        "shelve NAME TIME" leaves a sensor out for a time such as 2h, "unshelve NAME" takes it back, "acknowledge" and
        "normal" are about the alarm.
        """
        word, _, rest = order.strip().partition(" ")
        if word == "shelve":
            name, _, length = rest.strip().rpartition(" ")
            lasting = np.timedelta64(round(parse_duration(length, "the time") * 1e6), "us")
            self.operator.shelve(name.strip(), time + lasting)
            return []
        if word == "unshelve":
            self.operator.unshelve(rest.strip())
            return []
        if rest or word not in ("acknowledge", "normal"):
            raise ValueError("write 'shelve NAME 2h', 'unshelve NAME', 'acknowledge' or 'normal'")
        return self.acknowledge(clock) if word == "acknowledge" else self.call_normal(clock)

    def acknowledge(self, clock: Clock = PLAIN) -> list[Event]:
        """Take note that an operator knows of the alarm."""
        self.operator.acknowledge(fault := self.watcher.fault)
        assert fault is not None
        return self._done("acknowledged", fault.named, clock)

    def call_normal(self, clock: Clock = PLAIN) -> list[Event]:
        """Take the state of the sensors in the alarm as normal from now on."""
        self.operator.call_normal(fault := self.watcher.fault, self.watcher.deviations)
        assert fault is not None
        return self._done("new-normal", fault.named, clock)

    def report(self, kind: Kind, text: str, time: np.datetime64, clock: Clock = PLAIN) -> list[Event]:
        """An event that no window shows; it is pending from now on."""
        return self._keep([Event(kind, iso(clock, time), text)])

    def close(self, why: str, clock: Clock = PLAIN) -> list[Event]:
        """End what is open, because the watch ends; why: the reason, for people. The events are pending from now on."""
        if self.position is None:
            return []
        events, self.reported = events_of(self.reported, Standing(self.position, shelved=self.reported.shelved), clock)
        texts = [
            event.text if event.event == "over" else f"{event.event}: {listed(event.sensors)} not known any more"
            for event in events
        ]
        return self._keep([replace(event, text=f"{text}; {why}") for event, text in zip(events, texts, strict=True)])

    def settle(self) -> None:
        """All pending events were reported."""
        self.pending = []

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file, which replaces an earlier one once it is complete."""
        write_archive(path, _KIND, _VERSION, *self._parts())

    def to_bytes(self) -> bytes:
        return archive_bytes(_KIND, _VERSION, *self._parts())

    def _parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        if not isinstance(self.watcher, Kept):
            raise ValueError(f"the state of a {type(self.watcher).__name__} cannot be saved: leave out the file")
        watcher, arrays = self.watcher.parts()
        header = {
            "model": self.digest,
            "position": None if self.position is None else microseconds(self.position),
            "windows": self.windows,
            "number": self.number,
            "told": self.reported.header(),
            "orders": self.operator.header(),
            "obeyed": self.obeyed,
            "pending": [event.document() for event in self.pending],
            "watcher": watcher,
        }
        return header, arrays

    @staticmethod
    def load(path: str | PathLike[str], model: Model, restored: Restore, digest: str = "") -> Session:
        """Read a session that was saved; restored: makes the watcher from its parts. Safe for untrusted files."""
        build = partial(_build, model=model, restored=restored, digest=digest)
        return read_archive(path, _KIND, _VERSION, build, again="start again with a new file")

    @staticmethod
    def parse(content: bytes, model: Model, restored: Restore, digest: str, name: str) -> Session:
        """The same from the content of a file; name: what messages call it."""
        build = partial(_build, model=model, restored=restored, digest=digest)
        return parse_archive(content, _KIND, _VERSION, build, name=name, again="start again without it")

    def _is_thin(self, sample: Sample) -> bool:
        """Whether no sensor has half of the rows that windows of the history had."""
        return sample.rows is not None and float(sample.rows.max()) < 0.5 * float(self.model.summary.row_counts[0])

    def _missed(self, time: np.datetime64) -> int:
        """Windows without any row between the last one and this, if they are more than in the history."""
        if self.position is None:
            return 0
        missed = max(round((microseconds(time) - microseconds(self.position)) / (self.model.seconds * 1e6)) - 1, 0)
        return missed if missed > self._usual_gap else 0

    @property
    def _usual_gap(self) -> int:
        """Windows that may be missing in a row: some, if the history lacked windows too."""
        model = self.model
        lasted = (microseconds(model.last) - microseconds(model.first)) / (model.seconds * 1e6) + 1.0
        return SHORT_GAP if model.n_windows < (1.0 - _FEW) * lasted else 0

    def _done(self, kind: Kind, names: Sequence[str], clock: Clock) -> list[Event]:
        """The event of an operator's action."""
        assert self.position is not None
        text = f"{kind}: {', '.join(names)}"
        return self._keep([Event(kind, iso(clock, self.position), text, named=tuple(names), sensors=tuple(names))])

    def _keep(self, events: list[Event]) -> list[Event]:
        numbered = [replace(event, number=self.number + k) for k, event in enumerate(events, 1)]
        self.number += len(numbered)
        self.pending = [*self.pending, *numbered]
        return numbered


def _held(
    found: dict[str, np.datetime64], reported: frozenset[str], shelved: frozenset[str], time: np.datetime64
) -> dict[str, np.datetime64]:
    """Sensors that stand still; of shelved ones nothing new is reported."""
    free = {name: since for name, since in found.items() if name not in shelved}
    return free | dict.fromkeys(reported & shelved, time)


def _build(
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    model: Model,
    restored: Restore,
    digest: str,
) -> Session:
    check_keys(header, _KEYS, "header")
    if header["model"] != digest:
        raise ValueError("it belongs to another model: give that model, or another file to start anew")
    session = Session(model, restored(model, header["watcher"], arrays), digest)
    session.reported, session.operator = Reported.build(header["told"]), Operator.build(header["orders"], model.names)
    session.position = None if header["position"] is None else moment(header["position"])
    session.windows = as_count(header["windows"], "windows", least=0)
    session.number = as_count(header["number"], "number", least=0)
    session.obeyed = as_count(header["obeyed"], "obeyed", least=0)
    session.pending = [Event.build(document) for document in header["pending"]]
    return session
