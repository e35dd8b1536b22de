"""The thread of the service: jobs are done, stored in one transaction for many, and then published.

Plants take turns, and what is for one plant keeps its order. Nothing is acknowledged or published before it is stored.
If storing fails, the plants of that transaction are built anew from the store, and the senders send their rows again:
those that were stored after all are duplicates.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

import sqlalchemy as sa

from eccaht.plants import Event, Model, parse_model
from eccaht.service.rows import Busy, SourceState, Taken, UnknownPlant
from eccaht.service.runtime import eras
from eccaht.service.runtime.plant import LivePlant
from eccaht.service.runtime.views import Hub, PlantView, event_message, overview, severity_now, window_document
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, schema
from eccaht.service.store.store import Outgoing, StoredStep, audit_row, upsert, write_steps

COLLECTED = 0.05  # seconds for which jobs are taken into one transaction
LINGER = 0.02  # seconds that a transaction waits for more, where waiting brought some before
_SKIPPED = 64  # the most transactions that do not wait after one that waited in vain
_LOG = logging.getLogger("eccaht.service")


@dataclass(eq=False)
class Job:
    """Work for the thread; group: it returns a step to be stored with those of others, else it stores by itself."""

    work: Callable[..., Any]
    future: asyncio.Future[Any]
    plant: str | None = None
    group: bool = True


class Jobs:
    """Jobs by plant: one with many of them does not hold up the others. Safe to use from several threads."""

    def __init__(self) -> None:
        self._waiting: dict[str | None, deque[Job]] = {}  # in the order of their turns
        self._changed = threading.Condition()
        self._ended = False

    def put(self, job: Job) -> None:
        with self._changed:
            self._waiting.setdefault(job.plant, deque()).append(job)
            self._changed.notify()

    def end(self) -> None:
        """There is nothing to wait for any more: `get` gives what is there, and then None."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def get(self, timeout: float | None = 0.0) -> Job | None:
        """The next job, None at the end; queue.Empty if there is none for so many seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting or self._ended, timeout):
                raise queue.Empty
            if not self._waiting:
                return None
            plant = next(iter(self._waiting))
            mine = self._waiting.pop(plant)
            job = mine.popleft()
            if mine:
                self._waiting[plant] = mine  # its next turn is after all others
            return job

    def of(self, plant: str | None) -> int:
        return len(self._waiting.get(plant, ()))


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
            job = self.jobs.get(None)
            while job is not None:
                job = self._group(job) if job.group else self._alone(job)
            self.keep_all()
        except Exception:  # a fault of the program: /healthz reports that the thread has ended
            _LOG.exception("the service takes no more rows: start it again")
        self.jobs.end()
        while (left := self.jobs.get()) is not None:
            self._fail([left], Busy("the service is stopping", broken=True))

    def _group(self, job: Job) -> Job | None:
        """Do jobs and store them together; return the one that follows, None at the end."""
        end, done = monotonic() + COLLECTED, list[tuple[Job, StoredStep, Any]]()
        while True:
            self._try(job, done)
            try:
                following = self._more(end)
            except queue.Empty:
                self._store(done)
                return self.jobs.get(None)
            if following is None or not following.group:
                self._store(done)
                return following
            job = following

    def _more(self, end: float) -> Job | None:
        """The next job, which is waited for if that pays: a transaction costs as much as the work of a delivery.

        Many senders side by side share one; a sender of one delivery after the other is not held up.
        """
        if monotonic() > end:
            raise queue.Empty
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
        if not done:
            return
        steps = [step for _, step, _ in done]
        try:
            with self.store.begin() as connection:
                write_steps(connection, steps, self._outgoing)
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

    def _alone(self, job: Job) -> Job | None:
        """Do a job that stores by itself; return the one that follows, None at the end."""
        try:
            with self.store.begin() as connection:
                result = job.work(connection)
            if job.plant is not None:
                self._stale.add(job.plant)
                self._refresh(job.plant)
        except Exception as error:
            self._fail([job], self._outside(error))
        else:
            self._resolve([(job.future, result, None)])
        return self.jobs.get(None)

    def put(self, connection: sa.Connection, name: str, digest: str, options: PlantOptions, who: str) -> list[Event]:
        """Make a plant or change it, see `eras.put`; return what that ends, as events."""
        try:
            old = self._read(connection, name)
        except UnknownPlant:
            old = None
        model = self._model(connection, digest)
        step = eras.put(connection, name, model, digest, options, old, self.settings.limits.pending)
        shown = {"model": digest, "options": options.model_dump(mode="json")}
        step.audit = audit_row(who, "plant", name, shown)
        write_steps(connection, [step], self._outgoing)
        return step.events

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
        """Read all plants from the store."""
        self.store.prepare()
        with self.store.read() as connection:
            names = list(connection.execute(sa.select(schema.plants.c.name)).scalars())
        for name in names:
            self._refresh(name)

    def keep_all(self) -> None:
        """A checkpoint of every plant that is as the store has it."""
        for name, plant in self._plants.items():
            if name in self._stale:
                continue
            try:
                with self.store.begin() as connection:
                    upsert(connection, schema.checkpoints, [plant.checkpoint()])
            except sa.exc.SQLAlchemyError as error:
                _LOG.error("no checkpoint of %s: %s", name, self._error_line(error))

    def _publish(self, steps: list[StoredStep]) -> None:
        messages: list[tuple[str, str, Any]] = []
        for step in steps:
            plant = self._plants[step.plant]
            messages += [("window", step.plant, window_document(row, plant.clock)) for row in step.windows]
            messages += [event_message(step.plant, event) for event in step.events]
            self.counts["windows"] += len(step.windows)
            self.counts["events"] += len(step.events)
        for name in dict.fromkeys(step.plant for step in steps):
            messages += self._looked(self._plants[name])
        self.hub.publish_soon(messages)

    def _looked(self, plant: LivePlant) -> list[tuple[str, str, Any]]:
        """Renew the view of a plant; the message of what changed that the overview shows."""
        view = plant.view(self.sources.get(plant.name, {}))
        self.views[plant.name] = view
        named = None if view.alarm is None else (view.alarm.names, view.alarm.onset)
        sources = {name: source.state for name, source in view.sources.items()}
        state = (view.state, severity_now(view), view.acknowledged)
        shown = (*state, view.windows > 0, view.still, view.shelved, view.no_data, named, sources)
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
