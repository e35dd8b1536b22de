"""The thread of the service: jobs are done, stored in one transaction for many, and then published.

Plants take turns, and what is for one plant keeps its order. Nothing is acknowledged or published before it is stored.
If storing fails, the plants of that transaction are built anew from the store, and the senders send their rows again:
those that were stored after all are duplicates. So it is with a plant that another service watches now (`owners.py`).
"""

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
import sqlalchemy as sa

from eccaht.base.clock import microseconds
from eccaht.plants import Event, Model, parse_model
from eccaht.service.rows import Busy, Receipt, SourceState, UnknownPlant
from eccaht.service.runtime.owners import Owners
from eccaht.service.runtime.plant import LivePlant, put_plant
from eccaht.service.runtime.views import (
    Hub,
    PlantView,
    broken_overview,
    event_message,
    overview,
    severity_now,
    window_document,
)
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.store import Store, history, schema
from eccaht.service.store.store import Outgoing, StoredStep, audit_row, last_number, now, upsert, write_steps

COLLECTED = 0.05  # seconds for which jobs are taken into one transaction
LINGER = 0.02  # seconds that a transaction waits for more, where waiting brought some before
FOLLOWED = 0.5  # seconds at most, at each look, for plants that other services watch
_AGAIN = 60.0  # seconds after which to try again what is for a broken plant
_LONGEST_FAULT = 300  # characters
_SHOWN = 500  # windows and events of a plant that another service watches, at one look
_SKIPPED = 64  # the most transactions that do not wait after one that waited in vain
_LOG = logging.getLogger("eccaht.service")


@dataclass(eq=False)
class Job:
    """Work for the thread; group: it returns a step to be stored with those of others, else it stores by itself.

    by_force: the plant is taken from another service that watches it. free: the work makes its own transactions.
    """

    work: Callable[..., Any]
    future: asyncio.Future[Any]
    plant: str | None = None
    group: bool = True
    by_force: bool = False
    free: bool = False


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

    loop: where the futures of the jobs are. views: the plants as they are now, for every thread to read. owners: which
    of them are watched here. moved: is called on the loop with a plant that is watched here from now on, or no longer.
    """

    def __init__(self, store: Store, settings: Settings, hub: Hub, outgoing: Outgoing, owners: Owners) -> None:
        self.store, self.settings, self.hub, self._outgoing, self.owners = store, settings, hub, outgoing, owners
        self.moved: Callable[[str], object] = lambda plant: None  # noqa: ARG005
        self.jobs = Jobs()
        self.views: dict[str, PlantView] = {}
        self.sources: dict[str, dict[str, SourceState]] = {}  # by plant; written on the loop
        self.loop: asyncio.AbstractEventLoop | None = None
        self.counts = {"rows": 0, "windows": 0, "events": 0, "late": 0, "duplicate": 0, "refused": 0, "failed": 0}
        self.failing: float | None = None  # when the store last failed to take rows, if it has taken none since
        self.broken: dict[str, str] = {}  # plants that cannot be built from the store, and why
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
            if job.plant not in self.owners.mine:
                self._claim(job.plant)
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
                lost = self.owners.fence(connection, [step.plant for step in steps])
                steps = [step for step in steps if step.plant not in lost]
                write_steps(connection, steps, self._outgoing)
        except Exception as error:
            _LOG.error("not stored: %s", self._error_line(error), extra={"jobs": len(done)})
            if isinstance(error, sa.exc.SQLAlchemyError):
                self.failing = monotonic()
            self._stale |= {step.plant for _, step, _ in done}
            self._fail([job for job, _, _ in done], self._outside(error))
            return
        self.failing = None
        for plant in lost:
            self._fail([job for job, step, _ in done if step.plant == plant], self.owners.elsewhere(plant))
            self._lose(plant)
        done = [each for each in done if each[1].plant not in lost]
        self._publish(steps)
        for taken in (result for _, _, result in done if isinstance(result, Receipt)):
            for name in ("rows", "late", "duplicate"):
                self.counts[name] += getattr(taken, name)
        self._resolve([(job.future, result, None) for job, _, result in done])

    def _alone(self, job: Job) -> Job | None:
        """Do a job that stores by itself; return the one that follows, None at the end."""
        try:
            result = job.work() if job.free else self._in_transaction(job)
        except Exception as error:
            self._fail([job], self._outside(error))
        else:
            self._resolve([(job.future, result, None)])
        return self.jobs.get(None)

    def _in_transaction(self, job: Job) -> Any:
        if job.plant is None:
            with self.store.begin() as connection:
                return job.work(connection)
        new = job.plant not in self.owners.mine
        with self._owned(job.plant, by_force=job.by_force) as connection:
            result = job.work(connection)
        self._stale.add(job.plant)
        self._refresh(job.plant)
        if new:
            self._tell(job.plant)
        return result

    @contextmanager
    def _owned(self, name: str, *, by_force: bool = False) -> Iterator[sa.Connection]:
        """A transaction in which the plant is this service's; it is none afterwards if the transaction fails."""
        new = name not in self.owners.mine
        try:
            with self.store.begin() as connection:
                if by_force:
                    self.owners.take(connection, name, by_force=True)
                else:
                    self.owners.claim(connection, name)
                yield connection
        except Exception:
            if new:
                self.owners.forget(name)
                self.owners.look_again(name)
            raise

    def put(self, connection: sa.Connection, name: str, digest: str, options: PlantOptions, who: str) -> list[Event]:
        """Make a plant or change it, see `put_plant`; return what that ends, as events."""
        try:
            old = self._read(connection, name)
        except (UnknownPlant, ValueError):  # what cannot be read is made anew
            old = None
        model = self.model(connection, digest)
        step = put_plant(connection, name, model, digest, options, old, self.settings.limits.pending)
        shown = {"model": digest, "options": options.model_dump(mode="json")}
        step.audit = audit_row(who, "plant", name, shown)
        write_steps(connection, [step], self._outgoing)
        return step.events

    def model(self, connection: sa.Connection, digest: str) -> Model:
        if digest not in self._models:
            models = schema.models.c
            found = connection.execute(sa.select(models.content, models.name).where(models.digest == digest)).first()
            if found is None:
                raise LookupError(f"there is no model {digest[:12]!r}: upload it first")
            self._models[digest] = parse_model(found.content, found.name)
        return self._models[digest]

    def _plant(self, name: str) -> LivePlant:
        """A plant, as the store has it if the last attempt to store it failed."""
        if name in self._stale or (name not in self._plants and name not in self.broken):
            self._refresh(name)
        if name in self.broken:
            raise Busy(f"plant {name} cannot be watched: {self.broken[name]}", _AGAIN, broken=True)
        if name not in self._plants:
            raise UnknownPlant(name)
        return self._plants[name]

    def _read(self, connection: sa.Connection, name: str) -> LivePlant:
        row = connection.execute(sa.select(schema.plants).where(schema.plants.c.name == name)).one_or_none()
        if row is None:
            raise UnknownPlant(name)
        plant = LivePlant.load(connection, row, self.model(connection, row.digest), self.settings.limits.pending)
        if name not in self.owners.mine:
            plant.hearing.heard = None  # its rows go to another service
        elif (before := self._plants.get(name)) is not None and before.hearing.heard is not None:
            plant.hearing.heard = before.hearing.heard
        return plant

    def _refresh(self, name: str) -> None:
        """Build a plant anew from the store; one that cannot be built stays, as broken."""
        with self.store.read() as connection:
            try:
                plant: LivePlant | None = self._read(connection, name)
                fault = ""
            except UnknownPlant:
                plant, fault = None, ""
            except (ValueError, LookupError) as error:
                plant, fault = None, " ".join(str(error).split())[:_LONGEST_FAULT]
        self._stale.discard(name)
        if plant is not None:
            self._plants[name] = plant
            self.broken.pop(name, None)
            if plant.damage and name in self.owners.mine:
                _LOG.error("plant %s: %s", name, plant.damage)
                self._write(plant.mended())
            self.hub.publish_soon(self._looked(plant))
            return
        for known in (self._plants, self.views, self._published):
            known.pop(name, None)
        if fault:
            self._break(name, fault)
        else:
            self.broken.pop(name, None)
            self.owners.forget(name)
            self.owners.look_again(name)
            self.hub.publish_soon([("plants", name, {"name": name, "removed": True})])

    def _break(self, name: str, fault: str) -> None:
        """A plant cannot be watched: it is shown as broken, and its owner sends an alert, once."""
        known, self.broken[name] = self.broken.get(name), fault
        if known == fault:
            return
        _LOG.error("plant %s cannot be watched: %s", name, fault)
        self.hub.publish_soon([("plants", name, broken_overview(name, fault))])
        if name not in self.owners.mine:
            return
        text, moment = f"no data: {fault}", now()
        with self.store.read() as connection:
            number = last_number(connection, name)
            told = history.event(connection, name, number)
        if told is None or told[0]["text"] != text:
            event = Event("no-data", str(np.datetime64(moment, "us")), text, number + 1, notice="no-data")
            self._write(StoredStep(name, events=[event], times=[moment]))

    def _write(self, step: StoredStep) -> None:
        """Store a step that no job asked for."""
        with self.store.begin() as connection:
            if not self.owners.fence(connection, [step.plant]):
                write_steps(connection, [step], self._outgoing)

    def silent(self) -> list[str]:
        """Plants for which no rows have come for long, which has not been reported."""
        mine = self.owners.mine.copy()
        return [name for name, plant in self._plants.copy().items() if name in mine and plant.hearing.is_silent]

    def load_all(self) -> None:
        """Read all plants from the store, and begin to watch those that nobody watches."""
        self.store.prepare()
        with self.store.begin() as connection:
            self.owners.begin(connection, alone=self.store.is_sqlite)
            self.owners.look(connection)
            names = list(connection.execute(sa.select(schema.plants.c.name)).scalars())
        for name in names:
            self._refresh(name)

    def look(self) -> None:
        """See what other services do: take plants that nobody watches, let go of some, and show those of others."""
        with self.store.begin() as connection:
            looked = self.owners.look(connection)
        for name in looked.lost:
            self._lose(name)
        for name in looked.won:
            self._refresh(name)
            self._tell(name)
        for name in looked.surplus:
            self.release(name)
        end = monotonic() + FOLLOWED
        for name in looked.lost + looked.moved:
            if monotonic() < end:
                self._follow(name)
            else:
                self.owners.look_again(name)

    def release(self, name: str) -> None:
        """Let another service watch a plant, which goes on from what is stored now."""
        plant = None if name in self._stale else self._plants.get(name)
        with self.store.begin() as connection:
            if not self.owners.fence(connection, [name]):
                if plant is not None and not plant.is_kept:
                    upsert(connection, schema.checkpoints, [plant.checkpoint()])
                self.owners.release(connection, name)
        self._lose(name)

    def keep_all(self) -> None:
        """A checkpoint of every plant that is as the store has it; other services may watch them from now on."""
        for name in list(self.owners.mine):
            try:
                self.release(name)
            except sa.exc.SQLAlchemyError as error:
                _LOG.error("no checkpoint of %s: %s", name, self._error_line(error))
        with suppress(sa.exc.SQLAlchemyError), self.store.begin() as connection:
            self.owners.end(connection)

    def _claim(self, name: str) -> None:
        """Watch a plant that nobody watches, or refuse it."""
        with self._owned(name) as connection:
            if connection.execute(sa.select(schema.plants.c.name).where(schema.plants.c.name == name)).first() is None:
                raise UnknownPlant(name)
        self._stale.add(name)
        self._tell(name)

    def _lose(self, name: str) -> None:
        """The plant is not watched here any more."""
        self.owners.forget(name)
        self.owners.look_again(name)
        self._stale.add(name)
        self._tell(name)

    def _tell(self, name: str) -> None:
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.moved, name)

    def _follow(self, name: str) -> None:
        """Show what another service has stored of a plant since."""
        before = self._plants.get(name)
        self._refresh(name)
        plant = self._plants.get(name)
        if before is None or plant is None or before.era != plant.era or before.session.position is None:
            return
        windows, events = schema.windows, schema.events.c
        newer = (windows.c.plant == name) & (windows.c.start > microseconds(before.session.position))
        with self.store.read() as connection:
            rows = connection.execute(sa.select(windows).where(newer).order_by(windows.c.start).limit(_SHOWN)).all()
            more = sa.select(events.document).where(events.plant == name, events.number > before.session.number)
            documents = connection.execute(more.order_by(events.number).limit(_SHOWN)).scalars().all()
        messages = [("window", name, window_document(dict(row._mapping), plant.clock)) for row in rows]
        self.hub.publish_soon(messages + [("event", name, {"plant": name, "document": each}) for each in documents])

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
        view = self._watched(plant.view(self.sources.get(plant.name, {})))
        self.views[plant.name] = view
        named = None if view.alarm is None else (view.alarm.names, view.alarm.onset)
        sources = {name: source.state for name, source in view.sources.items()}
        state = (view.state, severity_now(view), view.acknowledged)
        shown = (*state, view.windows > 0, view.still, view.shelved, view.no_data, view.watched_by, named, sources)
        if self._published.get(plant.name) == shown:
            return []
        self._published[plant.name] = shown
        return [("plants", plant.name, overview(view))]

    def _watched(self, view: PlantView) -> PlantView:
        """A view with who watches the plant."""
        if (service := self.owners.service_of(view.name)) is None:
            return replace(view, no_data=view.no_data or "no service watches it: start one, or wait for another")
        return replace(view, watched_by=service)

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
