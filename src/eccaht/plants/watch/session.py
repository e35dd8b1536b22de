"""A watch that survives its program: the watch, the operator's orders and the place in the data in one file.

Events are kept in the file before they are reported, and crossed out once they are. At whatever moment the program is
killed, the next one reads the file, reports what is still pending and takes the windows after the last one that was
counted: no event is lost, and none is made twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.clock import PLAIN, Clock, microseconds, parse_duration
from eccaht.base.codec import Field, Part, Sizes, restore, state_of
from eccaht.base.files import archive_bytes, check_keys, parse_archive, read_archive, write_archive
from eccaht.base.presentation.text import counted, did_you_mean, lasting, listed
from eccaht.plants.data.windows import Sample
from eccaht.plants.incident.alarms import STANDING
from eccaht.plants.model.model import Model
from eccaht.plants.tuning import TUNING
from eccaht.plants.watch.events import Event, Kind, ReportedState, Standing, dated, events_of, iso
from eccaht.plants.watch.hearing import Hearing
from eccaht.plants.watch.notices import Notices
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.state import built_plant, plant_state

_KIND, _VERSION = "watch-state", 4
_FROZEN = "nothing moves: every sensor repeats its value: check its source"
_FEW = 0.005  # share of the windows of a history: fewer missing ones are no habit
_RATE = re.compile(r"\s*([1-9]\d{0,5})\s*/\s*([\d.].*?)\s*")
_IN_WINDOWS = re.compile(r"([1-9]\d{0,11})\s*w")


class Operator:
    """What operators ordered for K sensors: one is out of service, an alarm is known, this is normal from now on.

    `apply` carries it out on each window before it is watched.

    shelved: sensors that bear no evidence, and until when. offsets: (K,), what is normal from now on less what was, in
    the units of the windows. acknowledged: when the alarm was raised that is known, None if none is. called: when the
    last alarm was raised whose state was called normal; before: the offsets before that, None if it was taken back.

    >>> operator = Operator(["a", "b"])
    >>> operator.shelve("b", np.datetime64("2024-05-01T10:00"))
    >>> operator.apply(np.array([1.0, 2.0]), np.datetime64("2024-05-01T09:59"))
    array([ 1., nan])
    >>> operator.apply(np.array([1.0, 2.0]), np.datetime64("2024-05-01T10:00"))
    array([1., 2.])
    """

    FIELDS = (
        Field("shelved", (), np.datetime64, keyed=True),
        Field("offsets", ("K",)),
        *(Field(name, (), np.datetime64, optional=True) for name in ("acknowledged", "called")),
        Field("before", ("K",), optional=True),
    )

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.shelved: dict[str, np.datetime64] = {}
        self.offsets = np.zeros(len(self.names))
        self.acknowledged: np.datetime64 | None = None
        self.called: np.datetime64 | None = None
        self.before: Array | None = None

    def shelve(self, name: str, until: np.datetime64) -> None:
        """Leave a sensor out until a time."""
        if name not in self.names:
            raise ValueError(f"there is no sensor {name!r} to shelve{did_you_mean(name, self.names)}")
        self.shelved[name] = until.astype("datetime64[us]")

    def unshelve(self, name: str) -> None:
        if name not in self.shelved:
            raise ValueError(f"the sensor {name!r} is not shelved")
        del self.shelved[name]

    def apply(self, x: Array, time: np.datetime64) -> Array:
        self.shelved = {name: until for name, until in self.shelved.items() if until > time}
        watched = x - self.offsets
        watched[[self.names.index(name) for name in self.shelved]] = np.nan
        return watched

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        for name, until in self.shelved.items():
            self.shelve(name, until)


class Session:
    """One plant watched from one program to the next.

    digest: of the model's file, so that a state is never used with another model.
    position: start of the last window that was counted, None before the first. windows: how many were counted.
    number: of the last event. pending: events that may not have been reported yet. obeyed: lines of a file of orders
    that were read. hearing: whether the plant is watched. notices: what goes out to people.
    """

    FIELDS = (
        Field("position", (), np.datetime64, optional=True),
        Field("windows", (), int),
        Field("number", (), int),
        Field("obeyed", (), int),
        Part("reported", ReportedState),
        Part("operator"),
        Part("hearing"),
        Part("notices"),
        Part("pending", Event, many=True),
    )

    def __init__(self, watch: PlantWatch, digest: str = "") -> None:
        self.watch, self.model, self.digest = watch, watch.model, digest
        self.operator, self.reported = Operator(self.model.names), ReportedState()
        self.hearing = Hearing(self.model.usual_rows, self.model.seconds)
        self.notices = Notices(self.model.seconds)
        self.position: np.datetime64 | None = None
        self.windows = self.number = self.obeyed = 0
        self.pending: tuple[Event, ...] = ()

    def take(self, sample: Sample, clock: Clock = PLAIN) -> list[Event]:
        """Take a window of all sensors, in robust units; return its events, which are pending from now on.

        A window that was counted already is refused. One with less than half of the usual rows, whose means are noisier
        than the history's, is not judged.
        """
        time = sample.start
        if self.position is not None and time <= self.position:
            raise ValueError(f"the window of {clock.show(time)} was counted before")
        watch, values = self.watch, self.operator.apply(sample.values, time)
        shelved, rows = frozenset(self.operator.shelved), None if sample.rows is None else float(sample.rows.max())
        watch.shelve(shelved)
        missed, why = self._missed(time), self._unjudged(values, rows)
        if why is None or np.isnan(values).all():
            watch.take(values, time.astype("datetime64[us]"))
            if why is None and watch.is_frozen(self.hearing.why == _FROZEN):
                why = _FROZEN
        self.hearing.took(sample.late, round(rows or 0), why, missed)
        free: dict[str, Any] = {kind: getattr(self.reported, kind) - shelved for kind in STANDING}
        now = Standing(
            time,
            watch.in_units(watch.alarm),
            changed=watch.changed,
            cautions=watch.cautions,
            moved={each.name: each.text(clock) for each in sample.moved},
            missed=missed,
            late=sample.late,
            shelved=shelved,
            **{kind: watch.still(kind) for kind in STANDING},
        )
        events, self.reported = events_of(replace(self.reported, **free), now, clock)
        wrong = {kind: getattr(now, kind) for kind in STANDING} | {"alarm": now.alarm.names if now.alarm else ()}
        events = self.notices.step(events, wrong, time, clock)
        self.position, self.windows = time, self.windows + 1
        return self._keep([replace(event, asked=watch.asked) for event in events] if watch.asked else events)

    def obey(self, order: str, time: np.datetime64, clock: Clock = PLAIN) -> list[Event]:
        """Carry out what an operator writes before the window at `time`; return its events, pending from now on.

        "shelve NAME TIME" leaves a sensor out for a time such as 2h, "unshelve NAME" takes it back, "acknowledge" and
        "normal" are about the alarm, and "restore" takes the last "normal" back.
        """
        word, _, rest = order.strip().partition(" ")
        if word == "shelve":
            name, _, length = rest.strip().rpartition(" ")
            lasting = np.timedelta64(round(parse_duration(length, "the time") * 1e6), "us")
            self.operator.shelve(name.strip(), time + lasting)
            return []
        if word == "unshelve":
            self.operator.unshelve(rest.strip())
            return []
        plain = {"acknowledge": self.acknowledge, "normal": self.call_normal, "restore": self.restore}
        if rest or word not in plain:
            raise ValueError("write 'shelve NAME 2h', 'unshelve NAME', 'acknowledge', 'normal' or 'restore'")
        return plain[word](clock)

    def acknowledge(self, clock: Clock = PLAIN) -> list[Event]:
        """Take note that an operator knows of the alarm."""
        if (alarm := self.watch.alarm) is None:
            raise ValueError("there is no alarm to acknowledge")
        self.operator.acknowledged = dated(alarm.time)
        return self._done("acknowledged", alarm.names, clock)

    def call_normal(self, clock: Clock = PLAIN) -> list[Event]:
        """Take the present state as normal: from now on the sensors of the alarm are normal where they are.

        The alarm is over once the watch finds the windows normal. Until then saying so again changes nothing.
        """
        if (alarm := self.watch.alarm) is None:
            raise ValueError("there is no alarm whose state could become the new normal")
        operator = self.operator
        if operator.called == dated(alarm.time):
            return []
        operator.called, operator.before = dated(alarm.time), operator.offsets.copy()
        operator.offsets[alarm.decision] += np.nan_to_num(alarm.sizes)
        return self._done("new-normal", alarm.names, clock)

    def restore(self, clock: Clock = PLAIN) -> list[Event]:
        """Take back the last state that was called normal."""
        operator = self.operator
        if operator.before is None:
            raise ValueError("there is no new normal to take back")
        changed = np.flatnonzero(operator.offsets != operator.before).tolist()
        operator.offsets, operator.called, operator.before = operator.before, None, None
        return self._done("old-normal", [self.model.names[k] for k in changed], clock)

    def report(self, kind: Kind, text: str, time: np.datetime64, clock: Clock = PLAIN) -> list[Event]:
        """An event that no window shows; it is pending from now on."""
        notice = kind if kind in ("caution", "no-data", "data-back") else None
        return self._keep([Event(kind, iso(clock, time), text, notice=notice)])

    def hear(self, clock: Clock = PLAIN) -> list[Event]:
        """The event where the window that was taken last shows that the plant is no longer watched, or is again."""
        assert self.position is not None
        self.hearing.last = clock.show(self.position)
        return self.report(*self.hearing.news, self.position, clock) if self.hearing.listen(0) else []

    def close(self, why: str, clock: Clock = PLAIN) -> list[Event]:
        """End what is open, because the watch ends; why: the reason, for people. The events are pending from now on."""
        if self.position is None:
            return []
        events, self.reported = events_of(self.reported, Standing(self.position, shelved=self.reported.shelved), clock)
        texts = [
            event.text if event.event == "over" else f"{event.event}: {listed(event.sensors)} not known any more"
            for event in events
        ]
        ended = [replace(event, text=f"{text}; {why}") for event, text in zip(events, texts, strict=True)]
        return self._keep(ended + self.notices.end(self.position, why, clock))

    def settle(self) -> None:
        """All pending events were reported."""
        self.pending = ()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file, which replaces an earlier one once it is complete."""
        write_archive(path, _KIND, _VERSION, self.stored())

    def to_bytes(self) -> bytes:
        return archive_bytes(_KIND, _VERSION, self.stored())

    def stored(self) -> dict[str, Any]:
        """All but the model, of which `build` makes it again."""
        return {"model": self.digest, "session": state_of(self), "watch": plant_state(self.watch)}

    @staticmethod
    def load(path: str | PathLike[str], model: Model, digest: str = "") -> Session:
        """Read a session that was saved. Safe for untrusted files."""
        build = partial(Session.build, model=model, digest=digest)
        return read_archive(path, _KIND, _VERSION, build)

    @staticmethod
    def parse(content: bytes, model: Model, digest: str, name: str) -> Session:
        """The same from the content of a file; name: what messages call it."""
        build = partial(Session.build, model=model, digest=digest)
        return parse_archive(content, _KIND, _VERSION, build, name=name)

    @staticmethod
    def build(state: Any, *, model: Model, digest: str) -> Session:
        """From what an untrusted file says."""
        check_keys(state, {"model", "session", "watch"}, "header")
        if state["model"] != digest:
            raise ValueError("it belongs to another model: give that model, or another file to start anew")
        session = Session(built_plant(model, state["watch"]), digest)
        restore(session, state["session"], {"K": len(model.names)})
        return session

    def _unjudged(self, values: Array, rows: float | None) -> str | None:
        """Why a window of at most so many rows cannot be judged, None if it can."""
        if len(self.operator.shelved) == len(self.model.names):
            return "all sensors are shelved: unshelve some"
        if np.isnan(values).all():
            return self.hearing.no_value()
        if rows is not None and rows < 0.5 * (usual := self.model.usual_rows):  # no sensor has half of the rows
            return (
                f"too few rows: {rows:.0f} in a window, {usual:.0f} in the history: send as many, or calibrate anew on "
                "rows as they come now"
            )
        return None

    def _missed(self, time: np.datetime64) -> int:
        """Windows without any row between the last one and this, if they are more than in the history."""
        if self.position is None:
            return 0
        missed = max(round((microseconds(time) - microseconds(self.position)) / (self.model.seconds * 1e6)) - 1, 0)
        return missed if missed > self._usual_gap else 0

    @property
    def _usual_gap(self) -> int:
        """Windows that may be missing in a row: some, if the history lacked windows too."""
        model = self.model
        lasted = (microseconds(model.last) - microseconds(model.first)) / (model.seconds * 1e6) + 1.0
        return TUNING.short_gap_windows if model.n_windows < (1.0 - _FEW) * lasted else 0

    def _done(self, kind: Kind, names: Sequence[str], clock: Clock) -> list[Event]:
        """The event of an operator's action."""
        assert self.position is not None
        text = f"{kind}: {', '.join(names)}"
        return self._keep([Event(kind, iso(clock, self.position), text, named=tuple(names), sensors=tuple(names))])

    def _keep(self, events: list[Event]) -> list[Event]:
        numbered = [replace(event, number=self.number + k) for k, event in enumerate(events, 1)]
        self.number += len(numbered)
        self.pending = (*self.pending, *numbered)
        return numbered


def false_alarm_every(text: str | None, model: Model, what: str = "--false-alarms") -> float:
    """The mean time to a false alarm, in windows of the model; what: messages call the text so.

    Without a text it is what the history can carry: three times its length, and at most 30 days.

    >>> [_RATE.fullmatch(text) is not None for text in ("1/30d", "2/1000w", "30d")]
    [True, True, False]
    """
    clock = model.clock
    if text is None:
        return model.usual_rate
    if not isinstance(text, str):
        raise ValueError(f"{what} is a rate written as a text, such as '1/30d' for one a month, not {text!r:.60}")
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{what} {text!r} is no rate: write 1/30d for one a month, 1/5000w for windows")
    windows = _IN_WINDOWS.fullmatch(match[2])
    if windows is None and clock.counted:
        raise ValueError(f"{what} {text!r}: rows of this model have no times, write 1/5000w for windows")
    seconds = None if windows is not None else parse_duration(match[2], what)
    every = (float(windows[1]) if windows is not None else seconds / model.seconds) / int(match[1])  # type: ignore[operator]
    if every < 1.0:
        raise ValueError(f"{what} {text!r} is more than one in each window of {clock.length(model.seconds)}")
    return every


def rate_line(watch: PlantWatch) -> str:
    """The false-alarm rate of a watch, what it rests on, and what it costs where the history cannot carry it."""
    every, model = watch.false_alarm_every, watch.model
    seconds = model.timed_seconds

    def length(windows: float) -> str:
        if seconds is None:
            return counted(round(windows), "window")
        return lasting(windows * seconds, "{:.3g}".format)

    rate, usual = f"at most one false alarm in {length(every)}", model.usual_rate
    if watch.plan is not None:
        return f"{rate}, reading {watch.plan.readings:g} of {counted(len(model.names), 'sensor')} a window"
    if every <= 1.01 * usual:
        return f"{rate} (counted on {counted(int(watch.normal.peaks.windows), 'window')})"
    step = f"smallest step found at once: {smallest_step(watch):.2g} standard deviations"
    return f"{rate} (the history can carry one in {length(usual)}); {step}"


def smallest_step(watch: PlantWatch) -> float:
    """The step, in spreads of the sensor, that raises an alarm in its first window, for the median sensor."""
    normal = watch.normal
    limit = float(watch.engine.limits[0])
    beyond = np.maximum(limit - normal.tails.base, 0.0) / normal.tails.shape
    return float(np.median(normal.tails.edge * np.exp(beyond) * normal.unit))
