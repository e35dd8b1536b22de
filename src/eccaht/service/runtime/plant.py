"""One plant of the service: rows become windows, windows events, and all that must be stored of it is one step."""

from __future__ import annotations

import time as clocks
from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np
import sqlalchemy as sa

from eccaht.base.arrays import Array
from eccaht.plants.data.horizon import latest_believed
from eccaht.plants.data.windows import Sample
from eccaht.plants.model.model import Model
from eccaht.plants.watch.events import STILL, ActiveAlarm, microseconds
from eccaht.plants.watch.hearing import Hearing
from eccaht.plants.watch.rates import false_alarm_every, rate_line
from eccaht.plants.watch.session import Session
from eccaht.plants.watch.watchers import WatchedPlant
from eccaht.service.rows import Rows, SourceState, Taken
from eccaht.service.runtime.buffer import REMEMBERED, Buffer, Readings
from eccaht.service.runtime.moved import Constants
from eccaht.service.runtime.standing import PlantView, StoredStep
from eccaht.service.settings import PlantOptions
from eccaht.service.store.schema import STATES, checkpoints, counts, events, pending, windows

EVERY = 60  # windows between checkpoints
FARTHEST = 1e8  # robust units from the centre: beyond, a value is no reading
_DAY = 86400.0  # seconds after which rows that are ahead of the clock are not kept for later
_SUSPECTS = 12
_NEVER = 1 << 62


class LivePlant:
    """Takes rows and orders; whoever calls it stores the steps, and builds it anew from the store if that fails."""

    def __init__(
        self, name: str, model: Model, digest: str, era: int, options: PlantOptions, session: Session, most: int
    ) -> None:
        self.name, self.model, self.digest, self.era, self.options = name, model, digest, era, options
        self.session = session
        self._constants = Constants(model.constants, len(model.names), model.clock)
        self._places = {sensor: k for k, sensor in enumerate(model.names)} | self._constants.places
        self._decimals = _by_decimals(model)
        further = len(self._constants.places)
        self.buffer = Buffer(model.names, model.seconds, model.clock, options.lateness, most, further=further)
        self.hearing = Hearing(float(model.summary.row_counts[0]), model.seconds)
        if session.position is not None:
            self.buffer.position = microseconds(session.position)
        self.late = self.duplicate = self.ahead = self.waiting = 0
        self.renewed: int | None = None  # when an operator last called a state normal
        self._number = 0  # of the next pending rows
        self._offset = crc32(name.encode()) % EVERY  # plants do not all write their checkpoints at once
        self._rate_line = rate_line(self.watcher.watch)
        self._look()

    @staticmethod
    def session_for(model: Model, digest: str, options: PlantOptions) -> Session:
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
        columns = (windows.c.start, windows.c.seen, windows.c.late, windows.c.rows)
        recent = taken.with_only_columns(*columns).order_by(windows.c.start.desc())
        for window in reversed(connection.execute(recent.limit(REMEMBERED)).all()):
            plant.buffer.remember(window.start, window.seen)
            plant.hearing.took(window.late, window.rows)
        if session.position is not None:
            plant.buffer.position = microseconds(session.position)
        plant._restore_rows(connection)
        plant._look()
        return plant

    def _restore_rows(self, connection: sa.Connection) -> None:
        waiting = sa.select(pending).where(pending.c.plant == self.name).order_by(pending.c.number)
        for entry in connection.execute(waiting):
            self.buffer.put(entry.content)
            self._number = entry.number + 1
        self.hearing.know(_no_data(connection, self.name))
        normal = (events.c.plant == self.name) & (events.c.kind == "new-normal")
        self.renewed = connection.execute(sa.select(sa.func.max(events.c.time)).where(normal)).scalar()
        found = connection.execute(sa.select(counts).where(counts.c.plant == self.name)).one_or_none()
        if found is not None:
            self.late, self.duplicate, self.ahead, self.waiting = (
                found.late, found.duplicate, found.ahead, found.waiting
            )  # fmt: skip

    @property
    def watcher(self) -> WatchedPlant:
        assert isinstance(self.session.watcher, WatchedPlant)
        return self.session.watcher

    # -- what happens ----------------------------------------------------------------------------------

    def take(self, rows: Rows) -> tuple[StoredStep, Taken]:
        readings, unknown = self._scaled(rows)
        limit = latest_believed(self.model.clock, self.options.ahead)
        future = np.zeros(len(readings.times), bool) if limit is None else readings.times > limit + round(_DAY * 1e6)
        before, held_before, step = self._counts(), self.buffer.held, StoredStep(self.name)
        released = self.buffer.add(readings.pick(~future), limit)
        ahead, held = int(future.sum()) + released.ahead, self.buffer.held
        self.late, self.duplicate, self.ahead = (
            self.late + released.late, self.duplicate + released.duplicate, self.ahead + ahead
        )  # fmt: skip
        self.waiting += released.late
        step.again = [{"p": self.name, "s": start, "r": seen} for start, seen in released.again.items()]
        moved = self._constants.moved(released.done, self.session.reported.moved)
        for sample, seen in zip(released.windows.samples(), released.seen, strict=True):
            self._window(step, sample, seen, moved)
        self._wait(step, released.new)
        if not step.windows:
            self.hearing.ahead += ahead + max(held - held_before, 0)
        if self.hearing.listen(self.waiting):
            self._report_data(step)
        if (now := self._counts()) != before:
            step.counts = now
        return step, Taken(len(rows.times), released.late, released.duplicate, len(step.windows), unknown, ahead, held)

    def listen(self) -> StoredStep | None:
        """What has to be stored because no rows come, None if nothing."""
        if not self.hearing.listen(self.waiting):
            return None
        step = StoredStep(self.name)
        self._report_data(step)
        return step

    def carry(self, old: LivePlant) -> StoredStep:
        """Take along the rows that wait in the plant as it was with another model."""
        model, waiting, step = old.model, old.buffer.rows, StoredStep(self.name)
        K = len(model.names)
        raw = waiting.values.copy()
        raw[:, :K] = raw[:, :K] * model.scale + model.center
        names = (*model.names, *old._constants.places)
        readings, _ = self._scaled(Rows(waiting.times.astype("datetime64[us]"), names, raw))
        horizon = self.buffer.horizon
        horizon.time, horizon.usual, horizon.doubted = (
            old.buffer.horizon.time, max(old.buffer.horizon.usual, horizon.step), old.buffer.horizon.doubted
        )  # fmt: skip
        self._number = old._number
        self._wait(step, readings)
        return step

    def _wait(self, step: StoredStep, rows: Readings) -> None:
        """Keep rows until their windows are complete, and no longer those that are in windows now."""
        if len(rows.times):
            step.pending = {
                "plant": self.name,
                "number": self._number,
                "last": int(rows.times.max()),
                "content": self.buffer.to_bytes(rows),
            }
            self._number += 1
        if step.windows:
            waiting = self.buffer.rows.times
            step.consumed = int(waiting[0]) if len(waiting) else _NEVER

    def _report_data(self, step: StoredStep) -> None:
        session, clock = self.session, self.model.clock
        counted = clock.row_interval is not None
        time = np.datetime64(0 if counted else _now(), "us") if session.position is None else session.position
        events = session.report(*self.hearing.news, time, clock)
        step.events += events
        step.times += [microseconds(time)] * len(events)
        step.checkpoint = self.checkpoint()  # windows, which are taken again after a restart, do not show it

    def order(self, text: str) -> StoredStep:
        """Obey an operator; the state is a checkpoint at once."""
        if self.session.position is None:
            raise ValueError(f"plant {self.name} has had no window yet: wait for the first")
        after = self.session.position + np.timedelta64(round(self.model.seconds * 1e6), "us")
        events = self.session.obey(text, after, self.model.clock)
        position = microseconds(self.session.position)
        if any(event.event == "new-normal" for event in events):
            self.renewed = position
        step = StoredStep(self.name, events=events, times=[position] * len(events))
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

    def _window(self, step: StoredStep, sample: Sample, seen: bytes, moved: Mapping[str, tuple[int, str]]) -> None:
        session, late, start = self.session, self.waiting, microseconds(sample.start)
        end = start + round(self.model.seconds * 1e6)
        until = {name: text for name, (since, text) in moved.items() if since < end}
        events = session.take(sample, self.model.clock, late=late, moved=until)
        rows = 0 if sample.rows is None else int(sample.rows.max())
        self.waiting = 0
        self.hearing.took(late, rows)
        self._look()
        step.events += events
        step.times += [start] * len(events)
        step.windows.append(
            {
                "plant": self.name,
                "start": start,
                "number": session.windows,
                "era": self.era,
                "values": np.ascontiguousarray(sample.values, dtype="<f8").tobytes(),
                "seen": seen,
                "rows": rows,
                "late": late,
                "evidence": self.evidence,
                "state": STATES.index(self.state),
            }
        )
        session.settle()
        moves = any(event.event == "moved" for event in events)  # stored windows, which are taken again, do not show it
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
            rate_line=self._rate_line,
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
            held=self.buffer.held,
            no_data=self.hearing.reason,
            offsets=operator.offsets.copy(),
            renewed=self.renewed,
            sources=sources,
        )

    def _suspects(self, fault: ActiveAlarm | None) -> tuple[dict[str, Any], ...]:
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


def _no_data(connection: sa.Connection, plant: str) -> str | None:
    """Why the plant has no data, as the last event about that has it."""
    about = (events.c.plant == plant) & events.c.kind.in_(("no-data", "data-back"))
    last = connection.execute(sa.select(events.c.document).where(about).order_by(events.c.number.desc()).limit(1))
    document = last.scalar()
    if document is None or document["event"] == "data-back":
        return None
    return str(document["text"]).removeprefix("no data: ")


def _sample(window: Any, size: int) -> Sample:
    values = np.frombuffer(window.values, "<f8").astype(np.float64)
    return Sample(np.datetime64(window.start, "us"), values, np.full(size, float(window.rows)))


def _now() -> int:
    return clocks.time_ns() // 1000
