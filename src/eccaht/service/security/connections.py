"""How many connections there may be, and whose: some are always left for addresses that hold few."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from eccaht.service.security.fence import network

_LOG = logging.getLogger("eccaht.service")
_QUIET = 10.0  # seconds between two lines of the log
_FEW = 8  # connections of an address that finds room where others no longer do: about as many as a browser opens
_SHARE = 10  # one of so many connections is kept for them


class Connection(Protocol):
    """What can be ended to make room."""

    def evict(self) -> None:
        """End at once."""


@dataclass(eq=False)
class _Address:
    proxy: bool
    open: int = 0
    waiting: dict[Connection, None] = field(default_factory=dict)


class Connections:
    """All connections of a service; most: in all, each: of one address, but for proxies, which stand for many.

    Where there is no room for a new one, the one goes that has waited longest for its client to send or finish a
    request: in a flood of unfinished ones a request that comes at once is still answered. If none waits, the new one
    is refused.
    """

    def __init__(self, most: int, each: int, is_proxy: Callable[[str], bool] = lambda _: False) -> None:
        self._most, self._each, self._is_proxy = most, each, is_proxy
        self._addresses: dict[str, _Address] = {}
        self._whose: dict[Connection, str] = {}
        self._waiting: dict[Connection, None] = {}  # those that wait for their client, by since when
        self._closed: Counter[str] = Counter()  # why, since the last line of the log
        self._last = ""
        self._quiet: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._whose)

    def admit(self, connection: Connection, peer: str) -> bool:
        """Count a new connection, or say that there is no room for it."""
        proxy = self._is_proxy(peer)
        key = peer if proxy else network(peer)
        address = self._addresses.get(key) or _Address(proxy)
        if not self._has_room(address, peer):
            return False
        self._addresses[key] = address
        self._whose[connection] = key
        address.open += 1
        return True

    def waits(self, connection: Connection, waiting: bool) -> None:
        """A connection waits for its client, or no longer does; it keeps its turn while it goes on waiting."""
        key = self._whose.get(connection)
        if key is None:
            return
        for group in (self._waiting, self._addresses[key].waiting):
            if waiting:
                group.setdefault(connection)
            else:
                group.pop(connection, None)

    def leave(self, connection: Connection) -> None:
        key = self._whose.get(connection)
        if key is None:
            return
        self.waits(connection, False)
        del self._whose[connection]
        address = self._addresses[key]
        address.open -= 1
        if not address.open:
            del self._addresses[key]

    def report(self, why: str, peer: str) -> None:
        """Say in the log that a connection was closed: the first one at once, those that follow together."""
        self._closed[why] += 1
        self._last = peer
        if self._quiet is None:
            self._say()

    def _has_room(self, address: _Address, peer: str) -> bool:
        if not address.proxy and address.open >= self._each:
            return self._made_room(address.waiting, "too many of one address", peer)
        spared = 0 if address.proxy or address.open < _FEW else self._most // _SHARE
        if len(self) >= self._most - spared:
            return self._made_room(self._waiting, "too many", peer)
        return True

    def _made_room(self, waiting: dict[Connection, None], why: str, peer: str) -> bool:
        self.report(why, peer)
        oldest = next(iter(waiting), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.evict()
        return True

    def _say(self) -> None:
        self._quiet = None
        if not self._closed:
            return
        reasons = ", ".join(f"{why} {count}" for why, count in self._closed.items())
        _LOG.warning(
            "connections closed without an answer: %d (%s), the last for %s; %d are open",
            self._closed.total(),
            reasons,
            self._last,
            len(self),
        )
        self._closed.clear()
        self._quiet = asyncio.get_running_loop().call_later(_QUIET, self._say)
