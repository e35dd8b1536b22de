"""The settings of security; with single sign-on, a proxy in front of the service names the user in a header.

Whoever can set that header can pose as any user. So it is trusted only from the proxy's own addresses, once in a
request, for users that the settings name; everything else is refused, even beside a valid token.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal, get_args

from pydantic import Field, field_validator, model_validator

from eccaht.base.presentation.text import did_you_mean
from eccaht.service.parts import Part, Seconds

Scope = Literal["read", "operate", "ingest", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
INCLUDED: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "operate": frozenset({"read", "operate"}),
    "ingest": frozenset({"ingest"}),
    "admin": frozenset(SCOPES),
}
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_USER = re.compile(r"[^\x00-\x20\x7f,][^\x00-\x1f\x7f,]{0,127}")


def checked_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Scopes in their usual order, each once; unknown ones and none at all are refused.

    >>> checked_scopes(["operate", "read", "read"])
    ('read', 'operate')
    """
    given = set(scopes)
    for scope in sorted(given - {*SCOPES}):
        instead = did_you_mean(scope, SCOPES, otherwise=f": scopes are {', '.join(SCOPES)}")
        raise ValueError(f"there is no scope {scope!r}{instead}")
    if not given:
        raise ValueError(f"a token without a scope opens nothing: give one or more of {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in given)


Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


class ProxyRefused(Exception):
    """The header of a proxy, or of a client that poses as one, is refused; the message gives the reason."""


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


class ProxySettings(Part):
    """Single sign-on by a proxy in front of the service."""

    header: str = Field(description="the header in which the proxy names the user, as X-Forwarded-User")
    addresses: list[str] = Field(description="addresses or networks of the proxy; the header of others is refused")
    users: dict[str, list[Scope]] = Field(description="what each user may do; others are refused")

    @model_validator(mode="after")
    def _usable(self) -> ProxySettings:
        """Refuse what leaves a gap before the service starts."""
        if _HEADER.fullmatch(self.header) is None:
            raise ValueError(f"{self.header!r} is not the name of a header: write it as X-Forwarded-User")
        if self.header.lower() in ("authorization", "cookie", "host"):
            raise ValueError(f"the header {self.header} has another meaning: let the proxy use one of its own")
        if not self.networks:
            raise ValueError(f"from which addresses is the header {self.header} believed? Give those of the proxy")
        if not self.users:
            raise ValueError(f"who comes by the header {self.header}? Give each user's scopes")
        for granted in self.users.values():
            checked_scopes(granted)
        return self

    @cached_property
    def networks(self) -> Networks:
        return networks_of(self.addresses)

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
        return values[0], checked_scopes(granted)


class Security(Part):
    """Who may do what, and how often."""

    session: Seconds = Field(43200.0, description="how long a login of the page lasts")
    rate: float = Field(200.0, gt=0, description="requests a second of one token")
    burst: float = Field(400.0, ge=1, description="requests of one token at once")
    address_rate: float = Field(50.0, gt=0, description="requests a second of one address without a valid token")
    address_burst: float = Field(200.0, ge=1, description="requests of one address at once without a valid token")
    logins: float = Field(10.0, gt=0, description="wrong logins a minute of one address")
    head_time: Seconds = Field(10.0, description="how long the head of a request may take to arrive")
    body_time: Seconds = Field(60.0, description="how long a body may take to arrive")
    other_body: int = Field(64_000, ge=1000, description="bytes of a body that holds neither rows nor a model")
    forwarded_by: list[str] = Field(
        default_factory=list, description="addresses or networks of proxies whose X-Forwarded-For is believed"
    )
    proxy: ProxySettings | None = Field(None, description="single sign-on; see below")
    open: bool = Field(False, description="let every user of this machine in without a token, for trying it out")

    @field_validator("forwarded_by")
    @classmethod
    def _addresses(cls, given: list[str]) -> list[str]:
        networks_of(given)
        return given

    @model_validator(mode="after")
    def _not_open_behind_a_proxy(self) -> Security:
        if self.open and (self.proxy is not None or self.forwarded_by):
            raise ValueError("a service behind a proxy cannot be open to its own machine: all would come from there")
        return self
