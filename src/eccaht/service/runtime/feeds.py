"""The sources of all plants, each a task that runs until it is ended."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from eccaht.plants import Model
from eccaht.service.rows import SourceState
from eccaht.service.runtime.engine import Runtime
from eccaht.service.sources import Feed, Sink, Target, make_feed, read_settings
from eccaht.service.sources.settings import SourceDocument

_LOG = logging.getLogger("eccaht.service")
_SEVERAL = ""  # in the place of a plant: sources of several


def feed_of(name: str, settings: dict[str, Any], plant: str, model: Model, sink: Sink) -> Feed:
    """The feed of a source of a plant; settings that are wrong are a ValueError."""
    return make_feed(name, read_settings(settings, name), Target.of(plant, model), sink)


class Feeds:
    """Starts and ends the sources of plants."""

    def __init__(self, engine: Runtime) -> None:
        self._engine = engine
        self._moving: set[asyncio.Task[None]] = set()
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}

    async def check(self, sources: Mapping[str, SourceDocument]) -> None:
        """Refuse sources whose settings are wrong, before anything changes."""
        for name, settings in sources.items():
            read_settings(settings.get_secret_value(), name)

    async def start(self) -> None:
        """Start the sources of several plants, and those of each."""
        for name, settings in self._engine.settings.sources.items():
            feed = make_feed(name, read_settings(settings.get_secret_value(), name), self._engine.target, self._engine)
            self._tasks.setdefault(_SEVERAL, []).append(asyncio.create_task(feed.run(), name=name))
        self._engine.on_moved(self._moved)
        for plant in self._engine.views():
            await self.renew(plant)

    def _moved(self, plant: str) -> None:
        """Start the sources of a plant that this service watches now, or end those of one that it does not."""
        if self._engine.owns(plant) != (plant in self._tasks):
            task = asyncio.create_task(self.renew(plant), name=f"sources of {plant}")
            self._moving.add(task)
            task.add_done_callback(self._moving.discard)

    async def renew(self, plant: str) -> None:
        """Start the sources of a plant, in place of those that run; one that cannot start is shown as broken.

        Those of a plant that another service watches run there.
        """
        await self.end(plant)
        if not self._engine.owns(plant):
            return
        view = self._engine.view(plant)
        for name, settings in view.options.sources.items():
            try:
                feed = feed_of(name, settings.get_secret_value(), plant, view.model, self._engine)
            except (ValueError, OSError) as error:  # OSError: a file of certificates
                _LOG.error("plant %s: %s", plant, error)
                self._engine.source_state(plant, name, SourceState("broken", datetime.now(UTC), str(error)))
                continue
            self._tasks.setdefault(plant, []).append(asyncio.create_task(feed.run(), name=f"{plant} {name}"))

    async def end(self, plant: str) -> None:
        """End the sources of a plant.

        They are cancelled until they end: asyncio.wait_for of Python 3.11, which clients use, loses a cancellation that
        comes in the moment in which what it waits for is done.
        """
        waiting = set(self._tasks.pop(plant, []))
        while waiting:
            for task in waiting:
                task.cancel()
            _, waiting = await asyncio.wait(waiting, timeout=1.0)

    async def stop(self) -> None:
        self._engine.on_moved(lambda plant: None)  # noqa: ARG005
        await asyncio.gather(*self._moving)
        for plant in list(self._tasks):
            await self.end(plant)
