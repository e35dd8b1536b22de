"""The settings of alerts, and the channels that they describe."""

from __future__ import annotations

import secrets
from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator

from eccaht.base.randomness import rng_for
from eccaht.service.alerts.channel import Channel
from eccaht.service.alerts.mail import Mail
from eccaht.service.alerts.mqtt import Mqtt
from eccaht.service.alerts.sender import Retries, Sender
from eccaht.service.alerts.webhook import Webhook
from eccaht.service.hiding import SecretHook
from eccaht.service.parts import Name, Part, Port, Seconds
from eccaht.service.store.store import Store


class WebhookSettings(Part):
    """A URL that gets a POST."""

    url: SecretHook = Field(description="https://host/path")
    secret: SecretStr = Field(SecretStr(""), description="signs the messages: X-Eccaht-Signature")


class MailSettings(Part):
    """A mail server and who gets the mails."""

    host: str = Field(description="mail server")
    port: Port = Field(587, description="its port")
    tls: Literal["starttls", "tls", "none"] = Field("starttls", description="starttls, tls, or none")
    user: SecretStr = Field(SecretStr(""), description="name at the server, if it asks for one")
    password: SecretStr = Field(SecretStr(""), description="password at the server")
    trust: str | None = Field(None, description="file of certificates to believe instead of the system's")
    sender: str = Field(description="address that mails come from")
    recipients: list[str] = Field(description="addresses that mails go to")


class MqttAlertSettings(Part):
    """A broker and a topic."""

    host: str = Field(description="broker")
    port: Port = Field(1883, description="its port")
    tls: bool = Field(False, description="whether to use TLS")
    user: SecretStr = Field(SecretStr(""), description="name at the broker, if it asks for one")
    password: SecretStr = Field(SecretStr(""), description="password at the broker")
    topic: str = Field("eccaht/{plant}/{kind}", description="where messages go; kind is alarm or over")


class Alerts(Part):
    """Where alarms are sent, each once, and their ends."""

    tries: int = Field(10, ge=1, le=100, description="how often a message is tried until it counts as failed")
    first: Seconds = Field(5.0, description="pause after the first try; each further one is twice as long")
    longest: Seconds = Field(900.0, description="longest pause between two tries")
    timeout: Seconds = Field(30.0, description="how long sending one message may take")
    webhooks: dict[Name, WebhookSettings] = Field(default_factory=dict, description="by name")
    mails: dict[Name, MailSettings] = Field(default_factory=dict, description="by name")
    mqtt: dict[Name, MqttAlertSettings] = Field(default_factory=dict, description="by name")

    @model_validator(mode="after")
    def _usable(self) -> Alerts:
        self.channels()
        return self

    def channels(self) -> list[Channel]:
        made: list[Channel] = [
            *(Webhook(name, **_plain(part)) for name, part in self.webhooks.items()),
            *(Mail(name, **_plain(part)) for name, part in self.mails.items()),
            *(Mqtt(name, **_plain(part)) for name, part in self.mqtt.items()),
        ]
        names = [channel.name for channel in made]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two alerts are called {name!r}: rename one")
        return made


def make_sender(alerts: Alerts, store: Store) -> Sender:
    retries = Retries(alerts.tries, alerts.first, alerts.longest)
    rng = rng_for(secrets.randbits(32), "alerts")  # services that share a store shall not come back in step
    return Sender(store, alerts.channels(), rng=rng, retries=retries, timeout=alerts.timeout)


def _plain(part: Part) -> dict[str, Any]:
    """The values of a part, secrets in clear."""
    values = part.model_dump()
    return {
        name: value.get_secret_value()
        if isinstance(value, SecretStr)
        else tuple(value)
        if isinstance(value, list)
        else value
        for name, value in values.items()
    }
