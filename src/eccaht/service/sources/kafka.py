"""Readings from a topic of Kafka, whose consumer group shares the plants between services.

The key of a message is the name of its plant, so that a plant is in one partition and its messages keep their order.
Offsets are committed after the rows are stored, and the consumer is not asked for more before that: when partitions are
taken away nothing is under way, and the next consumer begins where the last commit ended.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition

from eccaht.service.rows import UnknownPlant
from eccaht.service.sources.feed import Feed, OneThread, Plants, Sink, Target
from eccaht.service.sources.parsing import LARGEST_PAYLOAD, BadPayload, Payloads, SensorReading
from eccaht.service.sources.settings import KafkaSettings

_LONGEST_DELIVERY = 600_000  # milliseconds: a service that stands still for longer loses its plants to the others
_LONGEST_NAME = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Place = tuple[str, int]  # topic and partition


class KafkaFeed(Feed):
    """Consumes a topic for the plants whose partitions this member of the group has."""

    def __init__(self, name: str, settings: KafkaSettings, plants: Target | Plants, sink: Sink) -> None:
        if isinstance(plants, Target):
            self._plants, group = _only(plants), f"eccaht-{plants.name}"
        else:
            self._plants, group = plants, "eccaht"
        self._settings, self._group = settings, settings.group or group
        where = f"{settings.topic} at {settings.servers} in group {self._group}"
        super().__init__(name, sink, [], where, settings.secrets())
        self._fed: dict[_Place, set[str]] = defaultdict(set)  # plants by their partition
        self._payloads: dict[str, tuple[Target, Payloads]] = {}  # made once for each plant as it is

    async def connect(self) -> None:
        thread, loop = OneThread(f"kafka-{self.name}"), asyncio.get_running_loop()
        errors: list[KafkaError] = []
        stored: dict[_Place, int] = {}  # where to go on, of what is stored and not committed yet
        consumer = Consumer(self._options(errors.append))

        def lost(_: Consumer, partitions: list[TopicPartition]) -> None:
            for partition in partitions:
                stored.pop((partition.topic, partition.partition), None)
            asyncio.run_coroutine_threadsafe(self._hand_over(partitions), loop).result()

        def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
            _commit(consumer, stored)
            lost(consumer, partitions)

        def assigned(_: Consumer, __: list[TopicPartition]) -> None:
            loop.call_soon_threadsafe(self._assigned)

        had: set[str] = set()
        try:
            await thread.call(
                lambda: consumer.subscribe([self._settings.topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
            )
            while True:
                messages = await thread.call(consumer.consume, self._settings.batch, self._settings.wait)
                _raise_fatal(errors)
                await self._take(messages)
                stored |= _ends(messages)
                await thread.call(_commit, consumer, stored)
        except Exception:
            had = set(self.health.plants)
            raise
        finally:
            await thread.finish(consumer.close)
            self.health.plants |= had  # closing lets go of them; their pages shall say what is wrong

    def _options(self, on_error: Callable[[KafkaError], object]) -> dict[str, Any]:
        return {
            "client.id": f"eccaht-{self.name}",
            "session.timeout.ms": round(self._settings.session * 1000),
            "heartbeat.interval.ms": max(1, round(self._settings.session * 1000 / 5)),
            "queued.max.messages.kbytes": 16_384,
            "fetch.message.max.bytes": 4 * LARGEST_PAYLOAD,
            "partition.assignment.strategy": "cooperative-sticky",
            "log_level": 2,
            **{name: value.get_secret_value() for name, value in self._settings.options.items()},
            "bootstrap.servers": self._settings.servers,
            "group.id": self._group,
            "auto.offset.reset": self._settings.first,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "max.poll.interval.ms": _LONGEST_DELIVERY,
            "error_cb": on_error,
        }

    async def _take(self, messages: Iterable[Message]) -> None:
        """Submit the rows of all messages, plants side by side; rows that are refused end the connection.

        Then nothing of these messages is committed, and all of them come again.
        """
        readings: dict[str, list[SensorReading]] = defaultdict(list)
        targets: dict[str, Target] = {}
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    continue
                raise KafkaException(error)
            if (target := self._target(message.key())) is not None:
                await self._own(target.name, (str(message.topic()), int(message.partition() or 0)))
                targets[target.name] = target
                readings[target.name] += await self._read(target, message)
        work = (self.submit(targets[plant], found) for plant, found in readings.items())
        for failed in filter(None, await asyncio.gather(*work, return_exceptions=True)):
            raise failed

    def _target(self, key: str | bytes | None) -> Target | None:
        try:
            name = key.decode("utf-8") if isinstance(key, bytes) else key or ""
            if not 0 < len(name) <= _LONGEST_NAME:
                raise ValueError
            return self._plants(name)
        except UnknownPlant:
            self.health.count("messages of plants that are not here", name[:80])
        except ValueError:
            self.health.count("messages without the name of a plant as key")
        return None

    async def _read(self, target: Target, message: Message) -> list[SensorReading]:
        payloads = self._made(target)
        try:
            kind, milliseconds = message.timestamp()
            stamp = _EPOCH + timedelta(milliseconds=milliseconds) if kind and milliseconds > 0 else None
            arrived = None if stamp is None or target.clock.zone is None else payloads.moments.read(stamp)
            value = message.value()
            return await payloads.read_beside(value if isinstance(value, bytes) else b"", None, arrived)
        except (BadPayload, ValueError, OverflowError) as error:
            self.health.count("bad payloads", f"{target.name}: {error}")
            return []

    def _made(self, target: Target) -> Payloads:
        known = self._payloads.get(target.name)
        if known is not None and known[0] is target:
            return known[1]
        payloads = Payloads.of(self._settings, target, format=self._settings.format, names=self._settings.names)
        self._payloads[target.name] = (target, payloads)
        return payloads

    def _assigned(self) -> None:
        """The group has settled: plants of an earlier connection come with their first message, or are another's."""
        for plant in self.health.plants - set[str]().union(*self._fed.values()):
            self.health.let_go(plant)
        self.health.running()

    async def _own(self, plant: str, place: _Place) -> None:
        """Take a plant over with its first message since the partition came to this service."""
        if plant in self._fed[place]:
            return
        await self._sink.take_over(plant)
        self._fed[place].add(plant)
        self.health.running()
        self.health.bring(plant)

    async def _hand_over(self, partitions: Iterable[TopicPartition]) -> None:
        """Let go of the plants of these partitions, whose rows were all submitted."""
        for partition in partitions:
            for plant in sorted(self._fed.pop((partition.topic, partition.partition), ())):
                self.health.let_go(plant)
                await self._sink.hand_over(plant)


def _only(target: Target) -> Plants:
    def known(name: str) -> Target:
        if name != target.name:
            raise UnknownPlant(name)
        return target

    return known


def _ends(messages: Iterable[Message]) -> dict[_Place, int]:
    """Where to go on in each partition after these messages."""
    ends: dict[_Place, int] = {}
    for message in messages:
        if message.error() is None:
            place = (str(message.topic()), int(message.partition() or 0))
            ends[place] = max(ends.get(place, OFFSET_INVALID), int(message.offset() or 0) + 1)
    return ends


def _commit(consumer: Consumer, stored: dict[_Place, int]) -> None:
    """Commit what is stored. While the group settles that may fail: nothing more is taken until it succeeds.

    If the partition goes to another service before, at most one batch of rows comes again, known by its times.
    """
    if not stored:
        return
    try:
        consumer.commit(offsets=[TopicPartition(*place, end) for place, end in stored.items()], asynchronous=False)
    except KafkaException as error:
        if error.args[0].fatal():
            raise
        consumer.pause(consumer.assignment())
    else:
        stored.clear()
        consumer.resume(consumer.assignment())


def _raise_fatal(errors: list[KafkaError]) -> None:
    """Raise if the client cannot go on, or no broker is left; passing errors are librdkafka's business."""
    found, errors[:] = errors[:], []
    for error in found:
        if error.fatal() or error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION):
            raise KafkaException(error)
