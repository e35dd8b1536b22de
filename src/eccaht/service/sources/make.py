"""A feed from its settings; what is wrong with them is reported before anything starts."""

from __future__ import annotations

from pathlib import Path

from eccaht.service.rows import UnknownPlant
from eccaht.service.sources.feed import Feed, Sink, Target
from eccaht.service.sources.settings import (
    AnySettings,
    FileSettings,
    KafkaSettings,
    MqttSettings,
    OpcUaSettings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from eccaht.service.sources.kafka import Plants


def make_feed(name: str, settings: AnySettings, plant: Target | Plants, sink: Sink) -> Feed:
    """The feed of a source.

    plant: whose rows they are. For Kafka also a function that knows plants by name (UnknownPlant if it does not): one
    consumer for all plants of the service, which shares them with the others of its group.
    """
    if not isinstance(plant, Target):
        if not isinstance(settings, KafkaSettings):
            raise ValueError(f"source {name!r}: only Kafka serves several plants: put it under a plant")
        from eccaht.service.sources.kafka import KafkaFeed

        return KafkaFeed(name, settings, plant, sink, group=settings.group or "eccaht")
    if isinstance(settings, FileSettings):
        from eccaht.service.sources.file import file_feed

        return file_feed(name, settings, plant, sink)
    _check_clock(name, settings, plant)
    if isinstance(settings, MqttSettings):
        from eccaht.service.sources.mqtt import MqttFeed

        _check_files(name, settings, "ca_file", "certificate", "key")
        return MqttFeed(name, settings, plant, sink)
    if isinstance(settings, OpcUaSettings):
        from eccaht.service.sources.opcua import OpcUaFeed

        if settings.policy != "none" and (settings.certificate is None or settings.key is None):
            raise ValueError(f"source {name!r}: policy {settings.policy} needs a certificate and a key")
        _check_files(name, settings, "certificate", "key", "server_certificate")
        return OpcUaFeed(name, settings, plant, sink)
    if isinstance(settings, KafkaSettings):
        from eccaht.service.sources.kafka import KafkaFeed

        return KafkaFeed(name, settings, _only(plant), sink, group=settings.group or f"eccaht-{plant.name}")
    from eccaht.service.sources.sql import SqlFeed

    return SqlFeed(name, settings, plant, sink)


def _only(target: Target) -> Plants:
    def known(name: str) -> Target:
        if name != target.name:
            raise UnknownPlant(name)
        return target

    return known


def _check_clock(name: str, settings: AnySettings, target: Target) -> None:
    if target.clock.row_interval is not None:
        raise ValueError(
            f"source {name!r}: the model of plant {target.name!r} counts rows and knows no times: calibrate one on a "
            "history with times"
        )
    if target.clock.zone is None and settings.timezone is None and isinstance(settings, OpcUaSettings):
        raise ValueError(f"source {name!r}: OPC UA times are UTC and the model's have no zone: set timezone")


def _check_files(name: str, settings: AnySettings, *places: str) -> None:
    for place in places:
        file: Path | None = getattr(settings, place)
        if file is not None and not file.is_file():
            raise ValueError(f"source {name!r}: setting {place}: there is no such file")
