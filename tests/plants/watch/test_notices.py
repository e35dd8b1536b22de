"""Which events go out: what sets the state to alarm, once, and its end, once; what flaps, once an hour."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from eccaht.base.clock import PLAIN
from eccaht.base.codec import restore, state_of
from eccaht.plants.data.windows import Sample
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.notices import CALM, Notices
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session
from tests.plants.watch.plants import plant, readings, scaled

START = np.datetime64("2024-05-01T08:00", "us")
MINUTE = np.timedelta64(60_000_000, "us")


def told(wrong: Sequence[Mapping[str, Sequence[str]]]) -> list[tuple[int, str, tuple[str, ...]]]:
    """What goes out in windows of a minute in which these are wrong: the window, what it is called, and the sensors."""
    notices, found = Notices(60.0), []
    notices.on = True
    before: Mapping[str, Sequence[str]] = {}
    for t, now in enumerate(wrong):
        events = [
            Event(kind, "", "", sensors=new)  # type: ignore[arg-type]
            for kind, names in now.items()
            if (new := tuple(sorted({*names} - {*before.get(kind, ())})))
        ]
        found += [(t, event) for event in notices.step(events, now, START + t * MINUTE, PLAIN)]
        kept = Notices(60.0)
        restore(kept, state_of(notices), {})
        notices, before = kept, now
    return [(t, event.notice, event.sensors) for t, event in found if event.notice is not None]


def test_a_state_is_told_once_when_it_begins_and_once_when_it_has_ended() -> None:
    wrong = [{}, {"alarm": "ab"}, {"alarm": "abc"}, {"alarm": "ab", "stuck": "d"}, {"stuck": "d"}, *[{}] * (CALM + 5)]
    assert told(wrong) == [
        (1, "alarm", ("a", "b")),
        (3, "alarm", ("d",)),  # another way of being wrong
        (5 + CALM, "over", ("a", "b", "c", "d")),
    ]


def test_a_state_that_comes_to_concern_many_more_sensors_is_told_again() -> None:
    many = [f"s{k}" for k in range(199)]
    assert told([{"silent": ["s0"]}, {"silent": ["s0", "s1"]}, {"silent": many}]) == [
        (0, "alarm", ("s0",)),
        (2, "alarm", tuple(sorted({*many} - {"s0", "s1"}))),
    ]


@pytest.mark.parametrize("every", [2, 7, 20, 45])
def test_what_flaps_is_told_once_an_hour_at_most(every: int) -> None:
    """Six hours of spikes of one window: the first one, its end, and one an hour."""
    wrong = [{"alarm": "a"} if t % every == 0 else {} for t in range(360)] + [{}] * 90
    found = told(wrong)
    assert found[0] == (0, "alarm", ("a",))
    assert len(found) <= 2 + 6 + 1
    assert found[-1][1] == "over"
    assert {kind for _, kind, _ in found[1:]} <= {"repeats", "over"}
    repeats = [t for t, kind, _ in found if kind != "over"]
    assert len(repeats) == 1 or np.diff(repeats[1:]).min(initial=60) >= 60 - every


def of(values: np.ndarray) -> tuple[list[Event], list[str]]:
    """What goes out of windows, and what the state is after each."""
    model = plant()[0]
    session, found, states = Session(PlantWatch(model)), list[Event](), list[str]()
    session.notices.on = True
    second = np.timedelta64(round(model.seconds * 1e6), "us")
    for t, row in enumerate(values):
        found += session.take(Sample(START + t * second, row), model.clock)
        states.append(session.watch.state)
    return [event for event in found if event.notice is not None], states


@pytest.mark.parametrize("how", ["silent", "stuck", "range"])
def test_what_sets_the_state_to_alarm_goes_out_and_is_over_when_it_is(how: str) -> None:
    """All sensors but one fail in a way that is wrong by itself, for hundreds of windows."""
    values = scaled(readings(700, 3))
    failed = {"silent": np.full_like(values[99, 1:], np.nan), "stuck": values[99, 1:], "range": values[99, 1:] + 1e4}
    values[100:500, 1:] = failed[how]
    notices, states = of(values)
    alarmed = [t for t, state in enumerate(states) if state == "alarm"]
    kinds = [event.notice for event in notices]
    assert kinds[0] == "alarm"
    assert kinds.count("over") == 1
    assert kinds[-1] == "over"
    assert len(kinds) <= 5
    assert {event.event for event in notices} >= {how, "calm"}
    grouped = next(event for event in notices if event.event == how)
    assert set(grouped.sensors) == set(plant()[0].names[1:])
    assert alarmed[0] >= 100
