"""What waits for the service's thread: plants take turns, and what is for one plant keeps its order."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any


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

    def get(self, timeout: float = 0.0) -> Job | None:
        """The next job, None at the end; queue.Empty if there is none for so many seconds."""
        until = monotonic() + timeout
        with self._changed:
            while not self._waiting:
                if self._ended:
                    return None
                if (left := until - monotonic()) <= 0.0 or not self._changed.wait(left):
                    raise queue.Empty
            plant = next(iter(self._waiting))
            mine = self._waiting.pop(plant)
            job = mine.popleft()
            if mine:
                self._waiting[plant] = mine  # its next turn is after all others
            return job

    def of(self, plant: str | None) -> int:
        return len(self._waiting.get(plant, ()))
