"""The settings of security, and the scopes of tokens."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
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


class Security(Part):
    """Who may do what."""

    session: Seconds = Field(43200.0, description="how long a login of the page lasts")
    logins: float = Field(10.0, gt=0, description="wrong logins a minute of one address")
    forwarded_by: list[str] = Field(
        default_factory=list, description="addresses or networks of proxies whose X-Forwarded-For is believed"
    )
    sources: bool = Field(
        False, description="let admin tokens set sources, which read files and connect to any address from this machine"
    )
    open: bool = Field(False, description="let every user of this machine in without a token, for trying it out")

    @field_validator("forwarded_by")
    @classmethod
    def _addresses(cls, given: list[str]) -> list[str]:
        networks_of(given)
        return given

    @model_validator(mode="after")
    def _not_open_behind_a_proxy(self) -> Security:
        if self.open and self.forwarded_by:
            raise ValueError("a service behind a proxy cannot be open to its own machine: all would come from there")
        return self
