"""Bodies of rows are parsed where they hold nobody up: large ones in processes of their own, in fair turns."""

import asyncio
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from weakref import WeakValueDictionary

from eccaht.plants.intake import Rows
from eccaht.service.rows import Busy
from eccaht.service.sources.parsing import Payloads

_SMALL = 65_536  # bytes that a thread parses
_AT_ONCE = 2  # few: what they parse must fit into the memory


class Readers:
    """Parses bodies, of each caller one large one at a time: a caller who sends many waits for itself alone."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="eccaht-rows")
        self._processes: ProcessPoolExecutor | None = None
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def rows(self, payloads: Payloads, body: bytes, who: str) -> Rows:
        loop = asyncio.get_running_loop()
        if len(body) <= _SMALL:
            return await loop.run_in_executor(self._threads, payloads.rows, body)
        turn = self._turns.setdefault(who, asyncio.Lock())
        async with turn:
            if self._processes is None:
                context = multiprocessing.get_context("spawn")
                self._processes = ProcessPoolExecutor(_AT_ONCE, context, initializer=_begin)
            try:
                return await loop.run_in_executor(self._processes, payloads.rows, body)
            except BrokenProcessPool:
                self._processes = None
                raise Busy("the process that reads rows ended: send them again") from None

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._processes is not None:
            self._processes.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    """End with the service, however that ends, and not by a Ctrl-C that is meant for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        wait([parent.sentinel])
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
