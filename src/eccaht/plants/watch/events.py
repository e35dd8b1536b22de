"""What a watch finds from window to window, as events: alarms, who joins and leaves them, silence, gaps, missing data.

`events_of` compares how things stand after a window with what was reported before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from eccaht.base.clock import Clock
from eccaht.base.codec import Field
from eccaht.base.presentation.text import counted, listed
from eccaht.plants.incident.describe import SPREADS
from eccaht.streams import Alarm, Time

Kind = Literal[
    "started", "alarm", "joined", "left", "changed", "over", "silent", "speaking", "stuck", "moving", "range",
    "in range", "moved", "caution", "gap", "late", "no-data", "data-back", "shelved", "unshelved",
    "acknowledged", "new-normal", "old-normal", "calm", "stopped",
]  # fmt: skip
Notice = Literal["alarm", "repeats", "over", "caution", "no-data", "data-back"]
_FEW = 6  # sensors that need not be counted
SETTLED = 3  # windows for which a sensor must be in the set, or out of it, until that is reported


@dataclass(frozen=True)
class Standing:
    """How things stand after a window.

    time: start of the window. alarm: if there is one, its sizes in units of the readings. silent, stuck, range: sensors
    that deliver nothing, or stand still, for longer than is usual, or lie beyond everything in the history, and since
    when. changed: whether the deviation of the alarm lasts as a change. cautions: how readings
    are unlike the history. moved: columns that never changed in the history and do now, with what is to say of each.
    missed: windows without any row just before this one. late: rows, since the window before, that came after their own
    window was counted. shelved: sensors left out for a time.
    """

    time: np.datetime64
    alarm: Alarm | None = None
    silent: Mapping[str, np.datetime64] = field(default_factory=dict)
    stuck: Mapping[str, np.datetime64] = field(default_factory=dict)
    range: Mapping[str, np.datetime64] = field(default_factory=dict)
    changed: bool = False
    cautions: tuple[str, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    missed: int = 0
    late: int = 0
    shelved: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ReportedState:
    """What was reported so far: all of the past that the next events depend on.

    raised: of the alarm that goes on, None without one; onset, named: its onset and its set as last reported.
    waiting: sensors that are in the set and were not reported, or the reverse, and for how many windows. changed:
    whether the alarm was reported as a change that lasts. cautions: those that were given.
    late: whether the window before had late rows.
    """

    raised: np.datetime64 | None = None
    onset: np.datetime64 | None = None
    named: tuple[str, ...] = ()
    waiting: Mapping[str, int] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    range: frozenset[str] = frozenset()
    shelved: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    changed: bool = False
    cautions: tuple[str, ...] = ()
    late: bool = False

    FIELDS = (
        *(Field(name, (), np.datetime64, optional=True) for name in ("raised", "onset")),
        *(Field(name, (name,), str) for name in ("named", "cautions")),
        *(Field(name, (name,), str, row=frozenset) for name in ("silent", "stuck", "range", "shelved", "moved")),
        Field("waiting", (), int, low=1, high=SETTLED - 1, keyed=True),
        *(Field(name, (), bool) for name in ("late", "changed")),
    )


@dataclass(frozen=True, repr=False)
class Event:
    """Something that people or programs should know.

    time: start of the window that shows it, ISO 8601. text: one line for people. number: of the event since the watch
    began, None for what the program does itself. onset, onset_interval: of the fault. named: the set as it is now;
    kinds, sizes, beliefs: of each sensor in it, where that is known; confidence: of the whole set. sensors: those the
    event is about. count: windows that are missing, or rows that were late. asked: the sensors that a watch with few
    readings asked for in this window. notice: what it is called as an alert, None if it is none (`Notices`).
    """

    event: Kind
    time: str
    text: str
    number: int | None = None
    onset: str | None = None
    onset_interval: tuple[str, str] | None = None
    named: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sizes: tuple[float | None, ...] = ()
    beliefs: tuple[float, ...] = ()
    confidence: float | None = None
    sensors: tuple[str, ...] = ()
    count: int | None = None
    asked: tuple[str, ...] = ()
    notice: Notice | None = None

    FIELDS = (
        Field("event", (), str, among=get_args(Kind)),
        *(Field(name, (), str) for name in ("time", "text")),
        *(Field(name, (), int, optional=True) for name in ("number", "count")),
        Field("onset", (), str, optional=True),
        Field("onset_interval", (2,), str, optional=True),
        *(Field(name, (name,), str) for name in ("named", "kinds", "sensors", "asked")),
        Field("sizes", ("sizes",), optional=True, row=tuple),
        Field("beliefs", ("beliefs",), low=0.0, high=1.0, row=tuple),
        Field("confidence", low=0.0, high=1.0, optional=True),
        Field("notice", (), str, among=get_args(Notice), optional=True),
    )

    def __repr__(self) -> str:
        return f"Event({self.time}: {self.text})"

    def document(self) -> dict[str, Any]:
        """As values of JSON."""
        return asdict(self)


def iso(clock: Clock, time: np.datetime64) -> str:
    """A time for programs.

    >>> iso(Clock("+02:00"), np.datetime64("2024-05-01T06:00")), iso(Clock(row_interval=1.0), np.datetime64(4, "s"))
    ('2024-05-01T08:00:00+02:00', 'row 5')
    """
    text = clock.exact(time)
    return text if clock.row_interval is not None else text.replace(" ", "T")


def events_of(reported: ReportedState, now: Standing, clock: Clock) -> tuple[list[Event], ReportedState]:
    """The events of a window, given what was reported before it; and what is reported after it.

    A sensor joins or leaves an alarm once it has been in its set, or out of it, for `SETTLED` windows in a row.
    Every alarm has one `over`. Silent and stuck sensors, gaps and late rows are reported as they begin. One whose
    deviation lasts is reported as a change, and is over once that is.
    """
    stamp = iso(clock, now.time)
    events = [
        *(Event("caution", stamp, f"caution: {text}") for text in now.cautions if text not in reported.cautions),
        *(
            Event("moved", stamp, f"moved: {name}, {now.moved[name]}", sensors=(name,))
            for name in sorted({*now.moved} - reported.moved)
        ),
        *_of_the_record(reported, now, clock),
        *_changes("shelved", "unshelved", reported.shelved, now.shelved, stamp),
        *_sensors("silent", "speaking", reported.silent, now.silent, now, clock),
        *_sensors("stuck", "moving", reported.stuck, now.stuck, now, clock),
        *_sensors("range", "in range", reported.range, now.range, now, clock),
    ]
    reported = replace(
        reported,
        silent=frozenset(now.silent),
        stuck=frozenset(now.stuck),
        range=frozenset(now.range),
        cautions=now.cautions,
        moved=reported.moved | frozenset(now.moved),
        shelved=now.shelved,
        late=now.late > 0,
    )
    alarm = now.alarm
    if reported.raised is not None and (alarm is None or alarm.time != reported.raised):
        events.append(_over(reported, now, clock))
        reported = replace(reported, raised=None, onset=None, named=(), waiting={}, changed=False)
    if alarm is None:
        return events, reported
    if reported.raised is None:
        events.append(_of_alarm("alarm", alarm, alarm.names, stamp, clock))
        return events, replace(
            reported, raised=dated(alarm.time), onset=dated(alarm.onset), named=alarm.names, waiting={}
        )
    if now.changed and not reported.changed:
        events.append(_of_alarm("changed", alarm, alarm.names, stamp, clock))
    reported = replace(reported, changed=now.changed)
    differing = {name: reported.waiting.get(name, 0) + 1 for name in sorted({*alarm.names} ^ {*reported.named})}
    changed = {name for name, windows in differing.items() if windows >= SETTLED}
    if {*reported.named} <= changed:  # no set is left: the present one takes its place
        changed |= {*differing}
    named = tuple(name for name in reported.named if name not in changed)
    named += tuple(name for name in alarm.names if name in changed)
    for kind, some in (("joined", {*alarm.names} & changed), ("left", changed - {*alarm.names})):
        if some:
            events.append(_of_alarm(kind, alarm, named, stamp, clock, sorted(some)))
    waiting = {name: windows for name, windows in differing.items() if name not in changed}
    return events, replace(reported, onset=dated(alarm.onset), named=named, waiting=waiting)


def _of_the_record(reported: ReportedState, now: Standing, clock: Clock) -> Iterator[Event]:
    """Windows that are missing, and rows that came too late."""
    stamp = iso(clock, now.time)
    if now.missed:
        text = f"gap: {counted(now.missed, 'window')} without any row before {clock.show(now.time)}"
        yield Event("gap", stamp, text, count=now.missed)
    if now.late and not reported.late:
        text = f"late: {counted(now.late, 'row')} came too late for their windows and are left out"
        yield Event("late", stamp, text, count=now.late)


def _changes(begun: Kind, ended: Kind, before: frozenset[str], now: frozenset[str], stamp: str) -> Iterator[Event]:
    for kind, some in ((begun, now - before), (ended, before - now)):
        if some:
            yield Event(kind, stamp, f"{kind}: {listed(sorted(some))}", sensors=tuple(sorted(some)))


def _sensors(
    begun: Kind, ended: Kind, before: frozenset[str], since: Mapping[str, np.datetime64], now: Standing, clock: Clock
) -> Iterator[Event]:
    """Sensors that stopped or began to deliver or to move; those that did so at one time on one line."""
    stamp = iso(clock, now.time)
    what = {"silent": "no reading", "stuck": "one value", "range": "beyond everything in the history"}[begun]
    new = {*since} - before
    for moment in sorted({since[name] for name in new}):
        names = sorted(name for name in new if since[name] == moment)
        text = f"{begun}: {_some(names)}, {what} since {clock.show(moment)}"
        yield Event(begun, stamp, text, onset=iso(clock, moment), sensors=tuple(names))
    if back := sorted(before - {*since}):
        yield Event(ended, stamp, f"{ended}: {_some(back)}{'' if begun == 'range' else ' again'}", sensors=tuple(back))


def _some(names: list[str]) -> str:
    """Sensors, with their number where there are many."""
    return listed(names) if len(names) <= _FEW else f"{len(names)} sensors ({listed(names)})"


def _of_alarm(
    kind: Any, alarm: Alarm, named: tuple[str, ...], stamp: str, clock: Clock, some: list[str] | None = None
) -> Event:
    """An alarm, or a change of its set."""
    moved = [size if np.isfinite(size) else None for size in alarm.sizes.tolist()]
    believed = alarm.beliefs[alarm.decision].tolist()
    parts = {name: values for name, *values in zip(alarm.names, alarm.kinds, moved, believed, strict=True)}
    known = all(name in parts for name in named)  # else one of them has just gone, which is not reported yet
    kinds, sizes, beliefs = zip(*(parts[name] for name in named), strict=True) if known and named else ((), (), ())
    if some is None:
        each = [f"{name} ({_moved(how, size)})" for name, how, size in zip(named, kinds, sizes, strict=True)]
        since = f"{listed(each)} since {clock.show(dated(alarm.onset))}"
        lasts = f"changed: {since}; it lasts, and is an alarm no more"
        text = lasts if kind == "changed" else f"ALARM: {since}"
    else:
        text = f"{kind}: {listed(some)}; wrong now: {listed(named) or 'none'}"
    first, last = alarm.onset_interval
    return Event(
        kind,
        stamp,
        text,
        onset=iso(clock, dated(alarm.onset)),
        onset_interval=(iso(clock, dated(first)), iso(clock, dated(last))),
        named=named,
        kinds=kinds,
        sizes=sizes,
        beliefs=beliefs,
        confidence=alarm.confidence if {*named} == {*alarm.names} else None,
        sensors=tuple(named if some is None else some),
    )


def dated(time: Time) -> np.datetime64:
    """The time of an alarm: windows of which events are made have dates."""
    assert isinstance(time, np.datetime64)
    return time


def _moved(how: str, size: float | None) -> str:
    return how if size is None else f"{how} {size:{'' if how in SPREADS else '+'}.4g}"


def _over(reported: ReportedState, now: Standing, clock: Clock) -> Event:
    assert reported.onset is not None
    text = f"over: {listed(reported.named)}, wrong since {clock.show(reported.onset)}"
    still = [name for name in reported.named if name in {*now.stuck, *now.silent}]
    if still:
        text = f"{text}; now {listed(still)} {'stands' if len(still) == 1 else 'stand'} still"
    return Event(
        "over",
        iso(clock, now.time),
        text,
        onset=iso(clock, reported.onset),
        named=reported.named,
        sensors=reported.named,
    )
