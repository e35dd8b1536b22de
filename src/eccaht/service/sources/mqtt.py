"""Readings from an MQTT broker, acknowledged once they are stored.

With QoS 1 and a session that the broker keeps, a message that was not acknowledged is sent again after the next
connection, so that neither a restart of the service nor one of the network loses a reading. The broker has at most
`in_flight` messages under way, and what comes beyond twice that is not read, which bounds the memory.
"""

import re
import ssl
from typing import Any

from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from eccaht.service.broker import connected, make_client
from eccaht.service.sources.feed import Feed, Sink, Target
from eccaht.service.sources.parsing import LARGEST_PAYLOAD, BadPayload, Payloads, SensorReading
from eccaht.service.sources.settings import MqttSettings

_PLACE = re.compile(r"\{(\w*)\}")


class MqttFeed(Feed):
    """Follows the topics of one plant."""

    def __init__(self, name: str, settings: MqttSettings, target: Target, sink: Sink) -> None:
        self._settings, self._target = settings, target
        self._filter, self._pattern = topics(settings.topic, target.name)
        where = f"{self._filter} at {settings.host}:{settings.port}"
        super().__init__(name, sink, [target.name], where, settings.secrets())
        self._payloads = Payloads.of(settings, target, format=settings.format, names=settings.names)
        self._tls = _tls_context(settings)

    async def connect(self) -> None:
        settings = self._settings
        client = make_client(
            settings.client_id or f"eccaht-{self._target.name}-{self.name}",
            user=settings.username.get_secret_value() if settings.username else None,
            password=settings.password.get_secret_value() if settings.password else None,
            tls=self._tls,
        )
        how: dict[str, Any] = {"clean_start": False, "properties": _session(settings), "keepalive": settings.keepalive}
        most = 2 * settings.in_flight
        async with connected(client, settings.host, settings.port, most=most, **how) as broker:
            await broker.subscribe(self._filter)
            self.health.running()
            while True:
                messages = await broker.messages(settings.in_flight, settings.wait)
                readings = [reading for message in messages for reading in await self._readings(message)]
                await self.submit(self._target, readings)
                for message in messages:
                    broker.acknowledge(message)

    async def _readings(self, message: MQTTMessage) -> list[SensorReading]:
        match = self._pattern.fullmatch(message.topic)
        if match is None:
            self.health.count("messages of other topics")
            return []
        try:
            return await self._payloads.read_beside(bytes(message.payload), match.groupdict().get("sensor"))
        except BadPayload as error:
            self.health.count("bad payloads", f"{message.topic[:80]}: {error}")
            return []


def topics(template: str, plant: str) -> tuple[str, re.Pattern[str]]:
    """What to subscribe to, and the pattern of its topics with the group `sensor` if the template has that place.

    >>> topics("plant/{plant}/{sensor}", "north")[0]
    'plant/north/+'
    """
    for place in _PLACE.findall(template):
        if place not in ("plant", "sensor"):
            raise ValueError(f"topic {template!r}: {{{place}}} is unknown, the places are {{plant}} and {{sensor}}")
    if template.count("{sensor}") > 1:
        raise ValueError(f"topic {template!r}: {{sensor}} may stand there once")
    levels, patterns = [], []
    parts = template.split("/")
    for k, part in enumerate(parts):
        if "#" in part and (part != "#" or k < len(parts) - 1):
            raise ValueError(f"topic {template!r}: # must be the last level, alone")
        if "+" in part and part != "+":
            raise ValueError(f"topic {template!r}: + must be a level of its own")
        level = part.replace("{plant}", plant)
        levels.append("+" if "{sensor}" in level else level)
        before, place, after = level.partition("{sensor}")
        sensor = f"(?P<sensor>[^/]+){re.escape(after)}" if place else ""
        patterns.append({"+": "[^/]*", "#": ".*"}.get(level, re.escape(before) + sensor))
    return "/".join(levels), re.compile("/".join(patterns))


def _session(settings: MqttSettings) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = round(settings.session)
    properties.ReceiveMaximum = settings.in_flight
    properties.MaximumPacketSize = LARGEST_PAYLOAD + (1 << 16) + 64  # payload, topic and headers
    return properties


def _tls_context(settings: MqttSettings) -> ssl.SSLContext | None:
    if not settings.tls:
        return None
    context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.certificate is not None:
        context.load_cert_chain(settings.certificate, settings.key)
    return context
