"""The thread of the service: jobs are done in order, stored in one transaction for many, and then published.

Nothing is acknowledged or published before it is stored. If storing fails, the plants of that transaction are built
anew from the store, and whoever sent rows sends them again: those that were stored after all are duplicates.
"""

from __future__ import annotations

import asyncio
import logging
import queue
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any

import numpy as np
import sqlalchemy as sa

from eccaht.plants.model.model import Model, parse_model
from eccaht.plants.watch.events import Event, microseconds
from eccaht.service.rows import Busy, SourceState, Taken, UnknownPlant
from eccaht.service.runtime.documents import overview, window_document
from eccaht.service.runtime.hub import Hub
from eccaht.service.runtime.jobs import Job, Jobs
from eccaht.service.runtime.plant import LivePlant
from eccaht.service.runtime.standing import PlantView, StoredStep
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, queries, schema
from eccaht.service.store.store import now

COLLECTED = 0.05  # seconds for which jobs are taken into one transaction
LINGER = 0.02  # seconds that a transaction waits for more, where waiting brought some before
_SKIPPED = 64  # the most transactions that do not wait after one that waited in vain
_LOG = logging.getLogger("eccaht.service")
Outgoing = Callable[[str, Event], Iterable[dict[str, Any]]]


class Worker:
    """Has all plants and does all jobs, in the thread that calls `run`.

    loop: where the futures of the jobs are. views: the plants as they are now, for every thread to read.
    """

    def __init__(self, store: Store, settings: Settings, hub: Hub, outgoing: Outgoing) -> None:
        self.store, self.settings, self.hub, self._outgoing = store, settings, hub, outgoing
        self.jobs = Jobs()
        self.views: dict[str, PlantView] = {}
        self.sources: dict[str, dict[str, SourceState]] = {}  # by plant; written on the loop
        self.loop: asyncio.AbstractEventLoop | None = None
        self.counts = {"rows": 0, "windows": 0, "events": 0, "late": 0, "duplicate": 0, "refused": 0, "failed": 0}
        self.failing: float | None = None  # when the store last failed to take rows, if it has taken none since
        self._plants: dict[str, LivePlant] = {}
        self._stale: set[str] = set()
        self._models: dict[str, Model] = {}
        self._published: dict[str, tuple[Any, ...]] = {}  # what the overview was sent last
        self._skip = self._skipped = 0  # transactions that are not to wait for more: still, and the last time

    def run(self) -> None:
        """Do jobs until the end, and write a checkpoint of each plant."""
        try:
            while self._next():
                pass
            self.keep_all()
        except Exception:  # a fault of the program: /healthz reports that the thread has ended
            _LOG.exception("the service takes no more rows: start it again")
        self.jobs.end()
        while (left := self.jobs.get()) is not None:
            self._fail([left], Busy("the service is stopping", broken=True))

    def _next(self) -> bool:
        """Do what comes next; False at the end."""
        try:
            job = self.jobs.get(timeout=1.0)
        except queue.Empty:
            return True
        if job is None:
            return False
        following, ended = self._group(job) if job.group else (job, False)
        if following is not None:
            self._alone(following)
        return not ended

    def _group(self, first: Job) -> tuple[Job | None, bool]:
        """Do jobs and store them together; return one that has to be done alone, and whether it is the end."""
        end, job = monotonic() + COLLECTED, first
        done: list[tuple[Job, StoredStep, Any]] = []
        following: Job | None = None
        ended = False
        while True:
            self._try(job, done)
            if monotonic() > end:
                break
            try:
                more = self._more()
            except queue.Empty:
                break
            if more is None or not more.group:
                following, ended = more, more is None
                break
            job = more
        if done:
            self._store(done)
        return following, ended

    def _more(self) -> Job | None:
        """The next job, which is waited for if that pays: a transaction costs as much as the work of a delivery.

        Many senders side by side share one; a sender of one delivery after the other is not held up.
        """
        with suppress(queue.Empty):
            return self.jobs.get()
        if self._skip:
            self._skip -= 1
            raise queue.Empty
        try:
            job = self.jobs.get(timeout=LINGER)
        except queue.Empty:
            self._skip = self._skipped = min(2 * self._skipped + 1, _SKIPPED)
            raise
        self._skipped = 0
        return job

    def _try(self, job: Job, done: list[tuple[Job, StoredStep, Any]]) -> None:
        assert job.plant is not None
        try:
            plant = self._plant(job.plant)
        except Exception as error:
            self._fail([job], self._outside(error))
            return
        try:
            step, result = job.work(plant)
        except ValueError as error:
            self._fail([job], error)
        except Exception as error:
            _LOG.exception("plant %s", job.plant)
            self._stale.add(job.plant)
            self._fail([job], error)
        else:
            done.append((job, step, result))

    def _store(self, done: list[tuple[Job, StoredStep, Any]]) -> None:
        steps = [step for _, step, _ in done]
        try:
            with self.store.begin() as connection:
                queries.write_steps(connection, steps, self._outgoing)
        except Exception as error:
            _LOG.error("not stored: %s", self._error_line(error), extra={"jobs": len(done)})
            if isinstance(error, sa.exc.OperationalError | sa.exc.TimeoutError):
                self.failing = monotonic()
            self._stale |= {step.plant for step in steps}
            self._fail([job for job, _, _ in done], self._outside(error))
            return
        self.failing = None
        self._publish(steps)
        for taken in (result for _, _, result in done if isinstance(result, Taken)):
            for name in ("rows", "late", "duplicate"):
                self.counts[name] += getattr(taken, name)
        self._resolve([(job.future, result, None) for job, _, result in done])

    def _alone(self, job: Job) -> None:
        try:
            with self.store.begin() as connection:
                result = job.work(connection)
        except Exception as error:
            self._fail([job], self._outside(error))
            return
        if job.plant is not None:
            self._stale.add(job.plant)
            try:
                self._refresh(job.plant)
            except Exception as error:
                self._fail([job], self._outside(error))
                return
        self._resolve([(job.future, result, None)])

    def put(self, connection: sa.Connection, name: str, digest: str, options: PlantOptions, who: str) -> list[Event]:
        """Write a plant; another model begins a new era, which takes along the rows that wait.

        So it does where an earlier version wrote what the store has of the plant. Return what it ends, as events.
        """
        model, plants = self._model(connection, digest), schema.plants
        row = connection.execute(sa.select(plants).where(plants.c.name == name)).one_or_none()
        old = None if row is None else self._readable(connection, name)
        document, step = options.stored(), StoredStep(name)
        era = 1 if row is None else row.era
        if old is not None and old.digest == digest:
            every = LivePlant.session_for(model, digest, options).watcher.false_alarm_every
            if every != old.watcher.false_alarm_every:
                old.session.watcher = old.watcher.with_rate(every)
                step.checkpoint = old.checkpoint()
        else:
            era += row is not None
            step = self._begin_era(connection, name, digest, era, options, old)
        created = now() if row is None else row.created
        known = {"name": name, "digest": digest, "era": era, "options": document, "created": created}
        queries.upsert(connection, plants, [known])
        shown = {"model": digest, "options": options.model_dump(mode="json")}
        step.audit = queries.audit_row(who, "plant", name, shown)
        queries.write_steps(connection, [step], self._outgoing)
        return step.events

    def _begin_era(
        self, connection: sa.Connection, name: str, digest: str, era: int, options: PlantOptions, old: LivePlant | None
    ) -> StoredStep:
        """What another model changes: what is open ends, the rows that wait come along."""
        model, closed = self._model(connection, digest), []
        number = queries.last_number(connection, name)
        session = LivePlant.session_for(model, digest, options)
        session.position = self._position(connection, name) if old is None else old.session.position
        if old is not None:
            closed = old.session.close("the plant has another model now", old.model.clock)
            number = max(number, old.session.number)
        session.number = number
        plant = LivePlant(name, model, digest, era, options, session, self.settings.limits.pending)
        lost = connection.execute(sa.delete(schema.pending).where(schema.pending.c.plant == name)).rowcount
        if old is None and lost:
            _LOG.error("plant %s: rows that waited were written by an earlier version and are lost", name)
        step = StoredStep(name) if old is None else plant.carry(old)
        step.events = closed
        step.times = [microseconds(session.position)] * len(closed) if session.position is not None else []
        step.checkpoint = plant.checkpoint()
        begun = {"plant": name, "era": era, "digest": digest, "number": number, "created": now()}
        queries.insert(connection, schema.eras, [begun])
        return step

    def _readable(self, connection: sa.Connection, name: str) -> LivePlant | None:
        """The plant as the store has it, None if that cannot be read."""
        try:
            return self._read(connection, name)
        except ValueError:
            return None

    def _position(self, connection: sa.Connection, name: str) -> np.datetime64 | None:
        """The last window of a plant, whatever else can be read of it."""
        kept = schema.checkpoints.c
        found = connection.execute(sa.select(kept.position).where(kept.plant == name)).scalar()
        return None if found is None else np.datetime64(found, "us")

    def _model(self, connection: sa.Connection, digest: str) -> Model:
        if digest not in self._models:
            models = schema.models.c
            found = connection.execute(sa.select(models.content, models.name).where(models.digest == digest)).first()
            if found is None:
                raise LookupError(f"there is no model {digest[:12]!r}: upload it first")
            self._models[digest] = parse_model(found.content, found.name)
        return self._models[digest]

    def _plant(self, name: str) -> LivePlant:
        """A plant, as the store has it if the last attempt to store it failed."""
        if name in self._stale or name not in self._plants:
            self._refresh(name)
        if name not in self._plants:
            raise UnknownPlant(name)
        return self._plants[name]

    def _read(self, connection: sa.Connection, name: str) -> LivePlant:
        row = connection.execute(sa.select(schema.plants).where(schema.plants.c.name == name)).one_or_none()
        if row is None:
            raise UnknownPlant(name)
        plant = LivePlant.load(connection, row, self._model(connection, row.digest), self.settings.limits.pending)
        if name in self._plants:
            plant.hearing.heard = self._plants[name].hearing.heard
        elif self.settings.sources:  # of several services one has the plant
            plant.hearing.heard = None
        return plant

    def _refresh(self, name: str) -> None:
        """Build a plant anew from the store."""
        with self.store.read() as connection:
            try:
                self._plants[name] = self._read(connection, name)
            except UnknownPlant:
                self._plants.pop(name, None)
                self.views.pop(name, None)
                self._published.pop(name, None)
                self.hub.publish_soon([("plants", name, {"name": name, "removed": True})])
        self._stale.discard(name)
        if name in self._plants:
            self.hub.publish_soon(self._looked(self._plants[name]))

    def silent(self) -> list[str]:
        """Plants for which no rows have come for long, which has not been reported."""
        return [name for name, plant in self._plants.copy().items() if plant.hearing.is_silent]

    def load_all(self) -> None:
        """Read all plants from the store; what an earlier version wrote of one does not hold up the others."""
        self.store.prepare()
        with self.store.read() as connection:
            names = list(connection.execute(sa.select(schema.plants.c.name)).scalars())
        for name in names:
            try:
                self._refresh(name)
            except ValueError as error:
                _LOG.error("plant %s is not watched until it has a new model: %s", name, error)

    def keep_all(self) -> None:
        """A checkpoint of every plant that is as the store has it."""
        for name, plant in self._plants.items():
            if name in self._stale:
                continue
            try:
                with self.store.begin() as connection:
                    queries.upsert(connection, schema.checkpoints, [plant.checkpoint()])
            except sa.exc.SQLAlchemyError as error:
                _LOG.error("no checkpoint of %s: %s", name, self._error_line(error))

    def _publish(self, steps: list[StoredStep]) -> None:
        messages: list[tuple[str, str, Any]] = []
        for step in steps:
            plant = self._plants[step.plant]
            clock = plant.model.clock
            messages += [("window", step.plant, window_document(row, clock)) for row in step.windows]
            messages += [
                ("event", step.plant, {"plant": step.plant, "document": event.document()}) for event in step.events
            ]
            self.counts["windows"] += len(step.windows)
            self.counts["events"] += len(step.events)
        for name in dict.fromkeys(step.plant for step in steps):
            messages += self._looked(self._plants[name])
        self.hub.publish_soon(messages)

    def _looked(self, plant: LivePlant) -> list[tuple[str, str, Any]]:
        """Renew the view of a plant; the message of what changed that the overview shows."""
        view = plant.view(self.sources.get(plant.name, {}))
        self.views[plant.name] = view
        named = None if view.fault is None else (view.fault.named, view.fault.onset)
        sources = {name: source.state for name, source in view.sources.items()}
        shown = (view.state, view.acknowledged, view.still, view.shelved, view.no_data, named, sources)
        if self._published.get(plant.name) == shown:
            return []
        self._published[plant.name] = shown
        return [("plants", plant.name, overview(view))]

    def _error_line(self, error: Exception) -> str:
        """An error in one line, without the statement and its secrets."""
        return self.store.error_line(error) if isinstance(error, sa.exc.DBAPIError) else " ".join(str(error).split())

    def _outside(self, error: Exception) -> Exception:
        """What the caller gets: that it may try again, where the store failed."""
        if isinstance(error, sa.exc.DBAPIError | sa.exc.TimeoutError):
            return Busy(f"the store failed: {self._error_line(error)[:200]}", broken=True)
        return error

    def _fail(self, jobs: list[Job], error: BaseException) -> None:
        self.counts["failed"] += len(jobs)
        self._resolve([(job.future, None, error) for job in jobs])

    def _resolve(self, results: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
        assert self.loop is not None
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(_set, results)


def _set(results: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, result, error in results:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
