"""Alerts by MQTT: a JSON document a message, with quality of service 1."""

from __future__ import annotations

import json
import re
import secrets
import ssl
from dataclasses import dataclass, field

from eccaht.service.alerts.channel import Message, NotDelivered, PerhapsDelivered
from eccaht.service.broker import connected, make_client

_FIELDS = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True)
class Mqtt:
    """Publishes messages; topic: with {plant} and {kind} where these shall stand."""

    name: str
    host: str
    topic: str = "eccaht/{plant}/{kind}"
    port: int = 1883
    tls: bool = False
    user: str = field(default="", repr=False)
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
        client = make_client(
            f"eccaht-alerts-{secrets.token_hex(6)}",
            user=self.user or None,
            password=self.password or None,
            tls=ssl.create_default_context() if self.tls else None,
        )
        payload = json.dumps(message.document(), allow_nan=False).encode()
        reached = False
        try:
            async with connected(client, self.host, self.port, timeout=self.timeout) as broker:
                reached = True
                await broker.publish(self.place(message), payload)
        except OSError as error:
            why = f"{type(error).__name__}: {error}"
            if not reached:
                raise NotDelivered(why) from None
            raise PerhapsDelivered(f"the broker did not confirm: {why}") from None

    def place(self, message: Message) -> str:
        """The topic of a message; what MQTT reads as levels or wildcards is replaced in names."""
        names = {"plant": re.sub(r"[+#/\x00-\x1f]", "_", message.plant), "kind": message.kind}
        return _FIELDS.sub(lambda match: names[match[1]], self.topic)
