"""Measurements under way at once: threads that read, and their results in the order in which they come."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Generic, NamedTuple, TypeVar

from eccaht.base.arrays import Array

T = TypeVar("T")


class Done(NamedTuple, Generic[T]):
    """A measurement that was read, and what came of it; `result()` raises what the reading raised."""

    weights: Array
    result: Callable[[], T]


class Workers(Generic[T]):
    """Calls `read` in threads.

    >>> with Workers(lambda c: 2 * c, count=2) as workers:
    ...     workers.begin(3)
    ...     workers.next().result(), workers.busy
    (6, 0)
    """

    def __init__(self, read: Callable[[Array], T], count: int) -> None:
        self._read, self._done = read, SimpleQueue[tuple[Array, "Future[T]"]]()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="measure")
        self.busy = 0  # measurements that have begun and whose results were not taken

    def __enter__(self) -> Workers[T]:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the measurements that are being made; those that have not begun are dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def begin(self, weights: Array) -> None:
        """Read this measurement as soon as a thread is free."""
        self.busy += 1
        future = self._pool.submit(self._read, weights)
        future.add_done_callback(lambda done: self._done.put((weights, done)))

    def next(self) -> Done[T]:
        weights, future = self._done.get()
        self.busy -= 1
        return Done(weights, future.result)
