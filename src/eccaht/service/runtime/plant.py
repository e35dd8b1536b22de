"""One plant of the service: rows become windows, windows events, and all that must be stored of it is one step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
import sqlalchemy as sa

from eccaht.base.clock import microseconds
from eccaht.plants import Event, Hearing, Model, PlantWatch, Sample, Session, false_alarm_every, rate_line
from eccaht.plants.data.horizon import latest_believed
from eccaht.plants.data.windows import Batch
from eccaht.plants.incident.alarms import STANDING
from eccaht.plants.intake import REMEMBERED, Intake, Rows
from eccaht.plants.watch.active import ReadingPlan, budget_of, planned
from eccaht.plants.watch.state import with_rate
from eccaht.service.rows import Receipt, SourceState
from eccaht.service.runtime.views import PlantView, finite
from eccaht.service.settings import PlantOptions
from eccaht.service.store import schema
from eccaht.service.store.schema import STATES, UNJUDGED, checkpoints, counts, events, late_readings, pending, windows
from eccaht.service.store.store import StoredStep, insert, last_number, now, upsert
from eccaht.streams import Alarm

READ_BY = {"readings", "costs", "at_least_every"}  # settings
EVERY = 60  # windows between checkpoints
_DAY = 86400.0  # seconds after which rows that are ahead of the clock are not kept for later
_REBUILT = 2000  # windows at most from which a state is built anew
_SUSPECTS = 12
_NEVER = 1 << 62
_RENEWED = ("new-normal", "old-normal")  # events that change what counts as normal
_COUNTED = ("late", "duplicate", "ahead", "waiting")  # rows; waiting: late ones that no window has reported yet


class LivePlant:
    """Takes rows and orders; the caller stores the steps, and builds it anew from the store if that fails."""

    def __init__(
        self, name: str, model: Model, digest: str, era: int, options: PlantOptions, session: Session, most: int
    ) -> None:
        self.name, self.model, self.digest, self.era, self.options = name, model, digest, era, options
        self.session, self.clock = session, model.clock
        self.intake = Intake(model, lateness=options.lateness, most=most, merging=True)
        if session.position is not None:
            self.intake.position = microseconds(session.position)
        self.counts = dict.fromkeys(_COUNTED, 0)
        self.renewed: int | None = None  # when an operator last called a state normal
        self._number = 0  # of the next pending rows
        self._offset = crc32(name.encode()) % EVERY  # plants do not all write their checkpoints at once
        self._rate_line = rate_line(session.watch)
        self.held = 0  # rows that wait because they are ahead of all others, or of this machine's clock
        self.damage = ""  # why its state was built anew from its windows, which is not stored yet
        self._kept: tuple[Any, ...] | None = None
        self.peak = 0.0  # the largest evidence of the alarm that goes on
        self._look()

    @staticmethod
    def session_for(model: Model, digest: str, options: PlantOptions) -> Session:
        every, budget = false_alarm_every(options.false_alarms, model, "false_alarms"), budget_for(model, options)
        plan = None if budget is None else planned_for(model, options)
        session = Session(PlantWatch(model, false_alarm_every=every, plan=plan), digest)
        session.notices.on = True
        return session

    @staticmethod
    def load(connection: sa.Connection, row: Any, model: Model, most: int) -> LivePlant:
        """A plant as the store has it: its checkpoint, the windows after it and the rows that wait.

        Windows are taken again as they were the first time, so their events, which the store has, are the same.
        """
        name = row.name
        kept = connection.execute(sa.select(checkpoints).where(checkpoints.c.plant == name)).one_or_none()
        taken = sa.select(windows).where(windows.c.plant == name, windows.c.era == row.era)
        after, options, damage = taken.order_by(windows.c.start), PlantOptions(**row.options), ""
        try:
            if kept is None:
                raise ValueError("there is no checkpoint")
            session = Session.parse(kept.content, model, row.digest, f"the checkpoint of {name}")
            if kept.position is not None:
                after = after.where(windows.c.start > kept.position)
        except ValueError as error:
            session, damage = LivePlant.session_for(model, row.digest, options), str(error)
            last = taken.with_only_columns(windows.c.number).order_by(windows.c.number.desc())
            first = (connection.execute(last.limit(1)).scalar() or 0) - _REBUILT
            after, session.windows = after.where(windows.c.number > first), max(first, 0)
        plant = LivePlant(name, model, row.digest, row.era, options, session, most)
        for window in connection.execute(after):
            values, rows = np.frombuffer(window.values, "<f8").astype(np.float64), float(window.rows)
            start, counted = np.datetime64(window.start, "us"), np.full(len(model.names), rows)
            sample = Sample(start, values, counted, late=window.late)
            session.take(sample, plant.clock)
            session.watch.asked_next()  # as `_look` did
        session.settle()
        session.number = max(session.number, last_number(connection, name))  # whoever made them
        columns = (windows.c.start, windows.c.seen)
        recent = taken.with_only_columns(*columns).order_by(windows.c.start.desc())
        remembered = list(reversed(connection.execute(recent.limit(REMEMBERED)).all()))
        for window in remembered:
            plant.intake.remember(window.start, window.seen)
        recently = late_readings.c.start >= (remembered[0].start if remembered else 0)
        for late in connection.execute(sa.select(late_readings).where(late_readings.c.plant == name, recently)):
            plant.intake.remember_late(late.start, late.seen)
        if session.position is not None:
            plant.intake.position = microseconds(session.position)
        if isinstance(raised := getattr(session.watch.alarm, "time", None), np.datetime64):
            since = taken.with_only_columns(sa.func.max(windows.c.evidence))
            plant.peak = connection.execute(since.where(windows.c.start >= microseconds(raised))).scalar() or 0.0
        plant._restore_rows(connection)
        plant.held = plant._doubted(latest_believed(plant.clock, options.ahead))
        plant._look()
        if damage:
            plant.damage = f"{damage}; built anew from {session.windows - max(first, 0)} windows"
        return plant

    def _restore_rows(self, connection: sa.Connection) -> None:
        waiting = sa.select(pending).where(pending.c.plant == self.name).order_by(pending.c.number)
        for entry in connection.execute(waiting):
            self.intake.put(entry.content)
            self._number = entry.number + 1
        normal = (events.c.plant == self.name) & events.c.kind.in_(_RENEWED)
        self.renewed = connection.execute(sa.select(sa.func.max(events.c.time)).where(normal)).scalar()
        found = connection.execute(sa.select(counts).where(counts.c.plant == self.name)).one_or_none()
        if found is not None:
            self.counts = {name: getattr(found, name) for name in _COUNTED}
            self.intake.unreported = found.waiting

    @property
    def hearing(self) -> Hearing:
        """Whether the plant is watched."""
        return self.session.hearing

    def take(self, rows: Rows) -> tuple[StoredStep, Receipt]:
        readings, unknown = self.intake.scaled(rows), self.intake.unknown(rows)
        limit = latest_believed(self.clock, self.options.ahead)
        future = np.zeros(len(rows.times), bool)
        if limit is not None:
            future = rows.times > np.datetime64(limit + round(_DAY * 1e6), "us")
        before, held_before, step = self.counts.copy(), self.held, StoredStep(self.name)
        self.hearing.strange = unknown if len(unknown) == len(rows.names) else ()
        released = self.intake.add_scaled(Batch(readings.times[~future], readings.values[~future]), limit)
        whole = self.intake.finish() if self._has_all_asked else None
        self.held = self._doubted(limit)
        ahead, held = int(future.sum()) + released.ahead, self.held
        self.counts["late"] += released.late
        self.counts["duplicate"] += released.duplicate
        self.counts["ahead"] += ahead
        self.counts["waiting"] = self.intake.unreported
        step.again = [{"plant": self.name, "start": start, "seen": seen} for start, seen in released.again.items()]
        for part in (released, *([] if whole is None else [whole])):
            for sample, seen in zip(part.samples, part.seen, strict=True):
                self._window(step, sample, seen)
        self._wait(step, (whole or released).new)
        if not step.windows:
            self.hearing.ahead += ahead + max(held - held_before, 0)
        self._listen(step)
        if self.counts != before:
            step.counts = {"plant": self.name, **self.counts}
        return step, Receipt(
            len(rows.times), released.late, released.duplicate, len(step.windows), unknown, ahead, held
        )

    @property
    def _has_all_asked(self) -> bool:
        """Whether the rows that wait are a window with all readings that were asked for: the next one depends on it."""
        waiting, (asked, usual) = self.intake.waiting, (self.asked, self.model.usual_rows)
        if not asked or not len(waiting.times) or self.intake.held or not self.intake.is_one_window:
            return False
        places = [self.model.names.index(name) for name, _ in asked]
        return bool(((~np.isnan(waiting.values[:, places])).sum(axis=0) >= usual).all())

    def _doubted(self, limit: int | None) -> int:
        """How many rows wait until others agree with them, or until their time has come."""
        waiting, horizon = self.intake.waiting.times, self.intake.horizon
        if horizon.time is None and limit is not None and len(waiting) and microseconds(waiting[0]) > limit:
            return len(waiting)
        return self.intake.held

    def listen(self) -> StoredStep:
        """What has to be stored because no rows come, perhaps nothing."""
        step = StoredStep(self.name)
        self._listen(step)
        return step

    def mended(self) -> StoredStep:
        """What has to be stored because the state was built anew."""
        step, forgotten = StoredStep(self.name), "shelved sensors, acknowledgements and new normals are forgotten"
        time = self.session.position if self.session.position is not None else np.datetime64(now(), "us")
        step.add(self.session.report("caution", f"caution: {self.damage}; {forgotten}", time, self.clock), time)
        step.checkpoint, self.damage = self.checkpoint(), ""
        return step

    def carry(self, old: LivePlant) -> StoredStep:
        """Take along the rows that wait in the plant as it was with another model."""
        model, waiting, step = old.model, old.intake.waiting, StoredStep(self.name)
        K = len(model.names)
        raw = waiting.values.copy()
        raw[:, :K] = model.raw(raw[:, :K])
        readings = self.intake.scaled(Rows(waiting.times, old.intake.columns, raw))
        horizon, before = self.intake.horizon, old.intake.horizon
        horizon.time, horizon.usual, horizon.doubted = before.time, max(before.usual, horizon.step), before.doubted
        self._number = old._number
        self._wait(step, readings)
        return step

    def _wait(self, step: StoredStep, rows: Batch) -> None:
        """Keep rows until their windows are complete, and no longer those that are in windows now."""
        if len(rows.times):
            step.pending = {
                "plant": self.name,
                "number": self._number,
                "last": microseconds(rows.times.max()),
                "content": self.intake.to_bytes(rows),
            }
            self._number += 1
        if step.windows:
            waiting = self.intake.waiting.times
            step.consumed = microseconds(waiting[0]) if len(waiting) else _NEVER

    def _listen(self, step: StoredStep) -> None:
        """Report that rows no longer come, or come again, if that is new."""
        self.hearing.last = self._last_row()
        self.hearing.senders = "the sources" if self.options.sources else "what sends them"
        if not self.hearing.listen(self.counts["waiting"]):
            return
        time = self.session.position
        if time is None:
            time = np.datetime64(now() if self.clock.row_interval is None else 0, "us")
        step.add(self.session.report(*self.hearing.news, time, self.clock), time)
        step.checkpoint = self.checkpoint()  # windows, which are taken again after a restart, do not show it

    def _last_row(self) -> str:
        """When the newest row was, for people; no row from the future counts."""
        newest = self.intake.position if self.intake.horizon.time is None else self.intake.horizon.time
        return "the service started watching it" if newest is None else self.clock.show(np.datetime64(newest, "us"))

    def order(self, text: str) -> StoredStep:
        """Obey an operator; the state is a checkpoint at once."""
        if self.session.position is None:
            raise ValueError(f"plant {self.name} has had no window yet: wait for the first")
        after = self.session.position + np.timedelta64(round(self.model.seconds * 1e6), "us")
        events = self.session.obey(text, after, self.clock)
        if any(event.event in _RENEWED for event in events):
            self.renewed = microseconds(self.session.position)
        step = StoredStep(self.name)
        step.add(events, self.session.position)
        step.checkpoint = self.checkpoint()
        return step

    @property
    def is_kept(self) -> bool:
        """Whether nothing has happened since the last checkpoint."""
        return self._kept == (self.session.position, self.session.number)

    def checkpoint(self) -> dict[str, Any]:
        """The state as a row of its table; the events so far are stored with it or before it."""
        self.session.settle()
        position = self.session.position
        self._kept = (position, self.session.number)
        return {
            "plant": self.name,
            "position": None if position is None else microseconds(position),
            "windows": self.session.windows,
            "content": self.session.to_bytes(),
        }

    def _window(self, step: StoredStep, sample: Sample, seen: bytes) -> None:
        session = self.session
        events = session.take(sample, self.clock)
        news = session.hear(self.clock)
        self._look()
        step.add(events + news, sample.start)
        step.windows.append(
            {
                "plant": self.name,
                "start": microseconds(sample.start),
                "number": session.windows,
                "era": self.era,
                "values": sample.values.astype("<f8").tobytes(),
                "seen": seen,
                "rows": 0 if sample.rows is None else int(sample.rows.max()),
                "late": sample.late,
                "evidence": self.evidence,
                "state": UNJUDGED if self.hearing.why is not None else STATES.index(self.state),
            }
        )
        session.settle()
        # stored windows, which are taken again after a restart, do not show these
        apart = bool(news) or any(event.event == "moved" for event in events)
        if apart or (session.windows + self._offset) % EVERY == 0:
            step.checkpoint = self.checkpoint()

    def _look(self) -> None:
        """Where the watch stands, which takes a while to compute, once a window."""
        self.evidence, self.state = self.session.watch.evidence, self.session.watch.state
        self.peak = 0.0 if self.session.watch.alarm is None else max(self.peak, self.evidence)
        self.asked = self.session.watch.asked_next()

    def view(self, sources: Mapping[str, SourceState]) -> PlantView:
        watch, operator = self.session.watch, self.session.operator
        alarm = watch.in_units(watch.alarm)
        return PlantView(
            name=self.name,
            model_digest=self.digest,
            model=self.model,
            era=self.era,
            options=self.options,
            state=self.state,
            evidence=self.evidence,
            threshold_every=watch.false_alarm_every,
            rate_line=self._rate_line,
            position=self.session.position,
            windows=self.session.windows,
            alarm=alarm,
            peak=self.peak,
            asked=self.asked,
            acknowledged=alarm is not None and bool(operator.acknowledged == alarm.time),
            still={kind: watch.still(kind) for kind in STANDING},
            shelved=dict(operator.shelved),
            suspects=self._suspects(alarm),
            late=self.counts["late"],
            duplicate=self.counts["duplicate"],
            ahead=self.counts["ahead"],
            held=self.held,
            no_data=self.hearing.reason,
            offsets=operator.offsets.copy(),
            renewed=self.renewed,
            restorable=operator.before is not None,
            sources=sources,
        )

    def _suspects(self, alarm: Alarm | None) -> tuple[dict[str, Any], ...]:
        """The sensors that are most likely wrong, none while all is quiet."""
        standing = {k: kind for k, (kind, _) in self.session.watch.standing.items()}
        if alarm is None and not standing:
            return ()
        K = len(self.model.names)
        beliefs = np.zeros(K) if alarm is None else alarm.beliefs.copy()
        beliefs[list(standing)] = 1.0 - 1.0 / K
        named = {}
        if alarm is not None:
            of = zip(alarm.kinds, map(finite, alarm.sizes.tolist()), strict=True)
            named = dict(zip(alarm.decision.tolist(), of, strict=True))
        found = []
        for k in np.argsort(-beliefs, kind="stable")[:_SUSPECTS].tolist():
            if beliefs[k] > 0.0:
                kind, size = named.get(k, (standing.get(k), None))
                found.append({"sensor": self.model.names[k], "belief": float(beliefs[k]), "kind": kind, "size": size})
        return tuple(found)


def budget_for(model: Model, options: PlantOptions) -> ReadingPlan | None:
    """What may be read of a window, before anything was counted; None: everything is read."""
    if options.readings is None:
        if options.costs or options.at_least_every:
            raise ValueError("costs and at_least_every are for a plant with few readings: give readings")
        return None
    return budget_of(model, options.readings, options.costs, options.at_least_every)


@lru_cache(maxsize=8)
def _planned(model: Model, readings: str) -> ReadingPlan:
    budget = budget_for(model, PlantOptions.model_validate_json(readings))
    assert budget is not None
    return planned(model, budget)


def planned_for(model: Model, options: PlantOptions) -> ReadingPlan:
    """The plan with what was counted on the history, which takes long and is done once."""
    return _planned(model, options.model_dump_json(include=READ_BY))


def reads_as(plan: ReadingPlan | None, budget: ReadingPlan | None) -> bool:
    """Whether a plan has this budget."""
    if plan is None or budget is None:
        return plan is budget
    same = np.array_equal(plan.costs, budget.costs) and np.array_equal(plan.within, budget.within)
    return same and plan.readings == budget.readings


def put_plant(
    connection: sa.Connection,
    name: str,
    model: Model,
    digest: str,
    options: PlantOptions,
    old: LivePlant | None,
    most: int,
) -> StoredStep:
    """Write a plant, and return what has to be stored of it beside that.

    old: the plant as the store has it, None if there is none. With the same model and readings it goes on, at another
    false-alarm rate perhaps; else a new era begins. most: rows that may wait.
    """
    row = connection.execute(sa.select(schema.plants).where(schema.plants.c.name == name)).one_or_none()
    era, created = (1, now()) if row is None else (row.era, row.created)
    every, budget = false_alarm_every(options.false_alarms, model, "false_alarms"), budget_for(model, options)
    if old is not None and old.digest == digest and reads_as(old.session.watch.plan, budget):
        step = StoredStep(name)
        if every != old.session.watch.false_alarm_every:
            old.session.watch = with_rate(old.session.watch, every)
            step.checkpoint = old.checkpoint()
    else:
        era += row is not None
        session = LivePlant.session_for(model, digest, options)
        closed = list[Event]()
        session.number = last_number(connection, name)
        if old is not None:
            session.position = old.session.position
            session.hearing.know(old.hearing.reason)
            closed = old.session.close("the plant has another model now, or is read otherwise", old.clock)
            session.number = max(session.number, old.session.number)
        plant = LivePlant(name, model, digest, era, options, session, most)
        connection.execute(sa.delete(schema.pending).where(schema.pending.c.plant == name))
        step = StoredStep(name) if old is None else plant.carry(old)
        if session.position is not None:
            step.add(closed, session.position)
        step.checkpoint = plant.checkpoint()
        begun = {"plant": name, "era": era, "digest": digest, "number": session.number, "created": now()}
        insert(connection, schema.eras, [begun])
    known = {"name": name, "digest": digest, "era": era, "options": options.stored(), "created": created}
    upsert(connection, schema.plants, [known])
    return step
