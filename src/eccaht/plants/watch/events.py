"""What a watcher finds from window to window, as events: alarms, who joins and leaves them, silence, gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np

from eccaht.base.archive import check_keys
from eccaht.base.arrays import as_count
from eccaht.base.clock import Clock
from eccaht.base.presentation.text import counted, listed
from eccaht.plants.data.windows import Sample
from eccaht.plants.incident.kinds import SPREADS
from eccaht.streams.watch.alarm import State

Kind = Literal[
    "started", "alarm", "joined", "left", "over", "back", "silent", "speaking", "stuck", "moving", "range", "in range",
    "moved", "caution", "gap", "late", "no-data", "data-back", "shelved", "unshelved",
    "acknowledged", "new-normal", "stopped",
]  # fmt: skip
Still = Literal["stuck", "silent", "range"]
STILL: tuple[Still, ...] = get_args(Still)
SETTLED = 3  # windows for which a sensor must be in the set, or out of it, until that is reported


@dataclass(frozen=True)
class ActiveAlarm:
    """An alarm as it is now, with times instead of numbers of windows.

    raised, onset, first, last: starts of windows: that which raised it, the most likely first one of the fault, and the
    ends of the onset's interval. named, kinds, sizes, beliefs: one for each sensor of the set; sizes in units of the
    readings, None where there is none. confidence: of the whole set, None where it was not counted.
    """

    raised: np.datetime64
    onset: np.datetime64
    first: np.datetime64
    last: np.datetime64
    named: tuple[str, ...]
    kinds: tuple[str, ...]
    sizes: tuple[float | None, ...]
    beliefs: tuple[float, ...]
    confidence: float | None = None


class Watcher(Protocol):
    """What watches a plant, whatever it is made of.

    names: the K sensors. state: "quiet", "suspicious" or "alarm". evidence: 1 raises an alarm. fault: the alarm as it
    is now, None if there is none.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The sensors."""

    @property
    def state(self) -> State:
        """Where it stands."""

    @property
    def evidence(self) -> float:
        """How unusual the last windows are."""

    @property
    def fault(self) -> ActiveAlarm | None:
        """The alarm as it is now."""

    @property
    def false_alarm_every(self) -> float:
        """The mean time to a false alarm, in windows."""

    @property
    def deviations(self) -> Mapping[str, float]:
        """How far the sensors of the alarm moved, in robust units."""

    def still(self, kind: Still) -> dict[str, np.datetime64]:
        """Sensors that are stuck, silent or out of range now, and since when."""

    @property
    def changed(self) -> bool:
        """Whether the last alarm was over because its deviation lasts as a change."""

    @property
    def settled(self) -> bool:
        """Whether such a change still lasts."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """Ways in which the readings are unlike the history."""

    def update(self, sample: Sample) -> None:
        """Take a window of all sensors, in robust units, NaN where a sensor is silent."""


@dataclass(frozen=True)
class Standing:
    """How things stand after a window.

    time: start of the window. fault: the alarm, if there is one. silent, stuck, range: sensors that deliver nothing, or
    stand still, for longer than is usual, or lie beyond everything in the history, and since when. changed: whether the
    last alarm ended as a lasting change; settled: whether that lasts. cautions: how readings are unlike the history.
    moved: columns that never changed in the history and do now, with what is to say of each. missed: windows without
    any row just before this one. late: rows, since the window before, that came after their own window was counted.
    thin: whether the window had too few rows to be watched. shelved: sensors left out for a time.
    """

    time: np.datetime64
    fault: ActiveAlarm | None = None
    silent: Mapping[str, np.datetime64] = field(default_factory=dict)
    stuck: Mapping[str, np.datetime64] = field(default_factory=dict)
    range: Mapping[str, np.datetime64] = field(default_factory=dict)
    changed: bool = False
    settled: bool = False
    cautions: tuple[str, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    missed: int = 0
    late: int = 0
    thin: bool = False
    shelved: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Reported:
    """What was reported so far: all of the past that the next events depend on.

    raised: of the alarm that goes on, None without one; onset, named: its onset and its set as last reported.
    waiting: sensors that are in the set and were not reported, or the reverse, and for how many windows. lasting: the
    sensors of a change that lasts. cautions: those that were given.
    late: whether the window before had late rows. thin: windows in a row, up to `SETTLED`, that had too few rows.
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
    lasting: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    late: bool = False
    thin: int = 0

    def header(self) -> dict[str, Any]:
        return {
            "raised": _stored(self.raised),
            "onset": _stored(self.onset),
            "named": list(self.named),
            "waiting": dict(self.waiting),
            **{name: sorted(getattr(self, name)) for name in ("silent", "stuck", "range", "shelved", "moved")},
            **{name: list(getattr(self, name)) for name in ("lasting", "cautions")},
            "late": self.late,
            "thin": self.thin,
        }

    @staticmethod
    def build(header: Any) -> Reported:
        check_keys(header, {part.name for part in fields(Reported)}, "list of what was reported")
        lists = ("named", "lasting", "cautions", "silent", "stuck", "range", "shelved", "moved")
        texts = [header["waiting"], *(header[name] for name in lists)]
        if not all(isinstance(text, str) for names in texts for text in names) or type(header["late"]) is not bool:
            raise ValueError("its list of what was reported is damaged")
        waiting = header["waiting"]
        if not isinstance(waiting, dict) or not all(type(n) is int and 0 < n < SETTLED for n in waiting.values()):
            raise ValueError("its list of what was reported is damaged")
        parts: dict[str, Any] = {name: tuple(header[name]) for name in lists[:3]}
        parts |= {name: frozenset(header[name]) for name in lists[3:]}
        return Reported(
            raised=_built(header["raised"]),
            onset=_built(header["onset"]),
            waiting=waiting,
            **parts,
            late=header["late"],
            thin=as_count(header["thin"], "thin", least=0),
        )


@dataclass(frozen=True)
class Event:
    """Something that people or programs should know.

    time: start of the window that shows it, ISO 8601. text: one line for people. number: of the event since the watch
    began, None for what the program does itself. onset, onset_interval: of the fault. named: the set as it is now;
    kinds, sizes, beliefs: of each sensor in it, where that is known; confidence: of the whole set. sensors: those the
    event is about. count: windows that are missing, or rows that were late.
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

    def document(self) -> dict[str, Any]:
        """As values of JSON."""
        return asdict(self)

    @staticmethod
    def build(document: Any) -> Event:
        """From what `document` gave, perhaps by way of a file."""
        check_keys(document, {part.name for part in fields(Event)}, "event")
        texts = [document["event"], document["time"], document["text"]]
        if not all(isinstance(text, str) for text in texts) or document["event"] not in get_args(Kind):
            raise ValueError("its event is damaged")
        lists = {name: tuple(value) for name, value in document.items() if isinstance(value, list)}
        return Event(**{**document, **lists})


def iso(clock: Clock, time: np.datetime64) -> str:
    """A time for programs.

    >>> iso(Clock("+02:00"), np.datetime64("2024-05-01T06:00")), iso(Clock(row_interval=1.0), np.datetime64(4, "s"))
    ('2024-05-01T08:00:00+02:00', 'row 5')
    """
    text = clock.exact(time)
    return text if clock.row_interval is not None else text.replace(" ", "T")


def events_of(reported: Reported, now: Standing, clock: Clock) -> tuple[list[Event], Reported]:
    """The events of a window, given what was reported before it; and what is reported after it.

    A sensor joins or leaves an alarm once it has been in its set, or out of it, for `SETTLED` windows in a row.
    Every alarm has one `over`. Silent and stuck sensors, gaps and late rows are reported as they begin. What ends as a
    lasting change is `back` once it no longer lasts.
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
    if reported.lasting and not now.settled:
        events.append(
            Event("back", stamp, f"back: {listed(reported.lasting)} as before the change", sensors=reported.lasting)
        )
        reported = replace(reported, lasting=())
    reported = replace(
        reported,
        silent=frozenset(now.silent),
        stuck=frozenset(now.stuck),
        range=frozenset(now.range),
        cautions=now.cautions,
        moved=reported.moved | frozenset(now.moved),
        shelved=now.shelved,
        late=now.late > 0,
        thin=min(reported.thin + 1, SETTLED) if now.thin else 0,
    )
    fault = now.fault
    if reported.raised is not None and (fault is None or fault.raised != reported.raised):
        events.append(_over(reported, now, clock))
        lasting = reported.named if now.changed and now.settled else ()
        reported = replace(reported, raised=None, onset=None, named=(), waiting={}, lasting=lasting)
    if fault is None:
        return events, reported
    if reported.raised is None:
        events.append(_of_fault("alarm", fault, fault.named, stamp, clock))
        return events, replace(reported, raised=fault.raised, onset=fault.onset, named=fault.named, waiting={})
    differing = {name: reported.waiting.get(name, 0) + 1 for name in sorted({*fault.named} ^ {*reported.named})}
    changed = {name for name, windows in differing.items() if windows >= SETTLED}
    if {*reported.named} <= changed:  # no set is left: the present one takes its place
        changed |= {*differing}
    named = tuple(name for name in reported.named if name not in changed)
    named += tuple(name for name in fault.named if name in changed)
    for kind, some in (("joined", {*fault.named} & changed), ("left", changed - {*fault.named})):
        if some:
            events.append(_of_fault(kind, fault, named, stamp, clock, sorted(some)))
    waiting = {name: windows for name, windows in differing.items() if name not in changed}
    return events, replace(reported, onset=fault.onset, named=named, waiting=waiting)


def _of_the_record(reported: Reported, now: Standing, clock: Clock) -> Iterator[Event]:
    """Windows that are missing, and rows that came too late."""
    stamp = iso(clock, now.time)
    if now.missed:
        text = f"gap: {counted(now.missed, 'window')} without any row before {clock.show(now.time)}"
        yield Event("gap", stamp, text, count=now.missed)
    if now.thin and reported.thin == SETTLED - 1:
        text = f"gap: too few rows in the last {SETTLED} windows, which are not watched until there are more"
        yield Event("gap", stamp, text, count=SETTLED)
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
    """Sensors that stopped or began to deliver or to move, each on its own line with the time."""
    stamp = iso(clock, now.time)
    what = {"silent": "no reading", "stuck": "one value", "range": "beyond everything in the history"}[begun]
    for name in sorted({*since} - before):
        text = f"{begun}: {name}, {what} since {clock.show(since[name])}"
        yield Event(begun, stamp, text, onset=iso(clock, since[name]), sensors=(name,))
    for name in sorted(before - {*since}):
        yield Event(ended, stamp, f"{ended}: {name}{'' if begun == 'range' else ' again'}", sensors=(name,))


def _of_fault(
    kind: Any, fault: ActiveAlarm, named: tuple[str, ...], stamp: str, clock: Clock, some: list[str] | None = None
) -> Event:
    """An alarm, or a change of its set."""
    parts = {
        name: values for name, *values in zip(fault.named, fault.kinds, fault.sizes, fault.beliefs, strict=True)
    }  # fmt: skip
    known = all(name in parts for name in named)  # else one of them has just gone, which is not reported yet
    kinds, sizes, beliefs = zip(*(parts[name] for name in named), strict=True) if known and named else ((), (), ())
    if some is None:
        moved = [f"{name} ({_moved(how, size)})" for name, how, size in zip(named, kinds, sizes, strict=True)]
        text = f"ALARM: {listed(moved)} since {clock.show(fault.onset)}"
    else:
        text = f"{kind}: {listed(some)}; wrong now: {listed(named) or 'none'}"
    return Event(
        kind,
        stamp,
        text,
        onset=iso(clock, fault.onset),
        onset_interval=(iso(clock, fault.first), iso(clock, fault.last)),
        named=named,
        kinds=kinds,
        sizes=sizes,
        beliefs=beliefs,
        confidence=fault.confidence if {*named} == {*fault.named} else None,
        sensors=tuple(named if some is None else some),
    )


def _moved(how: str, size: float | None) -> str:
    return how if size is None else f"{how} {size:{'' if how in SPREADS else '+'}.4g}"


def _over(reported: Reported, now: Standing, clock: Clock) -> Event:
    assert reported.onset is not None
    text = f"over: {listed(reported.named)}, wrong since {clock.show(reported.onset)}"
    still = [name for name in reported.named if name in {*now.stuck, *now.silent}]
    if still:
        text = f"{text}; now {listed(still)} {'stands' if len(still) == 1 else 'stand'} still"
    elif now.changed:
        text = f"{text}; what is left of it lasts as a small change"
    return Event(
        "over",
        iso(clock, now.time),
        text,
        onset=iso(clock, reported.onset),
        named=reported.named,
        sensors=reported.named,
    )


def microseconds(time: np.datetime64) -> int:
    return int(time.astype("datetime64[us]").astype(np.int64))


def moment(number: Any) -> np.datetime64:
    """The time that `microseconds` made this number of."""
    if type(number) is not int or abs(number) > 2**60:
        raise ValueError("a time is damaged")
    return np.datetime64(number, "us")


def _stored(time: np.datetime64 | None) -> int | None:
    return None if time is None else microseconds(time)


def _built(number: Any) -> np.datetime64 | None:
    return None if number is None else moment(number)
