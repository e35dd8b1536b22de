"""Events of made-up watchers: they must add up to what the watchers said."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest

from eccaht.base.clock import PLAIN, Clock
from eccaht.base.codec import built, state_of
from eccaht.plants.watch.events import SETTLED, Event, ReportedState, Standing, events_of
from eccaht.streams.watch.alarm import Alarm

NAMES = tuple("abcdef")
START, MINUTE = np.datetime64("2024-05-01T08:00", "us"), np.timedelta64(60_000_000, "us")


def alarm(raised: int, named: Iterable[str], kinds: tuple[str, ...] = (), sizes: tuple[float, ...] = ()) -> Alarm:
    names, when = tuple(named), START + raised * MINUTE
    n = len(names)
    return Alarm(
        time=when,
        onset=when,
        onset_interval=(when, when),
        decision=np.array([NAMES.index(name) for name in names]),
        names=names,
        sizes=np.array(sizes or (1.5,) * n),
        kinds=kinds or ("step",) * n,
        beliefs=np.full(len(NAMES), 0.9),
    )


def all_events(standings: Iterable[Standing], reported: ReportedState | None = None) -> list[Event]:
    now, events = reported or ReportedState(), []
    for standing in standings:
        new, now = events_of(now, standing, PLAIN)
        assert built(ReportedState, state_of(now), {}) == now
        assert [built(Event, state_of(event), {}) for event in new] == new
        events += new
    return events


def made_up(seed: int, windows: int = 400) -> list[Standing]:
    """Alarms that come and go with sets that change, and sensors that fall silent, by chance."""
    rng = np.random.default_rng(seed)
    standings: list[Standing] = []
    raised, members = None, set[str]()
    for t in range(windows):
        if raised is None and rng.random() < 0.05:
            raised, members = t, {*rng.choice(NAMES, 2, replace=False).tolist()}
        elif raised is not None and rng.random() < 0.05:
            raised = t if rng.random() < 0.2 else None  # at times the next one follows at once
        elif rng.random() < 0.3:
            members = (members ^ {str(rng.choice(NAMES))}) or members
        silent = dict.fromkeys(rng.choice(NAMES, 2).tolist(), START) if rng.random() < 0.3 else {}
        now = None if raised is None else alarm(raised, sorted(members))
        standings.append(Standing(START + t * MINUTE, now, silent, late=int(rng.random() < 0.2)))
    return standings


@pytest.mark.parametrize("seed", range(5))
def test_every_alarm_is_over_once_and_changes_add_up_to_the_set(seed: int) -> None:
    standings = made_up(seed)
    events = all_events([*standings, Standing(standings[-1].time + MINUTE)])
    course = [event.event for event in events if event.event in ("alarm", "over")]
    assert course == ["alarm", "over"] * (len(course) // 2)
    assert len(course) > 4
    named: set[str] = set()
    for event in events:
        if event.event == "alarm":
            assert not named
            named = set(event.named)
        elif event.event == "joined":
            assert not named & {*event.sensors}
            named |= {*event.sensors}
        elif event.event == "left":
            assert named >= {*event.sensors}
            named -= {*event.sensors}
        elif event.event == "over":
            assert named == {*event.named}
            named = set()
        else:
            continue
        if event.event == "joined":
            left = [e for e in events if e.event == "left" and e.time == event.time]
            assert {*event.named} == named - {name for e in left for name in e.sensors}
        elif event.event != "over":
            assert {*event.named} == named


@pytest.mark.parametrize("seed", range(3))
def test_silence_is_reported_when_it_begins_and_when_it_ends(seed: int) -> None:
    standings = made_up(seed)
    events = all_events(standings)
    for name in NAMES:
        reported = [e.event for e in events if e.event in ("silent", "speaking") and name in e.sensors]
        silent = [False, *(name in standing.silent for standing in standings)]
        changes = ["silent" if after else "speaking" for before, after in pairwise(silent) if before != after]
        assert reported == changes


def test_a_set_that_flickers_is_not_reported() -> None:
    sets = ["ab", *(["abc"] * (SETTLED - 1)), "ab", *(["a"] * (SETTLED - 1)), "ab", *(["abd"] * SETTLED)]
    events = all_events(Standing(START + t * MINUTE, alarm(0, names)) for t, names in enumerate(sets))
    assert [(e.event, e.sensors, e.named) for e in events] == [
        ("alarm", ("a", "b"), ("a", "b")),
        ("joined", ("d",), ("a", "b", "d")),
    ]
    assert events[1].time == str((START + (len(sets) - 1) * MINUTE).astype("datetime64[s]"))


def test_late_rows_that_go_on_are_reported_once() -> None:
    late = [0, 2, 3, 1, 0, 4]
    events = all_events(Standing(START + t * MINUTE, late=n) for t, n in enumerate(late))
    assert [(event.event, event.count) for event in events] == [("late", 2), ("late", 4)]


def test_an_alarm_is_never_without_a_sensor() -> None:
    sets = ["ab", "c", "c", "cd", "cd", "cd", "cd"]
    events = all_events(Standing(START + t * MINUTE, alarm(0, names)) for t, names in enumerate(sets))
    assert [event.named for event in events] == [("a", "b"), ("c", "d"), ("c", "d")]


def test_a_gap_and_shelved_sensors() -> None:
    standings = [Standing(START, shelved=frozenset("a")), Standing(START + 5 * MINUTE, missed=4)]
    events, reported = events_of(ReportedState(), standings[0], Clock("+02:00"))
    assert [(event.event, event.sensors, event.time) for event in events] == [
        ("shelved", ("a",), "2024-05-01T10:00:00+02:00")
    ]
    events, _ = events_of(reported, standings[1], PLAIN)
    found = [(event.event, event.count, event.sensors) for event in events]
    assert found == [("gap", 4, ()), ("unshelved", None, ("a",))]


def test_a_size_has_a_sign_unless_it_is_a_spread() -> None:
    kinds, sizes = ("step", "drift", "noise", "replay", "stuck"), (1.5, -2.0, 0.7, 1.25, np.nan)
    (event,) = all_events([Standing(START, alarm(0, "abcde", kinds, sizes))])
    assert event.sizes == (1.5, -2.0, 0.7, 1.25, None)
    assert "a (step +1.5), b (drift -2), c (noise 0.7), d (replay 1.25), e (stuck)" in event.text
