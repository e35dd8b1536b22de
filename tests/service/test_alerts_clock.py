"""Alerts while the clock of the machine is set back: none waits until the clock is there again."""

from eccaht.service.alerts import outbox
from eccaht.service.alerts.channels import NotDelivered
from eccaht.service.alerts.sender import Alerts
from eccaht.service.store import Store
from tests.service.test_alerts import SECOND, Clock, Fake, box, event, once, put, sender

HOUR = 3600 * SECOND


def test_an_alert_of_a_clock_that_was_ahead_goes_out_at_once(store: Store) -> None:
    channel, clock = Fake(), Clock()
    put(store, ["a"], event(), now=clock.now + 60 * SECOND)
    put(store, ["a"], event(number=2), now=clock.now + HOUR)
    assert once(sender(store, channel, now=clock)) == 2
    assert [row.status for row in box(store)] == ["sent", "sent"]


def test_the_next_try_does_not_wait_for_a_clock_that_was_set_back(store: Store) -> None:
    channel, clock = Fake(errors=[NotDelivered("no")]), Clock()
    put(store, ["a"], event())
    sends = sender(store, channel, now=clock, settings=Alerts(longest=60.0))
    assert once(sends) == 1
    clock.now -= HOUR
    assert once(sends) == 1
    assert [row.status for row in box(store)] == ["sent"]


def test_what_a_sender_left_behind_does_not_wait_for_a_clock_that_was_set_back(store: Store) -> None:
    channel, clock = Fake(), Clock()
    put(store, ["a"], event(), event("over", 2))
    with store.begin() as connection:
        assert outbox.take(connection, "a", clock.now + HOUR, lease=90 * SECOND) is not None
    assert once(sender(store, channel, now=clock)) == 1
    assert [row.status for row in box(store)] == ["doubtful", "sent"]


def test_a_message_that_another_service_is_sending_is_left_to_it(store: Store) -> None:
    channel, clock = Fake(), Clock()
    put(store, ["a"], event())
    with store.begin() as connection:  # its clock is some minutes ahead
        assert outbox.take(connection, "a", clock.now + 300 * SECOND, lease=90 * SECOND) is not None
    assert once(sender(store, channel, now=clock)) == 0
    assert [row.status for row in box(store)] == ["sending"]
