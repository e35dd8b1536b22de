"""The settings of security."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from eccaht.service.parts import Part, Seconds
from eccaht.service.security import proxy, scopes


class ProxySettings(Part):
    """Single sign-on by a proxy in front of the service."""

    header: str = Field(description="the header in which the proxy names the user, as X-Forwarded-User")
    addresses: list[str] = Field(description="addresses or networks of the proxy; the header of others is refused")
    users: dict[str, list[scopes.Scope]] = Field(description="what each user may do; others are refused")

    @model_validator(mode="after")
    def _usable(self) -> ProxySettings:
        self.proxy()
        return self

    def proxy(self) -> proxy.Proxy:
        return proxy.make(self.header, self.addresses, self.users)


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
        proxy.networks_of(given)
        return given

    @model_validator(mode="after")
    def _not_open_behind_a_proxy(self) -> Security:
        if self.open and (self.proxy is not None or self.forwarded_by):
            raise ValueError("a service behind a proxy cannot be open to its own machine: all would come from there")
        return self
