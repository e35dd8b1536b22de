"""Readings from an MQTT broker, acknowledged once they are stored.

With QoS 1 and a session that the broker keeps, a message that was not acknowledged is sent again after the next
connection, so that neither a restart of the service nor one of the network loses a reading. In MQTT 5 the broker has at
most `in_flight` messages under way, and what comes beyond twice that is not read, which bounds the memory.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator

import aiomqtt
from paho.mqtt.client import MQTT_CLEAN_START_FIRST_ONLY
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from eccaht.live.sources.feed import Backoff, Sink, Target, deliver, keep_running
from eccaht.live.sources.health import Health
from eccaht.live.sources.parsing import LARGEST_PAYLOAD, BadPayload, Payloads, Reading, deliveries
from eccaht.live.sources.settings import MqttSettings

_REFUSED = 128  # reason codes from here on
_PLACE = re.compile(r"\{(\w*)\}")


class MqttFeed:
    """Follows the topics of one plant."""

    def __init__(self, name: str, settings: MqttSettings, target: Target, sink: Sink) -> None:
        self.name, self._settings, self._target, self._sink = name, settings, target, sink
        self._filter, self._pattern = topics(settings.topic, target.name)
        self.health = Health(sink, name, [target.name], f"{self._filter} at {settings.host}:{settings.port}")
        self.backoff = Backoff()
        self._payloads = Payloads.of(settings, target.clock, target.expected.levels)
        self._tls = _tls_context(settings)

    async def run(self) -> None:
        """Run until cancelled."""
        await keep_running(self._connect, self.health, self.backoff)

    async def _connect(self) -> None:
        settings, newer = self._settings, self._settings.protocol == "5"
        client = aiomqtt.Client(
            settings.host,
            settings.port,
            identifier=settings.client_id or f"eccaht-{self._target.name}-{self.name}",
            username=settings.username,
            password=settings.password.get_secret_value() if settings.password else None,
            protocol=aiomqtt.ProtocolVersion.V5 if newer else aiomqtt.ProtocolVersion.V311,
            clean_session=None if newer else False,
            clean_start=False if newer else MQTT_CLEAN_START_FIRST_ONLY,  # paho takes no other for older ones
            properties=_session(settings) if newer else None,
            keepalive=settings.keepalive,
            tls_context=self._tls,
        )
        client._client.manual_ack_set(True)  # of paho, which aiomqtt does not hand on
        async with client:
            gate = Gate(client, 2 * settings.in_flight)
            if newer:
                options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
                granted = await client.subscribe(self._filter, options=options)
            else:
                granted = await client.subscribe(self._filter, qos=1)
            if any((code if isinstance(code, int) else code.value) >= _REFUSED for code in granted):
                raise ConnectionError(f"the broker refuses the subscription to {self._filter}")
            self.health.running()
            await self._read(client, gate)

    async def _read(self, client: aiomqtt.Client, gate: Gate) -> None:
        messages, ended = client.messages, False
        while not ended:
            batch: list[aiomqtt.Message] = []
            try:
                batch.append(await anext(messages))
                if len(messages) < self._settings.in_flight // 2:
                    await asyncio.sleep(self._settings.wait)
                while len(messages) and len(batch) < self._settings.in_flight:
                    batch.append(await anext(messages))
                gate.resume()
            except aiomqtt.MqttError:
                ended = True  # what came is delivered all the same: a broker may have lost its session
            readings = [reading for message in batch for reading in self._readings(message)]
            for rows in deliveries(readings):
                await deliver(self._sink, self._target.name, rows, self.health)
            for message in batch:
                if message.qos:
                    client._client.ack(message.mid, message.qos)
        raise ConnectionError("the broker closed the connection")

    def _readings(self, message: aiomqtt.Message) -> Iterator[Reading]:
        """The readings of a message; a retained one is an old value that the broker repeats, no new reading."""
        if message.retain:
            self.health.count("retained messages left out")
            return
        match = self._pattern.fullmatch(str(message.topic))
        if match is None:
            self.health.count("messages of other topics")
            return
        sensor = match.groupdict().get("sensor")
        names = self._settings.names
        try:
            for reading in self._payloads.read(_as_bytes(message.payload), sensor and names.get(sensor, sensor)):
                yield reading if sensor else reading._replace(sensor=names.get(reading.sensor, reading.sensor))
        except BadPayload as error:
            self.health.count("bad payloads", 1, f"{str(message.topic)[:80]}: {error}")


class Gate:
    """Reads the socket of a connection for aiomqtt, and stops when too many messages wait.

    aiomqtt would take in whatever comes, and a broker may send more at once than it was asked for: Mosquitto 2.0.11
    answers each acknowledgement with as many messages as may be under way. What is not read stays with the broker. If
    that lasts, the broker is not heard either, and the connection is made again: then what was not acknowledged comes
    again.
    """

    def __init__(self, client: aiomqtt.Client, most: int) -> None:
        self._client, self._most, self._loop = client, most, asyncio.get_running_loop()
        self._socket = client._client.socket()
        self._number = -1 if self._socket is None else self._socket.fileno()
        self.open = False
        self.resume()

    def resume(self) -> None:
        """Go on reading, once there is room."""
        there = self._socket is not None and self._client._client.socket() is self._socket
        if there and not self.open and len(self._client.messages) <= self._most // 2:
            self.open = True
            self._loop.add_reader(self._number, self._read)  # in place of aiomqtt's own
            self._loop.call_soon(self._read)  # TLS may hold what was received already

    def _read(self) -> None:
        try:
            more = self.open and self._client._client.socket() is self._socket
            while more:
                self._client._client.loop_read()
                if len(self._client.messages) >= self._most:
                    self.open = False
                    self._loop.remove_reader(self._number)
                pending = getattr(self._client._client.socket(), "pending", None)
                more = self.open and pending is not None and pending() > 0
        except Exception as error:  # as aiomqtt does
            if not self._client._disconnected.done():
                self._client._disconnected.set_exception(error)


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
        told = part.replace("{plant}", plant)
        levels.append("+" if "{sensor}" in told else told)
        before, place, after = told.partition("{sensor}")
        sensor = f"(?P<sensor>[^/]+){re.escape(after)}" if place else ""
        patterns.append({"+": "[^/]*", "#": ".*"}.get(told, re.escape(before) + sensor))
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


def _as_bytes(payload: object) -> bytes:
    return payload if isinstance(payload, bytes) else b""
