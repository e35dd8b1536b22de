"""Calls that block, one after the other in a thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class OneThread:
    """A thread for the calls of one connection, which are never made at once."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def finish(self, function: Callable[[], object]) -> None:
        """A last call, after the present one, which is waited for even if the caller is cancelled."""
        last = asyncio.get_running_loop().run_in_executor(self._pool, function)
        self._pool.shutdown(wait=False)
        await asyncio.shield(last)
