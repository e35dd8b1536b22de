"""Alerts by MQTT: a JSON document a message, with quality of service 1."""

from __future__ import annotations

import json
import re
import secrets
import ssl
from dataclasses import dataclass, field

import aiomqtt

from eccaht.live.alerts.channel import Message, NotDelivered, PerhapsDelivered

_FIELDS = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True)
class Mqtt:
    """Publishes messages; topic: with {plant} and {kind} where these shall stand."""

    name: str
    host: str
    topic: str = "eccaht/{plant}/{kind}"
    port: int = 1883
    tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    timeout: float = 10.0
    idempotent: bool = False

    def __post_init__(self) -> None:
        unknown = {*_FIELDS.findall(self.topic)} - {"plant", "kind"}
        if not self.topic or any(sign in _FIELDS.sub("", self.topic) for sign in "+#\0{}") or unknown:
            raise ValueError(f"MQTT {self.name}: {self.topic!r} is not a topic: write it as eccaht/{{plant}}/{{kind}}")
        if self.user and not self.tls and self.host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError(f"MQTT {self.name}: a password is not sent to another machine without TLS: set tls")

    async def send(self, message: Message) -> None:
        """Publish a message and wait until the broker says that it has it."""
        client = aiomqtt.Client(
            self.host,
            self.port,
            username=self.user or None,
            password=self.password or None,
            identifier=f"eccaht-alerts-{secrets.token_hex(6)}",
            tls_context=ssl.create_default_context() if self.tls else None,
            timeout=self.timeout,
        )
        payload = json.dumps(message.document(), allow_nan=False).encode()
        connected = confirmed = False
        try:
            async with client:
                connected = True
                await client.publish(self.place(message), payload, qos=1)
                confirmed = True
        except (aiomqtt.MqttError, OSError) as error:
            if not connected:
                raise NotDelivered(f"{type(error).__name__}: {error}") from None
            if not confirmed:  # else the broker has it, however the connection ends
                raise PerhapsDelivered(f"the broker did not confirm: {error}") from None

    def place(self, message: Message) -> str:
        """The topic of a message; what MQTT reads as levels or wildcards is replaced in names."""
        names = {"plant": re.sub(r"[+#/\x00-\x1f]", "_", message.plant), "kind": message.kind}
        return _FIELDS.sub(lambda match: names[match[1]], self.topic)
