"""Single sign-on: a proxy in front of the service says in a header who the user is.

Whoever can set that header can pose as any user. So it is trusted only from the proxy's own addresses, once in a
request, for users that the settings name; everything else is refused, even beside a valid token.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eccaht.service.security import scopes

_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_USER = re.compile(r"[^\x00-\x20\x7f,][^\x00-\x1f\x7f,]{0,127}")

Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


class ProxyRefused(Exception):
    """The header of a proxy, or of a client that poses as one, is refused; the message gives the reason."""


@dataclass(frozen=True)
class Proxy:
    """The header, the networks that proxies have, and what each user may do."""

    header: str
    networks: Networks
    users: Mapping[str, tuple[str, ...]]

    def user(self, values: Sequence[str], address: str) -> tuple[str, tuple[str, ...]] | None:
        """The user and the scopes, None if the request has no such header.

        values: of every header of that name. address: of the peer, never what a header says of it.
        """
        if not values:
            return None
        if not includes(self.networks, address):
            raise ProxyRefused(f"the header {self.header} is only believed from the proxy")
        if len(values) > 1 or _USER.fullmatch(values[0]) is None:
            raise ProxyRefused(f"the header {self.header} must name one user once")
        granted = self.users.get(values[0])
        if granted is None:
            raise ProxyRefused("this user has no scope here: add the user to the settings of the proxy")
        return values[0], granted


def includes(networks: Networks, address: str) -> bool:
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(known, "ipv4_mapped", None)
    return any((mapped or known) in network for network in networks)


def networks_of(addresses: Iterable[str]) -> Networks:
    try:
        networks = tuple(ipaddress.ip_network(address) for address in addresses)
    except ValueError as error:
        raise ValueError(f"address of the proxy: {error}; write it as 10.0.0.5 or 10.0.0.0/24") from None
    if any(network.prefixlen == 0 for network in networks):
        raise ValueError("a proxy that may have every address would let every client in: give its own addresses")
    return networks


def make(header: str, addresses: Iterable[str], users: Mapping[str, Iterable[str]]) -> Proxy:
    """A proxy from the settings; what leaves a gap is refused before the service starts."""
    if _HEADER.fullmatch(header) is None:
        raise ValueError(f"{header!r} is not the name of a header: write it as X-Forwarded-User")
    if header.lower() in ("authorization", "cookie", "host"):
        raise ValueError(f"the header {header} has another meaning: let the proxy use one of its own")
    networks = networks_of(addresses)
    if not networks:
        raise ValueError(f"from which addresses is the header {header} believed? Give those of the proxy")
    if not users:
        raise ValueError(f"who comes by the header {header}? Give each user's scopes")
    return Proxy(header, networks, {user: scopes.checked(granted) for user, granted in users.items()})
