"""How often a client may ask: token buckets, one a key, in bounded memory."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock


class Rates:
    """A bucket for each key that holds `burst` requests and fills at `rate` a second.

    Beyond `most` keys the one unused for longest is forgotten, which gives it a full bucket.

    >>> now = [0.0]
    >>> rates = Rates(rate=2.0, burst=2.0, clock=lambda: now[0])
    >>> rates.take("a"), rates.take("a"), rates.take("a"), rates.take("b")
    (0.0, 0.0, 0.5, 0.0)
    >>> now[0] = 0.5
    >>> rates.take("a")
    0.0
    """

    def __init__(
        self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic, most: int = 10_000
    ) -> None:
        if not (rate > 0 and burst >= 1):
            raise ValueError(f"a rate of {rate} a second with a burst of {burst} lets no request in: raise both")
        self._rate, self._burst, self._clock, self._most = rate, burst, clock, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when it was counted
        self._lock = Lock()

    def take(self, key: str) -> float:
        """Count a request and return 0, or return the seconds until there is room for it."""
        with self._lock:
            now = self._clock()
            left, counted = self._buckets.get(key, (self._burst, now))
            left = min(self._burst, left + (now - counted) * self._rate)
            allowed = left >= 1.0
            self._buckets[key] = (left - 1.0 if allowed else left, now)
            self._buckets.move_to_end(key)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
            return 0.0 if allowed else (1.0 - left) / self._rate


def retry_after(seconds: float) -> dict[str, str]:
    """The header that says when to come back, in whole seconds."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def network(address: str) -> str:
    """The key of an address: of IPv6 the 64 bits that one customer of a provider has.

    >>> network("10.0.0.7"), network("2001:db8::1:2:3:4"), network("testclient")
    ('10.0.0.7', '2001:db8::/64', 'testclient')
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, 64), strict=False))
