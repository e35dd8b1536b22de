"""The outbox and what sends it: once, or in doubt, never silently twice and never lost."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa

from eccaht.base.randomness import rng_for
from eccaht.service.alerts import outbox
from eccaht.service.alerts.channels import Channel, NotDelivered, PerhapsDelivered
from eccaht.service.alerts.outbox import Message
from eccaht.service.alerts.sender import Alerts, Sender
from eccaht.service.store import Store, schema
from tests.service.receivers import hooks, webhook
from tests.service.source_tools import until

SECOND = 1_000_000


@dataclass
class Fake:
    """A channel that does as scripted: nothing, or an error, in turn."""

    name: str = "a"
    idempotent: bool = False
    errors: list[Exception | None] = field(default_factory=list)
    got: list[Message] = field(default_factory=list)

    async def send(self, message: Message) -> None:
        self.got.append(message)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error


@dataclass
class Clock:
    now: int = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now


def event(kind: str = "alarm", number: int = 1) -> dict[str, Any]:
    told = {"event": kind, "notice": kind, "number": number}
    return {**told, "time": "2024-05-01T08:00:00", "named": ["x"], "text": "t"}


def put(store: Store, channels: Iterable[str], *events: dict[str, Any], plant: str = "p", now: int = 0) -> None:
    rows = [row for document in events for row in outbox.rows_for(plant, document, channels, now)]
    with store.begin() as connection:
        connection.execute(sa.insert(schema.outbox), rows)


def box(store: Store) -> list[Any]:
    with store.read() as connection:
        return list(connection.execute(sa.select(schema.outbox).order_by(schema.outbox.c.id)).all())


def sender(store: Store, *channels: Channel, now: Callable[[], int], **more: Any) -> Sender:
    return Sender(store, channels, rng=rng_for(1, "alerts"), now=now, **more)


def once(sends: Sender) -> int:
    return asyncio.run(sends.once())


# -- what goes out -------------------------------------------------------------------------------------


def test_only_events_that_are_notices_go_out() -> None:
    documents = [event("alarm", 1), {**event("joined", 2), "notice": None}, {**event("calm", 3), "notice": "over"}]
    rows = [row for document in documents for row in outbox.rows_for("p", document, ["a", "b"], 5)]
    assert [(row["kind"], row["channel"]) for row in rows] == [
        ("alarm", "a"), ("alarm", "b"), ("over", "a"), ("over", "b"),
    ]  # fmt: skip
    assert {(row["status"], row["tries"], row["next_at"]) for row in rows} == {("queued", 0, 5)}


def test_the_key_is_the_same_for_the_same_message_and_no_other() -> None:
    def key(*, plant: str = "p", channel: str = "a", **changed: Any) -> str:
        return str(outbox.rows_for(plant, {**event(), **changed}, [channel], now=7)[0]["document"]["key"])

    others = [
        key(plant="q"),
        key(channel="b"),
        key(number=2),
        key(time="2025"),
        key(notice="over"),
        key(plant="p\0001"),
    ]
    assert key() == outbox.rows_for("p", event(), ["a"], now=99)[0]["document"]["key"]
    assert len({key(), *others}) == 7


def test_a_message_is_sent_once(store: Store) -> None:
    channel, clock = Fake(), Clock()
    put(store, ["a"], event("alarm", 1), event("over", 2))
    sends = sender(store, channel, now=clock)
    assert [once(sends), once(sends)] == [2, 0]
    assert [(message.kind, message.number) for message in channel.got] == [("alarm", 1), ("over", 2)]
    assert [(row.status, row.tries, row.document["sent"]) for row in box(store)] == [("sent", 1, clock.now)] * 2
    again = sender(store, channel, now=clock)  # a restart
    assert once(again) == 0


# -- trying again --------------------------------------------------------------------------------------


def test_it_is_tried_again_later_and_later_and_then_given_up(store: Store) -> None:
    clock, settings = Clock(), Alerts(tries=4, first=10.0, longest=25.0)
    channel = Fake(errors=[NotDelivered("no")] * 9)
    put(store, ["a"], event())
    sends = sender(store, channel, now=clock, settings=settings)
    waits = []
    for _ in range(3):
        assert once(sends) == 1
        (row,) = box(store)
        assert (row.status, row.document["said"]) == ("queued", "no")
        waits.append((row.next_at - clock.now) / SECOND)
        clock.now = row.next_at - 1
        assert once(sends) == 0  # not a moment earlier
        clock.now = row.next_at
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, (10.0, 20.0, 25.0), strict=True))
    assert once(sends) == 1
    (row,) = box(store)
    assert (row.status, row.tries, len(channel.got)) == ("failed", 4, 4)
    clock.now += 10**6 * SECOND
    assert once(sends) == 0
    assert len({message.key for message in channel.got}) == 1


def test_the_end_of_an_alarm_waits_for_its_beginning(store: Store) -> None:
    clock = Clock()
    channel, other = Fake(errors=[NotDelivered("no")]), Fake("b")
    put(store, ["a", "b"], event("alarm", 1), event("over", 2))
    put(store, ["a"], event("alarm", 1), plant="q")
    sends = sender(store, channel, other, now=clock, settings=Alerts(first=10.0))
    once(sends)
    assert [(m.plant, m.kind) for m in channel.got] == [("p", "alarm"), ("q", "alarm")]
    assert [m.kind for m in other.got] == ["alarm", "over"]  # another channel has its own order
    clock.now += 10 * SECOND
    once(sends)
    assert [(m.plant, m.kind) for m in channel.got[2:]] == [("p", "alarm"), ("p", "over")]


def test_a_beginning_that_failed_or_is_doubtful_does_not_hold_back_the_end(store: Store) -> None:
    channel = Fake(errors=[PerhapsDelivered("?"), NotDelivered("no")])
    put(store, ["a"], event("alarm", 1), event("alarm", 2), event("over", 3))
    once(sender(store, channel, now=Clock(), settings=Alerts(tries=1)))
    assert [row.status for row in box(store)] == ["doubtful", "failed", "sent"]


# -- doubt ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [PerhapsDelivered("?"), RuntimeError("a fault of the channel")])
def test_a_doubt_is_left_where_twice_would_be_seen_and_resolved_where_not(store: Store, error: Exception) -> None:
    clock = Clock()
    mail, hook = Fake("mail", False, [error]), Fake("hook", True, [error])
    put(store, ["mail", "hook"], event())
    sends = sender(store, mail, hook, now=clock, settings=Alerts(first=1.0))
    once(sends)
    assert {row.channel: row.status for row in box(store)} == {"mail": "doubtful", "hook": "queued"}
    clock.now += 3600 * SECOND
    once(sends)
    assert {row.channel: row.status for row in box(store)} == {"mail": "doubtful", "hook": "sent"}
    assert (len(mail.got), len(hook.got)) == (1, 2)
    assert hook.got[0].key == hook.got[1].key


def test_a_channel_that_never_answers_is_left_in_time(store: Store) -> None:
    class Deaf(Fake):
        async def send(self, message: Message) -> None:
            self.got.append(message)
            await asyncio.sleep(60.0)

    put(store, ["a"], event())
    once(sender(store, Deaf(), now=Clock(), settings=Alerts(timeout=0.05)))
    (row,) = box(store)
    assert (row.status, row.document["said"]) == ("doubtful", "no answer within 0.05 s")


class Died(BaseException):
    """As if the process was killed: nothing is caught, nothing is written."""


@pytest.mark.parametrize("idempotent", [False, True])
def test_after_a_crash_the_message_is_doubtful(store: Store, idempotent: bool) -> None:
    clock = Clock()

    class Dying(Fake):
        async def send(self, message: Message) -> None:
            self.got.append(message)
            raise Died

    put(store, ["a"], event())
    with pytest.raises(Died):
        once(sender(store, Dying("a", idempotent), now=clock))
    assert [row.status for row in box(store)] == ["sending"]
    channel = Fake("a", idempotent)
    sends = sender(store, channel, now=clock)
    assert once(sends) == 0  # perhaps the other one is still at it
    clock.now += 91 * SECOND
    assert once(sends) == (1 if idempotent else 0)
    (row,) = box(store)
    assert (row.status, row.tries) == (("sent", 2) if idempotent else ("doubtful", 1))
    assert "without saying" in row.document["said"]


def test_whoever_was_away_for_too_long_does_not_overwrite_the_other(store: Store) -> None:
    clock = Clock()
    put(store, ["a"], event())
    with store.begin() as connection:
        slow = outbox.take(connection, "a", clock.now, lease=10)
        assert slow is not None
    assert once(sender(store, Fake("a", idempotent=True), now=lambda: clock.now + 11)) == 1
    with store.begin() as connection:
        assert not outbox.settle(connection, slow, "queued", clock.now, said="late")
    assert [row.status for row in box(store)] == ["sent"]


# -- many senders --------------------------------------------------------------------------------------


def test_several_senders_send_everything_once_and_in_order(store: Store) -> None:
    plants, events = 5, 8
    for plant in range(plants):
        put(store, ["a"], *(event("alarm" if k % 2 else "over", k) for k in range(1, events + 1)), plant=f"p{plant}")
    got: list[tuple[str, int]] = []

    class Noting(Fake):
        async def send(self, message: Message) -> None:
            await asyncio.sleep(0.001)
            got.append((message.plant, message.number))

    async def all_at_once() -> None:
        senders = [sender(store, Noting(), now=Clock(), pause=0.01) for _ in range(4)]
        for one in senders:
            one.start()
        await until(lambda: len(got) >= plants * events)
        for one in senders:
            await one.stop()

    asyncio.run(all_at_once())
    assert set(Counter(got).values()) == {1}
    for plant in range(plants):
        assert [number for name, number in got if name == f"p{plant}"] == list(range(1, events + 1))
    assert {row.status for row in box(store)} == {"sent"}


def test_a_store_that_is_away_for_a_moment_leaves_no_doubt(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, ["a"], event())
    channel, sends, away = Fake(), None, [2]
    begin = store.begin

    def failing() -> Any:
        if channel.got and away[0]:
            away[0] -= 1
            raise sa.exc.OperationalError("", {}, Exception("away"))
        return begin()

    monkeypatch.setattr(store, "begin", failing)
    sends = sender(store, channel, now=Clock(), pause=0.01)
    assert once(sends) == 1
    assert (away, len(channel.got), [row.status for row in box(store)]) == ([0], 1, ["sent"])


def test_a_webhook_that_fails_at_first_gets_one_message_by_its_key(store: Store) -> None:
    """From the outbox through a real connection, with everything that goes wrong on the way."""
    clock = Clock()
    with hooks(500, "hang up", 302, 200) as kept:
        put(store, ["hook"], event("alarm", 1), event("over", 2))
        sends = sender(store, webhook(kept.url, "s", name="hook"), now=clock, settings=Alerts(first=1.0, longest=1.0))
        for _ in range(6):
            once(sends)
            clock.now += 2 * SECOND
    numbers = [json.loads(body)["number"] for _, body in kept.got]
    assert numbers == [1, 1, 1, 1, 2]
    assert len({headers["Idempotency-Key"] for headers, _ in kept.got}) == 2
    assert [row.status for row in box(store)] == ["sent", "sent"]
