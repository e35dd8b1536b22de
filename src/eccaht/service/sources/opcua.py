"""Readings from an OPC UA server: by subscription, or all nodes read at once.

Times are the source's. A notification is acknowledged once its readings are stored, and the next is asked for only
then: while the service is busy, the server keeps up to `queue` changes a node.
"""

import asyncio
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from asyncua import ua
from asyncua.client.client import Client
from asyncua.crypto import security_policies
from asyncua.ua.attribute_ids import AttributeIds
from asyncua.ua.uaerrors import UaError

from eccaht.service.rows import TimeReader, severity_of_status
from eccaht.service.sources.feed import Feed, Sink, Target
from eccaht.service.sources.parsing import Payloads, SensorReading
from eccaht.service.sources.settings import OpcUaSettings, ReadingSettings

_OLD = 60_000_000  # microseconds: first values that are older when we connect are no new readings
_CLOCK = ua.NodeId(ua.Int32(2258))  # the current time of every server
_LIFETIME, _KEEPALIVE = 10_000, 10  # publishing intervals


class OpcUaFeed(Feed):
    """Follows the nodes of one plant."""

    def __init__(self, name: str, settings: OpcUaSettings, target: Target, sink: Sink) -> None:
        if target.clock.zone is None and settings.timezone is None:
            raise ValueError(f"source {name!r}: OPC UA times are UTC and the model's have no zone: set timezone")
        if settings.policy != "none" and (settings.certificate is None or settings.key is None):
            raise ValueError(f"source {name!r}: policy {settings.policy} needs a certificate and a key")
        where = f"{len(settings.nodes)} nodes of {settings.url}"
        super().__init__(name, sink, [target.name], where, settings.secrets())
        self._settings, self._target = settings, target
        self._sensors = list(settings.nodes)
        self._nodes = [_node_id(sensor, text) for sensor, text in settings.nodes.items()]
        self._moments = TimeReader(target.clock, zone=settings.timezone)
        self._payloads = Payloads(self._moments, target.expected, ReadingSettings(uncertain=settings.uncertain))
        self._newest: int | None = None  # time of the newest reading so far
        self._first = set[int]()  # nodes whose first value after the connection is still to come

    async def connect(self) -> None:
        client = await self._client()
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def on_loss(error: Exception) -> None:
            if not lost.done():
                lost.set_exception(ConnectionError(f"the connection was lost ({type(error).__name__})"))

        client.connection_lost_callback = on_loss
        async with client:
            reading = asyncio.ensure_future(self._poll(client) if self._settings.read_every else self._follow(client))
            try:
                await asyncio.wait([reading, lost], return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    reading.result()
                await lost
            finally:
                reading.cancel()
                lost.cancel()
                await asyncio.gather(reading, lost, return_exceptions=True)

    async def _client(self) -> Client:
        settings = self._settings
        client = Client(settings.url.get_secret_value(), timeout=settings.timeout, watchdog_intervall=settings.timeout)
        client.name = client.description = "eccaht"
        client.application_uri = settings.application_uri
        if settings.username is not None:
            client.set_user(settings.username.get_secret_value())
        if settings.password is not None:
            client.set_password(settings.password.get_secret_value())
        if settings.policy != "none":
            assert settings.certificate is not None
            assert settings.key is not None
            server = settings.server_certificate
            await client.set_security(
                getattr(security_policies, f"SecurityPolicy{settings.policy}"),
                str(settings.certificate),
                str(settings.key),
                server_certificate=None if server is None else str(server),
                mode=ua.MessageSecurityMode[settings.mode],
            )
        return client

    async def _follow(self, client: Client) -> None:
        """Subscribe; ends by an error only."""
        settings, session = self._settings, client.uaclient.session
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def publish(result: ua.PublishResult) -> None:
            """Store a notification: the publish loop acknowledges it and asks for the next one after that."""
            try:
                await self._take(result)
            except Exception as error:  # asyncua would only log it
                if not failed.done():
                    failed.set_exception(error)

        made = await session.create_subscription(
            ua.CreateSubscriptionParameters(
                RequestedPublishingInterval=settings.interval * 1000.0,
                RequestedLifetimeCount=_LIFETIME,
                RequestedMaxKeepAliveCount=_KEEPALIVE,
                MaxNotificationsPerPublish=10_000,
                PublishingEnabled=True,
            ),
            publish,
        )
        self._first = set(range(len(self._nodes)))
        await self._monitor(client, made.SubscriptionId)
        self.health.running()
        await failed

    async def _monitor(self, client: Client, subscription: int) -> None:
        trigger = ua.DataChangeFilter(Trigger=ua.DataChangeTrigger.StatusValueTimestamp)
        for filtered in (trigger, None):  # some servers know no filters
            items = [self._item(k, filtered) for k in range(len(self._nodes))]
            results = await client.uaclient.session.create_monitored_items(
                ua.CreateMonitoredItemsParameters(
                    SubscriptionId=subscription, TimestampsToReturn=ua.TimestampsToReturn.Both, ItemsToCreate=items
                )
            )
            refused = [k for k, result in enumerate(results) if not result.StatusCode.is_good()]
            unfiltered = all("Filter" in results[k].StatusCode.name for k in refused)
            if filtered is None or not refused or len(refused) < len(items) or not unfiltered:
                break
        if refused:
            k = refused[0]
            others = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
            what = f"node {self._settings.nodes[self._sensors[k]]!r} of {self._sensors[k]!r}"
            raise ConnectionError(f"the server refuses {what}: {results[k].StatusCode.name}{others}")

    def _item(self, k: int, filtered: ua.DataChangeFilter | None) -> ua.MonitoredItemCreateRequest:
        parameters = ua.MonitoringParameters(
            ClientHandle=k,
            SamplingInterval=-1.0,  # that of the subscription
            QueueSize=self._settings.queue,
            DiscardOldest=True,
        )
        if filtered is not None:
            parameters.Filter = filtered
        return ua.MonitoredItemCreateRequest(
            ItemToMonitor=ua.ReadValueId(NodeId=self._nodes[k], AttributeId=AttributeIds.Value),
            MonitoringMode=ua.MonitoringMode.Reporting,
            RequestedParameters=parameters,
        )

    async def _take(self, result: ua.PublishResult) -> None:
        readings: list[SensorReading] = []
        for notification in result.NotificationMessage.NotificationData or []:
            if isinstance(notification, ua.StatusChangeNotification):
                raise ConnectionError(f"the server ended the subscription ({notification.Status.name})")
            if isinstance(notification, ua.DataChangeNotification):
                changes = ((item.ClientHandle, item.Value) for item in notification.MonitoredItems)
                readings += self._changes(changes)
        await self._submit(readings)

    def _changes(self, changes: Iterable[tuple[int, ua.DataValue]]) -> Iterator[SensorReading]:
        for k, value in changes:
            if not 0 <= k < len(self._sensors):
                continue
            reading = self._reading(k, value, value.SourceTimestamp or value.ServerTimestamp)
            if reading is None:
                continue
            if k in self._first:
                self._first.discard(k)
                if reading.time < (self._moments.present() - _OLD if self._newest is None else self._newest):
                    self.health.count("old values at the connection left out")
                    continue
            yield reading

    async def _poll(self, client: Client) -> None:
        """Read all nodes again and again: one row each time, at the time that the clock of the server shows.

        Many servers move that clock once a second only: in between the time that passed here is added.
        """
        loop, every = asyncio.get_running_loop(), self._settings.read_every
        assert every is not None
        due = since = loop.time()
        shown: datetime | None = None
        while True:
            *values, clock = await client.uaclient.read_attributes([*self._nodes, _CLOCK], AttributeIds.Value)
            self.health.running()
            moment = _plain(clock)
            if not isinstance(moment, datetime):
                raise ConnectionError("the server does not report its time: leave out read_every")
            if moment != shown:
                shown, since = moment, loop.time()
            moment += timedelta(seconds=loop.time() - since)
            read = (self._reading(k, value, moment) for k, value in enumerate(values))
            await self._submit([reading for reading in read if reading is not None])
            due = max(due + every, loop.time())
            await asyncio.sleep(due - loop.time())

    async def _submit(self, readings: list[SensorReading]) -> None:
        await self.submit(self._target, readings)
        if readings:
            newest = max(reading.time for reading in readings)
            self._newest = newest if self._newest is None else max(newest, self._newest)

    def _reading(self, k: int, value: ua.DataValue, stamp: datetime | None) -> SensorReading | None:
        """A reading; None, and counted, if it has no time or no number."""
        sensor = self._sensors[k]
        try:
            if stamp is None:
                raise ValueError("it has no time")
            time = self._moments.read(stamp if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC))
            code = 0 if value.StatusCode is None else int(value.StatusCode.value)
            if not self._payloads.good(severity_of_status(code)):
                return SensorReading(time, sensor, math.nan)
            return SensorReading(time, sensor, self._payloads.number(_plain(value), sensor))
        except (ValueError, OverflowError) as error:
            self.health.count("bad values", f"{sensor}: {error}")
            return None


def _plain(value: ua.DataValue) -> Any:
    return None if value.Value is None else value.Value.Value


def _node_id(sensor: str, text: str) -> ua.NodeId:
    try:
        return ua.NodeId.from_string(text)
    except (UaError, ValueError):
        raise ValueError(f"node {text!r} of sensor {sensor!r} is no node id: write it as ns=2;s=Pump.Flow") from None
