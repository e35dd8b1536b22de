"""One plant of the service: rows become windows, windows events, and all that must be stored of it is one step."""

from __future__ import annotations

import time as clocks
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.windows import Sample
from eccaht.live.buffer import REMEMBERED, Buffer, Readings
from eccaht.live.moved import Constants
from eccaht.live.rows import Rows, SourceState, Taken
from eccaht.live.settings import PlantOptions
from eccaht.live.store.schema import STATES, checkpoints, counts, events, pending, windows
from eccaht.model.model import Model
from eccaht.watch.events import STILL, Event, Fault, microseconds
from eccaht.watch.rates import false_alarm_every, rate_line
from eccaht.watch.session import Session
from eccaht.watch.watchers import WatchedPlant

EVERY = 60  # windows between checkpoints
FARTHEST = 1e8  # robust units from the centre: beyond, a value is no reading
_SUSPECTS = 12


@dataclass(frozen=True)
class PlantView:
    """A plant as it is now, for everybody to read."""

    name: str
    model_digest: str
    model: Model
    era: int
    options: PlantOptions
    state: str
    evidence: float
    threshold_every: float
    promise: str
    position: np.datetime64 | None
    windows: int
    fault: Fault | None
    acknowledged: bool
    still: Mapping[str, tuple[str, ...]]
    shelved: Mapping[str, np.datetime64]
    suspects: tuple[dict[str, Any], ...]
    late: int
    duplicate: int
    ahead: int
    offsets: Array
    renewed: int | None  # since when the offsets hold, microseconds
    sources: Mapping[str, SourceState] = field(default_factory=dict)

    def shifts(self, starts: NDArray[np.int64]) -> Array:
        """What operators called normal, less what was, of windows that start then: (T, K), in robust units."""
        since = 1 << 62 if self.renewed is None else self.renewed
        return np.where((starts > since)[:, None], self.offsets, 0.0)

    @property
    def sensors(self) -> tuple[str, ...]:
        """The sensors of the model."""
        return self.model.names


@dataclass(eq=False)
class Step:
    """All that must be stored of one thing that happened to a plant, in one transaction or not at all."""

    plant: str
    windows: list[dict[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    times: list[int] = field(default_factory=list)  # of the events
    again: list[dict[str, Any]] = field(default_factory=list)  # windows of which more readings came, too late
    pending: dict[str, Any] | None = None
    consumed: int | None = None  # pending rows before this time are in windows now
    counts: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    position: dict[str, Any] | None = None
    audit: dict[str, Any] | None = None


class LivePlant:
    """Takes rows and orders; whoever calls it stores the steps, and builds it anew from the store if that fails."""

    def __init__(
        self, name: str, model: Model, digest: str, era: int, options: PlantOptions, session: Session, most: int
    ) -> None:
        self.name, self.model, self.digest, self.era, self.options = name, model, digest, era, options
        self.session, self._most = session, most
        self._constants = Constants(model.constants, len(model.names), model.clock)
        self._places = {sensor: k for k, sensor in enumerate(model.names)} | self._constants.places
        self._decimals = _by_decimals(model)
        further = len(self._constants.places)
        self.buffer = Buffer(model.names, model.seconds, model.clock, options.lateness, further=further)
        if session.position is not None:
            self.buffer.position = microseconds(session.position)
        self.late = self.duplicate = self.ahead = self.waiting = 0
        self.renewed: int | None = None  # when an operator last called a state normal
        self._number = 0  # of the next pending rows
        self._offset = crc32(name.encode()) % EVERY  # plants do not all write their checkpoints at once
        self._promise = rate_line(self.watcher.watch)
        self._look()

    @staticmethod
    def session_for(model: Model, digest: str, options: PlantOptions) -> Session:
        """A watch that begins."""
        every = false_alarm_every(options.false_alarms, model, "false_alarms")
        return Session(model, WatchedPlant.of(model, every), digest)

    @staticmethod
    def load(connection: sa.Connection, row: Any, model: Model, most: int) -> LivePlant:
        """A plant as the store has it: its checkpoint, the windows after it and the rows that wait.

        Windows are taken again as they were the first time, so their events, which the store has, are the same.
        """
        name = row.name
        kept = connection.execute(sa.select(checkpoints).where(checkpoints.c.plant == name)).one()
        session = Session.parse(kept.content, model, WatchedPlant.restored, row.digest, f"the checkpoint of {name}")
        plant = LivePlant(name, model, row.digest, row.era, PlantOptions(**row.options), session, most)
        taken = sa.select(windows).where(windows.c.plant == name, windows.c.era == row.era)
        after = taken.order_by(windows.c.start)
        if kept.position is not None:
            after = after.where(windows.c.start > kept.position)
        for window in connection.execute(after):
            session.take(_sample(window, len(model.names)), model.clock, late=window.late)
        session.settle()
        recent = taken.with_only_columns(windows.c.start, windows.c.seen).order_by(windows.c.start.desc())
        for window in reversed(connection.execute(recent.limit(REMEMBERED)).all()):
            plant.buffer.remember(window.start, window.seen)
        if session.position is not None:
            plant.buffer.position = microseconds(session.position)
        plant._restore_rows(connection)
        plant._look()
        return plant

    def _restore_rows(self, connection: sa.Connection) -> None:
        waiting = sa.select(pending).where(pending.c.plant == self.name).order_by(pending.c.number)
        for entry in connection.execute(waiting):
            self.buffer.put(Readings.parse(entry.content, self.buffer.columns))
            self._number = entry.number + 1
        normal = (events.c.plant == self.name) & (events.c.kind == "new-normal")
        self.renewed = connection.execute(sa.select(sa.func.max(events.c.time)).where(normal)).scalar()
        found = connection.execute(sa.select(counts).where(counts.c.plant == self.name)).one_or_none()
        if found is not None:
            self.late, self.duplicate, self.ahead, self.waiting = (
                found.late, found.duplicate, found.ahead, found.waiting
            )  # fmt: skip

    @property
    def watcher(self) -> WatchedPlant:
        """What watches it."""
        assert isinstance(self.session.watcher, WatchedPlant)
        return self.session.watcher

    # -- what happens ----------------------------------------------------------------------------------

    def take(self, rows: Rows) -> tuple[Step, Taken]:
        """Take rows."""
        readings, unknown = self._scaled(rows)
        future = readings.times > _now() + round(self.options.ahead * 1e6)
        ahead = int(future.sum()) if self.model.clock.row_interval is None else 0
        if ahead:
            readings = readings.pick(~future)
        if len(readings.times) + len(self.buffer.rows.times) > self._most + len(rows.times):
            raise ValueError(
                f"more than {self._most} rows of plant {self.name} wait for their window to be complete: "
                "send rows of later times, or lower its lateness"
            )
        before, released, step = self._counts(), self.buffer.add(readings), Step(self.name)
        self.late, self.duplicate, self.ahead = (
            self.late + released.late, self.duplicate + released.duplicate, self.ahead + ahead
        )  # fmt: skip
        self.waiting += released.late
        step.again = [{"p": self.name, "s": start, "r": seen} for start, seen in released.again.items()]
        moved = self._constants.moved(released.done, self.session.told.moved)
        for sample, seen in zip(released.windows.samples(), released.seen, strict=True):
            self._window(step, sample, seen, moved)
        if len(released.new.times):
            step.pending = {
                "plant": self.name,
                "number": self._number,
                "last": int(released.new.times.max()),
                "content": released.new.to_bytes(),
            }
            self._number += 1
        if step.windows and len(self.buffer.rows.times):
            step.consumed = int(self.buffer.rows.times[0])
        if (now := self._counts()) != before:
            step.counts = now
        return step, Taken(len(rows.times), released.late, released.duplicate, len(step.windows), unknown, ahead)

    def order(self, text: str) -> Step:
        """Obey an operator; the state is a checkpoint at once."""
        if self.session.position is None:
            raise ValueError(f"plant {self.name} has had no window yet: wait for the first")
        after = self.session.position + np.timedelta64(round(self.model.seconds * 1e6), "us")
        told = self.session.obey(text, after, self.model.clock)
        position = microseconds(self.session.position)
        if any(event.event == "new-normal" for event in told):
            self.renewed = position
        step = Step(self.name, events=told, times=[position] * len(told))
        step.checkpoint = self.checkpoint()
        return step

    def checkpoint(self) -> dict[str, Any]:
        """The state as a row of its table; the events so far are stored with it or before it."""
        self.session.settle()
        position = self.session.position
        return {
            "plant": self.name,
            "position": None if position is None else microseconds(position),
            "windows": self.session.windows,
            "content": self.session.to_bytes(),
        }

    def _window(self, step: Step, sample: Sample, seen: bytes, moved: Mapping[str, tuple[int, str]]) -> None:
        session, late, start = self.session, self.waiting, microseconds(sample.start)
        end = start + round(self.model.seconds * 1e6)
        until = {name: text for name, (since, text) in moved.items() if since < end}
        told = session.take(sample, self.model.clock, late=late, moved=until)
        self.waiting = 0
        self._look()
        step.events += told
        step.times += [start] * len(told)
        step.windows.append(
            {
                "plant": self.name,
                "start": start,
                "number": session.windows,
                "era": self.era,
                "values": np.ascontiguousarray(sample.values, dtype="<f8").tobytes(),
                "seen": seen,
                "rows": 0 if sample.rows is None else int(sample.rows.max()),
                "late": late,
                "evidence": self.evidence,
                "state": STATES.index(self.state),
            }
        )
        session.settle()
        moves = any(event.event == "moved" for event in told)  # stored windows, which are taken again, do not show it
        if moves or (session.windows + self._offset) % EVERY == 0:
            step.checkpoint = self.checkpoint()

    def _look(self) -> None:
        """Where the watch stands, which takes a while to compute, once a window."""
        self.evidence, self.state = self.watcher.evidence, self.watcher.state

    def _counts(self) -> dict[str, Any]:
        return {
            "plant": self.name,
            "late": self.late,
            "duplicate": self.duplicate,
            "ahead": self.ahead,
            "waiting": self.waiting,
        }

    def _scaled(self, rows: Rows) -> tuple[Readings, tuple[str, ...]]:
        """The readings of the model's sensors in robust units, its constants, and the columns that it does not have."""
        model, K = self.model, len(self.model.names)
        values: Array = np.full((len(rows.times), self.buffer.columns), np.nan)
        known = [k for k, name in enumerate(rows.names) if name in self._places]
        values[:, [self._places[rows.names[k]] for k in known]] = rows.values[:, known]
        with np.errstate(invalid="ignore", over="ignore"):
            for places, columns in self._decimals.items():
                values[:, columns] = np.round(values[:, columns], places)
            values[:, :K] = (values[:, :K] - model.center) / model.scale
            values[:, :K][~(np.abs(values[:, :K]) <= FARTHEST)] = np.nan
        values[np.isinf(values)] = np.nan
        unknown = tuple(name for name in rows.names if name not in self._places)
        return Readings(rows.times.astype(np.int64), values), unknown

    # -- what is shown ---------------------------------------------------------------------------------

    def view(self, sources: Mapping[str, SourceState]) -> PlantView:
        """The plant as it is now."""
        watcher, operator = self.watcher, self.session.operator
        fault = watcher.fault
        return PlantView(
            name=self.name,
            model_digest=self.digest,
            model=self.model,
            era=self.era,
            options=self.options,
            state=self.state,
            evidence=self.evidence,
            threshold_every=watcher.false_alarm_every,
            promise=self._promise,
            position=self.session.position,
            windows=self.session.windows,
            fault=fault,
            acknowledged=fault is not None and bool(operator.acknowledged == fault.raised),
            still={kind: tuple(watcher.still(kind)) for kind in STILL},
            shelved=dict(operator.shelved),
            suspects=self._suspects(fault),
            late=self.late,
            duplicate=self.duplicate,
            ahead=self.ahead,
            offsets=operator.offsets.copy(),
            renewed=self.renewed,
            sources=sources,
        )

    def _suspects(self, fault: Fault | None) -> tuple[dict[str, Any], ...]:
        """The sensors that are most likely wrong, none while all is quiet."""
        watch = self.watcher.watch
        standing = {k: kind for k, (kind, _) in watch.standing.items()}
        if watch.alarm is None and not standing:
            return ()
        K = len(self.model.names)
        beliefs = np.zeros(K) if watch.alarm is None else watch.alarm.beliefs.copy()
        beliefs[list(standing)] = 1.0 - 1.0 / K
        named = {} if fault is None else dict(zip(fault.named, zip(fault.kinds, fault.sizes, strict=True), strict=True))
        found = []
        for k in np.argsort(-beliefs, kind="stable")[:_SUSPECTS].tolist():
            if beliefs[k] > 0.0:
                kind, size = named.get(self.model.names[k], (standing.get(k), None))
                found.append({"sensor": self.model.names[k], "belief": float(beliefs[k]), "kind": kind, "size": size})
        return tuple(found)


def _by_decimals(model: Model) -> dict[int, list[int]]:
    """The sensors of each number of decimals: finer readings are rounded as the history was, see `Model.rounded`."""
    found: dict[int, list[int]] = {}
    for k, name in enumerate(model.names):
        if (places := model.reading.get("decimals", {}).get(name)) is not None:
            found.setdefault(places, []).append(k)
    return found


def _sample(window: Any, size: int) -> Sample:
    values = np.frombuffer(window.values, "<f8").astype(np.float64)
    return Sample(np.datetime64(window.start, "us"), values, np.full(size, float(window.rows)))


def _now() -> int:
    return clocks.time_ns() // 1000
