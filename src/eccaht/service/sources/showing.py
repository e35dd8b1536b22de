"""How settings of sources are shown, each by a function of its value; what has none is hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eccaht.service.hiding import HIDDEN, shown_url

Show = Callable[[Any], Any]
_NAMES = """
auto.offset.reset broker.address.family broker.address.ttl check.crcs client.id client.rack
enable.ssl.certificate.verification fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes
fetch.wait.max.ms group.instance.id group.protocol heartbeat.interval.ms isolation.level log_level
max.partition.fetch.bytes metadata.max.age.ms partition.assignment.strategy queued.max.messages.kbytes
queued.min.messages reconnect.backoff.max.ms reconnect.backoff.ms sasl.mechanism sasl.mechanisms security.protocol
session.timeout.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.timeout.ms ssl.ca.location
ssl.certificate.location ssl.endpoint.identification.algorithm
"""
KAFKA = frozenset(_NAMES.split())  # options of librdkafka that hold no secret


def as_they_are(names: str) -> dict[str, Show]:
    """Settings that hold no secret, whatever their value."""
    return dict.fromkeys(names.split(), plain)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: HIDDEN if isinstance(inner, dict | list) else inner for name, inner in value.items()}
    return HIDDEN if isinstance(value, list) else value


def file(value: Any) -> Any:
    """The name of a file; its content, given by mistake, is hidden."""
    return value if isinstance(value, str) and value.isprintable() and len(value) < 256 else HIDDEN


def url(value: Any) -> Any:
    return shown_url(value) if isinstance(value, str) else HIDDEN


def options(value: Any) -> Any:
    if not isinstance(value, dict):
        return HIDDEN
    return {name: plain(inner) if name in KAFKA else HIDDEN for name, inner in value.items()}
