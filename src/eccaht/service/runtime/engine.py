"""Async front of the worker thread: submits jobs and awaits their commit."""

import asyncio
import hashlib
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any

import sqlalchemy as sa

from eccaht.plants import Event, Model, parse_model
from eccaht.plants.intake import Rows
from eccaht.service.rows import Busy, Receipt, SourceState, UnknownPlant
from eccaht.service.runtime import owners, tidying
from eccaht.service.runtime.owners import Owners
from eccaht.service.runtime.plant import READ_BY, LivePlant, planned_for
from eccaht.service.runtime.views import Hub, PlantView, event_message, source_document
from eccaht.service.runtime.worker import Job, Worker
from eccaht.service.settings import PlantOptions, Settings
from eccaht.service.sources import Target
from eccaht.service.store import Store, schema
from eccaht.service.store.store import (
    Outgoing,
    StoredStep,
    add_model,
    audit_row,
    insert,
    now,
    record,
    remove_plant,
    upsert,
)

_LOG = logging.getLogger("eccaht.service")
_EVERYWHERE = ("", "0.0.0.0", "::")  # addresses of a socket that listens on all of them
_SOURCES = 2.0  # seconds between messages of a source whose state stays
LISTENED = 5.0  # seconds between looks at which plants no rows come for
_MORE = 100  # orders and the like that may wait beside the deliveries


def identity(settings: Settings, port: int) -> tuple[str, str]:
    """The name of the service among those of its store, which the next program here has too, and its address."""
    host = settings.listen.host
    here = socket.gethostname()
    reached = here if host in _EVERYWHERE else host
    shown = f"[{reached}]" if ":" in reached else reached
    return f"{here}:{port}", settings.listen.address or f"http://{shown}:{port}"


class Runtime:
    """Takes rows, orders and plants; its methods are called on the loop that called `start`."""

    def __init__(
        self, store: Store, settings: Settings, *, hub: Hub | None = None, outgoing: Outgoing = lambda *_: ()
    ) -> None:
        self.store, self.settings = store, settings
        self.hub = hub or Hub(settings.limits.clients)
        self.worker = Worker(store, settings, self.hub, outgoing, Owners(*identity(settings, settings.listen.port)))
        self.waiting = 0  # deliveries and orders that are not stored yet
        self._targets: dict[str, tuple[Model, Target]] = {}
        self._published_sources: dict[tuple[str, str], float] = {}  # when
        self._thread: threading.Thread | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def name(self) -> str:
        """Of the service, among those of its store."""
        return self.worker.owners.name

    @property
    def counts(self) -> dict[str, int]:
        """How many rows, windows and events there were since the start."""
        return self.worker.counts

    async def start(self) -> None:
        """Read all plants from the store and begin."""
        self.worker.loop = asyncio.get_running_loop()
        self.hub.start()
        await asyncio.to_thread(self.worker.load_all)
        self._thread = threading.Thread(target=self.worker.run, name="eccaht-engine", daemon=True)
        self._thread.start()
        keeping = tidying.keep(self.store, self.settings.retention, self.worker.views.copy)
        self._tasks = [asyncio.create_task(each) for each in (keeping, self._listen(), self._look())]

    async def stop(self) -> None:
        """Do what waits, write a checkpoint of each plant and end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._thread is not None:
            self.worker.jobs.end()
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        self.hub.close()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def most_rows(self) -> int:
        """How many rows may be submitted at once."""
        return self.settings.limits.rows

    @property
    def broken(self) -> dict[str, str]:
        """Plants that cannot be watched, and why."""
        return self.worker.broken.copy()

    async def submit(self, plant: str, rows: Rows, *, source: str, position: dict[str, Any] | None = None) -> Receipt:
        """Take rows; returns once everything is stored: only then a source may acknowledge them.

        position: where the source goes on after these rows, stored with them.
        """
        if len(rows.times) > self.settings.limits.rows:
            raise ValueError(f"{len(rows.times)} rows at once are too many: send at most {self.settings.limits.rows}")

        def work(found: LivePlant) -> tuple[StoredStep, Receipt]:
            step, taken = found.take(rows)
            if position is not None:
                step.position = {"plant": plant, "source": source, "document": position}
            return step, taken

        self.check(plant)
        self._has_room(plant)
        taken: Receipt = await self._do(work, plant)
        return taken

    async def position(self, plant: str, source: str) -> dict[str, Any] | None:
        """Where a source goes on, None if it never reported a place."""
        known = schema.positions

        def read() -> Any:
            with self.store.read() as connection:
                place = (known.c.plant == plant) & (known.c.source == source)
                return connection.execute(sa.select(known.c.document).where(place)).scalar()

        return await asyncio.to_thread(read)

    async def set_position(self, plant: str, source: str, document: dict[str, Any]) -> None:
        """Keep where a source goes on, apart from any rows."""

        def work(connection: sa.Connection) -> None:
            upsert(connection, schema.positions, [{"plant": plant, "source": source, "document": document}])

        self.check(plant)
        await self._do(work, None, group=False)

    async def take_over(self, plant: str) -> None:
        """Watch a plant from now on that another service watched: go on from what the store has."""
        self.check(plant)
        pinned = self.worker.owners.pinned
        await self._do(lambda connection: pinned.add(plant), plant, group=False, by_force=True)  # noqa: ARG005

    async def hand_over(self, plant: str) -> None:
        """Another service may watch the plant: write its checkpoint, so that it goes on at once."""

        def work(found: LivePlant) -> tuple[StoredStep, None]:
            self.worker.owners.pinned.discard(plant)
            return StoredStep(plant, checkpoint=found.checkpoint()), None

        self.check(plant)
        with suppress(owners.Elsewhere):  # another one has it already
            await self._do(work, plant)

    async def order(self, plant: str, text: str, who: str) -> list[Event]:
        """Obey an operator: 'acknowledge', 'shelve NAME 2h', 'unshelve NAME', 'normal' or 'restore'."""

        def work(found: LivePlant) -> tuple[StoredStep, list[Event]]:
            step = found.order(text)
            numbers = [event.number for event in step.events]
            step.audit = audit_row(who, "order", plant, {"order": text, "events": numbers})
            return step, step.events

        self.check(plant)
        events: list[Event] = await self._do(work, plant)
        return events

    async def comment(self, plant: str, number: int, text: str, who: str) -> None:

        def work(connection: sa.Connection) -> None:
            place = (schema.events.c.plant == plant) & (schema.events.c.number == number)
            if connection.execute(sa.select(schema.events.c.number).where(place)).first() is None:
                raise LookupError(f"plant {plant} has no event {number}")
            row = {"plant": plant, "number": number, "at": now(), "who": who, "text": text}
            insert(connection, schema.comments, [row])
            record(connection, who, "comment", plant, {"number": number, "text": text})

        self.check(plant)
        await self._do(work, None, group=False)
        self.hub.publish([("comment", plant, {"plant": plant, "number": number, "who": who, "text": text})])

    async def keep_check(self, plant: str, document: dict[str, Any], who: str) -> None:
        """Keep a reading by hand, as `past.check_document` gives it."""
        await self._do(lambda connection: record(connection, who, "check", plant, document), None, group=False)
        self.hub.publish([("comment", plant, {"plant": plant, "who": who, "text": document["order"]} | document)])

    async def add_model(self, content: bytes, name: str, who: str) -> tuple[str, int]:
        """Keep a model, which is checked as an untrusted file; return its digest and how many sensors it has."""
        digest = hashlib.sha256(content).hexdigest()
        model = await asyncio.to_thread(parse_model, content, name)
        await asyncio.to_thread(LivePlant.session_for, model, digest, PlantOptions())

        def work(connection: sa.Connection) -> None:
            if add_model(connection, digest, name, content, who):
                record(connection, who, "model", None, {"digest": digest, "name": name})

        await self._do(work, None, group=False)
        return digest, len(model.names)

    async def put_plant(
        self, name: str, model_digest: str, options: PlantOptions, who: str, *, by_force: bool = False
    ) -> None:
        """Make a plant, or change its model or options; events keep their numbers, a new model begins a new era.

        Rows that wait come along; what is open with the model before ends. by_force: take it from another service.
        """
        if name not in self.worker.views and len(self.worker.views) >= self.settings.limits.plants:
            raise ValueError(f"there are {len(self.worker.views)} plants, as many as limits.plants allows")
        if options.readings is not None and not self._is_read_so(name, model_digest, options):
            model = await self._do(lambda connection: self.worker.model(connection, model_digest), None, group=False)
            await asyncio.to_thread(planned_for, model, options)  # which would hold up the plants
        ended: list[Event] = await self._do(
            lambda connection: self.worker.put(connection, name, model_digest, options, who),
            name,
            group=False,
            by_force=by_force,
        )
        self.hub.publish([event_message(name, event) for event in ended])

    def _is_read_so(self, name: str, digest: str, options: PlantOptions) -> bool:
        """Whether the plant is watched with this model and these readings already."""
        view = self.worker.views.get(name)
        if view is None or view.model_digest != digest:
            return False
        return all(getattr(view.options, each) == getattr(options, each) for each in READ_BY)

    async def remove_plant(self, name: str, who: str) -> None:
        if name not in self.worker.broken:
            self.check(name)

        def work(connection: sa.Connection) -> None:
            remove_plant(connection, name)
            record(connection, who, "remove", name, {})

        await self._do(work, name, group=False)
        self.worker.sources.pop(name, None)
        self._published_sources = {place: at for place, at in self._published_sources.items() if place[0] != name}

    def views(self) -> dict[str, PlantView]:
        return {name: self._with_sources(view) for name, view in self.worker.views.copy().items()}

    def view(self, plant: str) -> PlantView:
        return self._with_sources(self.check(plant))

    def check(self, plant: str) -> PlantView:
        """The same without its sources, which costs less; a plant that is unknown is refused."""
        if (found := self.worker.views.get(plant)) is None:
            if (fault := self.worker.broken.get(plant)) is not None:
                raise Busy(f"plant {plant} cannot be watched: {fault}", 60.0, broken=True)
            raise UnknownPlant(plant)
        return found

    def check_own(self, plant: str) -> None:
        """Refuse a plant that another service watches."""
        self.check(plant)
        if not self.owns(plant):
            raise self.worker.owners.elsewhere(plant)

    def target(self, plant: str) -> Target:
        """What a source has to know of a plant; the same object until the plant has another model."""
        model = self.check(plant).model
        known = self._targets.get(plant)
        if known is None or known[0] is not model:
            known = self._targets[plant] = (model, Target.of(plant, model))
        return known[1]

    def source_state(self, plant: str, source: str, state: SourceState) -> None:
        known = self.worker.sources.get(plant, {})
        before = known.get(source)
        self.worker.sources[plant] = {**known, source: state}
        published, at = self._published_sources.get((plant, source)), monotonic()
        new = before is None or (before.state, before.rows > 0) != (state.state, state.rows > 0)
        if new or published is None or at - published >= _SOURCES:
            self._published_sources[plant, source] = at
            self.hub.publish([("source", plant, {"plant": plant, "source": source, "state": source_document(state)})])

    def _with_sources(self, view: PlantView) -> PlantView:
        return replace(view, sources=self.worker.sources.get(view.name, {}))

    def _has_room(self, plant: str) -> None:
        """Refuse a delivery for now if too many wait: of all plants, or half as many of this one alone."""
        most = self.settings.limits.waiting
        if self.waiting >= most or self.worker.jobs.of(plant) >= max(most // 2, 1):
            self.counts["refused"] += 1
            raise Busy(f"{self.waiting} deliveries wait to be stored")

    async def _listen(self) -> None:
        """Report plants for which no rows come any more."""
        while True:
            await asyncio.sleep(LISTENED)
            for plant in self.worker.silent():
                try:
                    await self._do(lambda found: (found.listen(), None), plant)
                except Exception as error:  # the next look may succeed
                    _LOG.warning("plant %s, for which no rows come: %s", plant, error)

    async def _look(self) -> None:
        """See what other services on the store do."""
        while True:
            await asyncio.sleep(owners.BEAT)
            try:
                await self._do(self.worker.look, None, group=False, free=True)
            except Exception as error:  # the next look may succeed
                _LOG.warning("what other services do is not known: %s", error)

    def on_moved(self, call: Callable[[str], object]) -> None:
        """Call this, on the loop, with each plant that this service watches from now on, or no longer."""
        self.worker.moved = call

    def owns(self, plant: str) -> bool:
        """Whether this service watches the plant."""
        return plant in self.worker.owners.mine

    async def _do(
        self,
        work: Callable[..., Any],
        plant: str | None,
        *,
        group: bool = True,
        by_force: bool = False,
        free: bool = False,
    ) -> Any:
        """Have the thread do something, and wait until it is stored."""
        if not self.alive or self.worker.loop is None:
            raise Busy("the service is starting or stopping", broken=True)
        if self.waiting >= self.settings.limits.waiting + _MORE:
            raise Busy(f"{self.waiting} deliveries and orders wait to be stored")
        future = self.worker.loop.create_future()
        self.waiting += 1
        future.add_done_callback(self._done)
        self.worker.jobs.put(Job(work, future, plant, group, by_force, free))
        return await asyncio.shield(future)

    def _done(self, future: asyncio.Future[Any]) -> None:
        self.waiting -= 1
        if not future.cancelled():
            future.exception()  # the caller may have stopped waiting for it
