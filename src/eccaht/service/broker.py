"""A connection to an MQTT broker on the asyncio loop that uses it.

paho does the protocol; there is no thread but for the moment of connecting. Messages are read as they come, because a
broker that dies may take with it what it sent, until as many wait as the user of the connection can bear: then nothing
is read, and the broker is held back.
"""

import asyncio
import math
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from paho.mqtt.client import Client, MQTTMessage, error_string
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

_TURN = 1.0  # seconds between two looks of paho at the keepalive
_AT_ONCE = 100  # packets that are read before others on the loop have their turn


class _Closing(ssl.SSLSocket):
    """Is closed where the two sides cannot agree: paho would leave it open."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


class Broker:
    """A connection that stands; most: messages that may wait here."""

    def __init__(self, client: Client, timeout: float, most: float) -> None:
        self._client, self._timeout, self._most = client, timeout, most
        self._messages: deque[MQTTMessage] = deque()
        self._accepted, self._asking, self._ended, self._why = False, False, False, ""
        self._granted: Sequence[ReasonCode] | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message

    async def messages(self, most: int, wait: float) -> list[MQTTMessage]:
        """The next messages, collected for a while from the first on; once there are none, that the broker is gone."""
        await self._until(lambda: bool(self._messages))
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(wait):
                await self._until(lambda: len(self._messages) >= most)
        found = [self._messages.popleft() for _ in range(min(most, len(self._messages)))]
        self._room.set()
        return found

    async def subscribe(self, topic: str) -> None:
        """Subscribe with QoS 1, without the old values that a broker retains: they are no new readings."""
        how = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
        self._client.subscribe(topic, options=how)
        await self._answer(lambda: self._granted is not None)
        if any(code.is_failure for code in self._granted or ()):
            raise ConnectionError(f"the broker refuses the subscription to {topic}")

    async def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> None:
        """Publish a message; with QoS 1 return once the broker has it."""
        sent = self._client.publish(topic, payload, qos, retain)
        if sent.rc:
            raise ConnectionError(error_string(sent.rc))
        await self._answer(sent.is_published)

    def acknowledge(self, message: MQTTMessage) -> None:
        """Let the broker forget a message; if the connection is gone it will come again."""
        self._client.ack(message.mid, message.qos)

    async def _answer(self, done: Callable[[], bool]) -> None:
        """Wait for an answer of the broker; the messages that it sends before it are all read."""
        self._asking = True
        self._room.set()
        try:
            async with asyncio.timeout(self._timeout):
                await self._until(done)
        except TimeoutError:
            raise TimeoutError(f"the broker did not answer within {self._timeout:g} s") from None
        finally:
            self._asking = False

    async def _until(self, done: Callable[[], bool]) -> None:
        """Wait for what is read to make something so."""
        while not done():
            if self._ended:
                raise ConnectionError(self._why or "the connection to the broker is gone")
            self._news.clear()
            await self._news.wait()

    async def _keep_reading(self) -> None:
        """Read, and let paho look after the connection once a second, until it is gone."""
        try:
            while (socket := self._client.socket()) is not None:
                await self._room.wait()
                if not isinstance(socket, ssl.SSLSocket) or not socket.pending():
                    await _readable(socket, _TURN)
                self._read()
                self._news.set()
        except Exception as error:
            self._why = f"{type(error).__name__}: {error}"
        finally:
            self._ended = True
            self._news.set()

    def _read(self) -> None:
        """Read what is there, but leave the others on the loop their turn; paho notes what goes wrong."""
        most = math.inf if self._asking else self._most
        before, last = -1, len(self._messages) + _AT_ONCE
        while before < len(self._messages) < min(most, last):
            before = len(self._messages)
            self._client.loop_read()
        if len(self._messages) >= most:
            self._room.clear()
        if self._client.want_write():
            self._client.loop_write()
        self._client.loop_misc()

    def _on_connect(self, _: Client, __: Any, ___: Any, code: ReasonCode, ____: Any) -> None:
        self._accepted = not code.is_failure
        if code.is_failure:
            self._why = f"the broker refuses the connection: {code}"

    def _on_disconnect(self, _: Client, __: Any, ___: Any, code: ReasonCode, ____: Any) -> None:
        self._why = self._why or f"the broker closed the connection: {code}"

    def _on_subscribe(self, _: Client, __: Any, ___: int, codes: Sequence[ReasonCode], ____: Any) -> None:
        self._granted = codes

    def _on_message(self, _: Client, __: Any, message: MQTTMessage) -> None:
        self._messages.append(message)


def make_client(
    name: str, *, user: str | None = None, password: str | None = None, tls: ssl.SSLContext | None = None
) -> Client:
    """A client of MQTT 5 that connects once, and acknowledges nothing by itself."""
    newest = MQTTProtocolVersion.MQTTv5
    client = Client(CallbackAPIVersion.VERSION2, name, protocol=newest, reconnect_on_failure=False, manual_ack=True)
    if user is not None:
        client.username_pw_set(user, password)
    if tls is not None:
        tls.sslsocket_class = _Closing
        client.tls_set_context(tls)
    return client


@asynccontextmanager
async def connected(
    client: Client, host: str, port: int = 1883, *, timeout: float = 10.0, most: float = math.inf, **how: Any
) -> AsyncIterator[Broker]:
    """A connection for the length of a block; most: messages that may wait in it, how: more of paho's `connect`."""
    broker = Broker(client, timeout, most)
    client.connect_timeout = timeout
    # in a thread, because names and TLS take their time; it is not waited for if the caller is cancelled
    connecting = asyncio.ensure_future(asyncio.to_thread(client.connect, host, port, **how))
    reading = None
    try:
        await asyncio.shield(connecting)
        reading = asyncio.ensure_future(broker._keep_reading())
        await broker._answer(lambda: broker._accepted)
        yield broker
    finally:
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        connecting.add_done_callback(lambda done: _close(client, done))


def _close(client: Client, connecting: asyncio.Future[Any]) -> None:
    if not connecting.cancelled():
        connecting.exception()  # which the caller has seen, unless it was cancelled before
    client.disconnect()
    if (left := client.socket()) is not None:  # the broker does not even read that we go
        left.close()


async def _readable(socket: Any, seconds: float) -> None:
    """Wait until there is something to read."""
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(socket, there.set)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await there.wait()
    finally:
        loop.remove_reader(socket)
