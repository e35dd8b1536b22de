"""A plant watched window by window by its model of normal operation.

The engine (`incident/alarms.py`) decides when an alarm begins and when it is over. At its beginning the incident is
dated and its sensors are named by the windows so far, as `identify` does with hindsight, and again as it goes on. A
sensor that is stuck, silent or out of range is wrong by itself, and bears no evidence about others until it is back.
"""

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index, as_number
from eccaht.base.clock import microseconds
from eccaht.base.codec import Field, Fields, Part, restore, state_of
from eccaht.plants.data.windows import MOST_DECIMALS
from eccaht.plants.incident.alarms import STANDING, Engine, Record
from eccaht.plants.incident.confidence import DrilledConfidence, clues_of
from eccaht.plants.incident.counts import kept
from eccaht.plants.incident.describe import SPREADS, Predictions, kind_of
from eccaht.plants.incident.faults import MOST_FAULTY
from eccaht.plants.incident.investigate import resolved
from eccaht.plants.incident.naming import Naming, name_alarm, name_sensors, rests
from eccaht.plants.model.local import Before
from eccaht.plants.model.model import Model
from eccaht.plants.model.residuals import before_of
from eccaht.plants.tuning import TUNING
from eccaht.plants.watch.active import ActiveEngine, ReadingPlan
from eccaht.streams import Alarm, Time
from eccaht.streams.watch.alarm import SUSPICIOUS, bounded_evidence

KEPT = TUNING.level_windows + TUNING.earlier_windows + TUNING.followed_windows
LARGEST = 1e30  # that half of the digits of a number can hold


class FollowedAlarm(NamedTuple):
    """The alarm that goes on: the windows that raised it and that it began with, and what was before."""

    raised: int
    onset: int
    before: Before


_BEFORE: Fields = (Field("level", ("K",)), Field("last", ("K",), nan=True))
_FOLLOWED: Fields = (Field("raised", (), int), Field("onset", (), int), Part("before", Before, fields=_BEFORE))


State = Literal["quiet", "suspicious", "changed", "alarm"]


class PlantWatch:
    """Watch the sensors of a model, whose windows, sizes and alarms are in robust units here.

    false_alarm_every: the mean time to a false alarm, in windows. decimals: of the
    readings, by sensor, if they are known; else they are found as windows come. plan: what may be read of a window, and
    what of it is an alarm, None: everything is read.
    """

    FIELDS = (
        Field("time", (), int),
        Field("n_late", (), int),
        Field("_missing", (), int),
        Field("changed", (), bool),
        Field("_passed", low=-math.inf),
        Field("start", (), np.datetime64, optional=True),
        Part("engine"),
        Part("_recent"),
        Part("_follow", FollowedAlarm, optional=True, fields=_FOLLOWED),
        Part("alarm", Alarm, optional=True),
        Part("past", Alarm, optional=True),
    )

    def __init__(
        self,
        model: Model,
        *,
        false_alarm_every: float = 5000,
        decimals: dict[str, int | None] | None = None,
        plan: ReadingPlan | None = None,
    ) -> None:
        if model.normal is None or model.normal.local is None:
            raise ValueError("the model does not say what is normal: calibrate on a history of at least 40 windows")
        self.false_alarm_every = as_number(false_alarm_every, "false_alarm_every")
        if self.false_alarm_every < 1.0:
            raise ValueError(f"false_alarm_every is at least one window, not {false_alarm_every!r}")
        self.model, self.normal, self.plan = model, model.normal, plan
        drilled = kept(model)
        self.confidence: DrilledConfidence | None = None if drilled is None else drilled.at_alarm
        self.engine = self._engine()
        self.time = 0  # windows so far, missing ones counted
        self.n_late = 0  # windows that came again or too late, and were left out
        self.alarm: Alarm | None = None  # as it is now
        self.past: Alarm | None = None  # the last one that is over
        self.standing: dict[int, tuple[str, int]] = {}  # sensors that are stuck, silent or out of range, since when
        self.changed = False  # whether the deviation of the alarm lasts as a change, which is none any more
        self.start: np.datetime64 | None = None  # of the last window
        self.asked: tuple[str, ...] = ()  # sensors that were asked for in the last window
        self.cautions: tuple[str, ...] = ()  # ways in which the readings are unlike the history
        self._recent = Recent(self.normal.size, KEPT)
        self._follow: FollowedAlarm | None = None
        self._shelved: list[int] = []
        self._missing = 0  # windows in a row
        self._passed = -math.inf
        self._decimals = Decimals(model, decimals)
        if decimals is not None:
            self._resolve(decimals)

    @property
    def evidence(self) -> float:
        """How unusual the last windows are, in nats above the threshold: 0 raises an alarm.

        It is the logarithm of the mean time in which chance alone brings windows as unusual, in units of
        `false_alarm_every`.
        """
        return bounded_evidence(self._passed)

    @property
    def state(self) -> State:
        if self.standing or (self.alarm is not None and not self.changed):
            return "alarm"
        if self.alarm is not None or bool(self.engine.settled[0]):
            return "changed"
        return "suspicious" if self.evidence >= SUSPICIOUS else "quiet"

    def still(self, kind: str) -> dict[str, np.datetime64]:
        """Sensors that are stuck, silent or out of range now, and since when; nothing if windows have no times."""
        if self.start is None:
            return {}
        ago = {k: self.time - 1 - since for k, (what, since) in self.standing.items() if what == kind}
        lengths = {k: np.timedelta64(round(n * self.model.seconds * 1e6), "us") for k, n in ago.items()}
        return {self.model.names[k]: self.start - length for k, length in lengths.items()}

    def is_frozen(self, was: bool) -> bool:
        """Whether all sensors that have a value repeat it, for longer than half of them may; was: in the last window.

        One that was frozen is so until something moves, also across a gap, after which the engine counts anew.
        """
        if was and self._recent.repeats:
            return True
        repeats, still = np.ravel(self.engine.repeats), np.ravel(self.engine.still)
        there = repeats > 0.0
        return bool(there.any() and repeats[there].min() > np.median(np.floor(still[there])))

    def in_units(self, alarm: Alarm | None) -> Alarm | None:
        """An alarm with its sizes in units of the readings."""
        return None if alarm is None else replace(alarm, sizes=alarm.sizes * self.model.scale[alarm.decision])

    def ask(self) -> list[str]:
        """The sensors to read in the next window, those first that say most."""
        if isinstance(self.engine, ActiveEngine):
            return list(self._names(self.engine.ask()))
        return [name for k, name in enumerate(self.model.names) if k not in self._shelved]

    def asked_next(self) -> tuple[tuple[str, str], ...]:
        """What `ask` names, and why each; nothing where everything is read."""
        if not isinstance(self.engine, ActiveEngine):
            return ()
        return tuple((self.model.names[k], self.engine.why(k)) for k in self.engine.ask().tolist())

    def _names(self, places: Index | None) -> tuple[str, ...]:
        return () if places is None else tuple(self.model.names[k] for k in places.tolist())

    def shelve(self, shelved: Collection[str]) -> None:
        """From the next window on only these sensors are shelved: nothing they show counts, nor that they are silent.

        The windows of shelved sensors must be NaN.
        """
        self._shelved = [self.model.names.index(name) for name in shelved]
        if self._shelved or self.plan is not None:
            self.engine.leave_out(self._shelved)
            self.standing = {k: found for k, found in self.standing.items() if k not in self._shelved}
        named = None if self.alarm is None else {*self.alarm.decision.tolist()}
        if named is not None and named <= {*self._shelved} and isinstance(self.engine, Engine):
            self.engine.end_alarms()  # nothing of it shows any more

    def take(self, window: Array, start: np.datetime64 | None) -> Alarm | None:
        """Take a window, (K,), in robust units, NaN where a sensor is silent; return a new alarm.

        start: of the window; without it windows follow each other.
        """
        if not self._arrived(start):
            return None
        if np.isnan(window).all():
            self._missing += 1
            self.time += 1
            return None
        if self._missing:
            self.engine.gap(self._missing)
        self._missing = 0
        now, self.time = self.time, self.time + 1
        if isinstance(self.engine, ActiveEngine):
            self.asked = self._names(self.engine.asked)
        self._recent.put(window, now if start is None else start)
        if self._decimals.look(window, self._recent):
            self._resolve(self._decimals.known)
        shown = self.engine.step(window[None, :])
        self.engine.silent[..., self._shelved] = 0
        self._passed = float(shown.passed[0])
        found = self._stand(now)
        if shown.changed[0]:
            self.changed = True  # and the alarm goes on as what has changed
        elif shown.ended[0] or (self.changed and not self.engine.settled[0]):
            self._end()
        if shown.began[0]:
            return self._raise(now)
        if self.alarm is not None and self._follow is not None:
            age = now - self._follow.raised
            if (
                self._passed > 0.0
                and not self.changed
                and (age <= TUNING.renamed_each_windows or age % TUNING.renamed_every_windows == 0)
            ):  # not while the evidence is below the threshold
                self._rename(now, self.alarm, self._follow)
            return None
        return found

    def _arrived(self, start: np.datetime64 | None) -> bool:
        """Count the windows that are missing before this one; False if it came before."""
        if self.time and (start is None) != (self.start is None):
            raise ValueError("give a time with every window of a watch, or with none")
        if start is None:
            return True
        if self.start is not None:
            passed = float((start - self.start) / np.timedelta64(1, "us")) / (1e6 * self.model.seconds)
            if passed < 0.5:
                self.n_late += 1
                return False
            lost = round(passed) - 1
            self._missing += lost
            self.time += lost
        self.start = start
        return True

    def _resolve(self, decimals: dict[str, int | None] | None) -> None:
        """Judge readings of so many decimals."""
        normal = self.normal
        self.normal, lines = resolved(self.model, decimals)
        self.cautions = tuple(lines)
        if self.normal is not normal:
            state = state_of(self.engine)
            self.engine = self._engine()
            restore(self.engine, state | {"still": np.maximum(self.engine.still, state["still"])}, {})

    def _engine(self) -> Engine | ActiveEngine:
        if self.plan is not None:
            return ActiveEngine(self.normal, self.false_alarm_every, self.plan)
        return Engine(self.normal, self.false_alarm_every, gaps=self.model.longest_gaps)

    def _stand(self, now: int) -> Alarm | None:
        """Sensors that are stuck, silent or out of range from this window on raise an alarm of their own."""
        found: dict[int, tuple[str, int]] = {}
        for kind, mask, windows in zip(STANDING, self.engine.standing, self.engine.stood_for, strict=True):
            for k in np.flatnonzero(mask[0]).tolist():
                known, since = self.standing.get(k, (None, 0))
                if kind == "stuck" and known != kind and self._rests(k, int(windows[0, k])):
                    continue
                found[k] = (kind, min(since if known == kind else now + 1 - int(windows[0, k]), now))
        new = [k for k in found if k not in self.standing]
        self.standing = found
        if not new:
            return None
        onset = min(found[k][1] for k in new)
        size = self.normal.size
        beliefs = np.full(size, 1.0 / size)
        beliefs[list(found)] = 1.0 - 1.0 / size
        moment = self._recent.label(now - onset)
        return Alarm(
            time=self._recent.label(0),
            onset=moment,
            onset_interval=(moment, moment),
            decision=np.array(new, dtype=np.intp),
            names=tuple(self.model.names[k] for k in new),
            kinds=tuple(found[k][0] for k in new),
            sizes=np.full(len(new), np.nan),
            beliefs=beliefs,
            confidence=None,
        )

    def _rests(self, k: int, repeated: int) -> bool:
        """Whether a sensor that repeats a value is at rest, not stuck: judged when it is noticed, and now and then."""
        noticed = repeated - 1 - int(self.engine.still[0, k])
        values, start = self._recent.all(), max(len(self._recent) - repeated, 0)
        return noticed % TUNING.renamed_every_windows > 0 or rests(
            self.normal, k, self._recent.usual()[:start], values[start:]
        )

    def _raise(self, now: int) -> Alarm | None:
        """Date an alarm and name its sensors by the windows so far, as `identify` does.

        One of the sensors whose change lasts already is the same alarm, which goes on: nothing is new but its size.
        """
        assert self.normal.local is not None
        values, usual, last = self._recent.all(), self._recent.usual(), len(self._recent) - 1
        z = self.normal.scaled(values)
        r = self.normal.residuals_of(z, before_of(z)).r
        wrong, aside = self._wrong()
        shown = np.array(values)
        shown[:, aside] = np.nan
        record = Record(shown, usual, r, self.normal.tails(r))
        dates, naming = name_alarm(
            self.normal, record, last, None, lambda *_: wrong, lead=TUNING.alarm_hold_windows - 1
        )
        began, first, latest = (self._recent.label(last - t) for t in (dates.onset, dates.first, dates.last))
        known = self.alarm if self.changed else None
        if known is not None and set(naming.named) <= set(known.decision.tolist()):
            self.changed = False
            return None
        self._end()
        self._follow = FollowedAlarm(now, now - (last - dates.onset), self.normal.local.before(usual[: dates.onset]))
        self.alarm = self._described(naming, values, dates.onset, began, (first, latest))
        return self.alarm

    def _wrong(self) -> tuple[list[int], list[int]]:
        """The sensors out of range, which are wrong by themselves, and those that say nothing: they stand still."""
        wrong = [k for k, (kind, _) in self.standing.items() if kind == "range"]
        return wrong, [*self._shelved, *(k for k in self.standing if k not in wrong)]

    def _rename(self, now: int, alarm: Alarm, follow: FollowedAlarm) -> None:
        """Name the sensors of an alarm anew, by at most the last windows."""
        length = min(now + 1 - follow.onset, TUNING.followed_windows)
        values = self._recent.all()
        onset = max(len(values) - length, 0)
        rows, (wrong, aside) = values[onset:].copy(), self._wrong()
        rows[:, aside] = np.nan
        assert self.normal.local is not None
        naming = name_sensors(self.normal.local, follow.before, rows, wrong=wrong)
        found = self._described(naming, values, onset, alarm.onset, alarm.onset_interval)
        if now + 1 - follow.onset > TUNING.followed_windows:  # how it began is no longer seen
            known = dict(zip(alarm.names, alarm.kinds, strict=True))
            kinds = tuple(known.get(name, kind) for name, kind in zip(found.names, found.kinds, strict=True))
            found = replace(found, kinds=kinds)
        self.alarm = replace(found, time=alarm.time)

    def _end(self) -> None:
        if self.alarm is not None and self._follow is not None:
            self.past = replace(self.alarm, over=self._recent.label(0))
            self._recent.set_aside(self.time - self._follow.onset, self.alarm.decision)
        self.alarm, self._follow, self.changed = None, None, False

    def _described(self, naming: Naming, values: Array, onset: int, began: Time, interval: tuple[Time, Time]) -> Alarm:
        """An alarm with the kind and size of what is wrong with each sensor, in robust units."""
        decision = np.array(naming.named, dtype=np.intp)
        predictions = Predictions.of(self.normal, values, naming.named)
        residual = predictions.residual * self.normal.scale
        earlier = residual[max(onset - TUNING.level_windows, 0) : onset]
        kinds, sizes = [], []
        for k in naming.named:
            usual = np.nanmedian(earlier[:, k]) if (~np.isnan(earlier[:, k])).sum() > TUNING.long_windows else 0.0
            course = residual[onset:, k] - usual
            kind = self.standing[k][0] if k in self.standing else kind_of(course, values[onset:, k])
            present = course[~np.isnan(course)]
            size = np.nan
            if present.size and kind not in ("stuck", "silent"):
                size = float(np.sqrt(np.mean(present**2)) if kind in SPREADS else present.mean())
            sizes.append(size if abs(size) >= 0.5 * self._decimals.step(k) else np.nan)
            kinds.append(kind)
        return Alarm(
            time=self._recent.label(0),
            onset=began,
            onset_interval=interval,
            decision=decision,
            names=tuple(self.model.names[k] for k in naming.named),
            kinds=tuple(kinds),
            sizes=np.array(sizes),
            beliefs=naming.beliefs,
            confidence=self._confidence(naming),
        )

    def _confidence(self, naming: Naming) -> float | None:
        """The confidence in a set; None where no drill has counted it."""
        if self.confidence is None or self.standing or len(naming.named) > MOST_FAULTY:
            return None
        return self.confidence.counted(clues_of(naming))


class Recent:
    """The last windows and their times, and which sensors were wrong in them, in constant memory: rings.

    values, wrong: (most, K); times: (most,). count: windows so far, of which the last is in row count - 1 modulo most.
    dated: whether times are dates, known from the first window on; else they are numbers of windows.
    """

    FIELDS = (
        Field("values", ("kept", "K"), np.float32, low=-2 * LARGEST, high=2 * LARGEST, nan=True),
        Field("wrong", ("kept", "K"), bool),
        Field("times", ("kept",), int, low=-(2**62), high=2**62),
        Field("count", (), int),
        Field("dated", (), bool),
    )

    def __init__(self, size: int, most: int) -> None:
        self.values = np.zeros((most, size), dtype=np.float32)
        self.wrong = np.zeros((most, size), dtype=bool)
        self.times = np.zeros(most, dtype=np.int64)
        self.count = 0
        self.dated = False

    def __len__(self) -> int:
        return min(self.count, len(self.times))

    def put(self, x: Array, time: Time) -> None:
        row = self.count % len(self.times)
        self.dated = isinstance(time, np.datetime64)
        self.values[row] = np.clip(x, -LARGEST, LARGEST)
        self.wrong[row] = False
        self.times[row] = microseconds(time) if isinstance(time, np.datetime64) else time
        self.count += 1

    @property
    def repeats(self) -> bool:
        """Whether the last window is as the one before."""
        last = self.values[self._rows(2)]
        return len(last) > 1 and np.array_equal(last[0], last[1], equal_nan=True)

    def label(self, ago: int) -> Time:
        """The time of the window so many windows ago, or of the first that is remembered."""
        number = int(self.times[(self.count - 1 - min(ago, len(self) - 1)) % len(self.times)])
        return np.datetime64(number, "us") if self.dated else number

    def all(self) -> Array:
        """The windows in order, (T, K)."""
        return self.values[self._rows(len(self))].astype(np.float64)

    def usual(self) -> Array:
        """The same without those of sensors that were wrong, which are NaN."""
        return np.where(self.wrong[self._rows(len(self))], np.nan, self.all())

    def set_aside(self, number: int, sensors: Index) -> None:
        """These sensors were wrong in the last windows."""
        self.wrong[np.ix_(self._rows(number), sensors)] = True

    def _rows(self, number: int) -> Index:
        """Where the last windows are, in order."""
        known = min(number, len(self))
        return np.arange(self.count - known, self.count) % len(self.times)


class Decimals:
    """To how many decimals readings are rounded: fewer than in the history make all relations coarser.

    known: by sensor, None until enough windows have come. so_far: (K,), one more than the most where there are more.
    """

    FIELDS = (
        Field("known", (), int, high=MOST_DECIMALS, keyed=True, optional=True),
        Field("so_far", ("K",), int, high=MOST_DECIMALS + 1),
    )

    def __init__(self, model: Model, known: dict[str, int | None] | None = None) -> None:
        self._model, self.known = model, known
        self.so_far = np.zeros(len(model.names), dtype=np.int64)

    def look(self, window: Array, recent: Recent) -> bool:
        """Take a window, the last of the recent ones, in robust units; whether the decimals are known with it."""
        model = self._model
        if self.known is not None or model.usual_rows > 1.5:  # means of rows have more decimals than rows
            return False
        raw = model.raw(window)
        for places in range(int(self.so_far.min()), MOST_DECIMALS + 1):
            more = (self.so_far == places) & (np.abs(raw - np.round(raw, places)) > 1e-9 * (1.0 + np.abs(raw)))
            self.so_far[more] += 1
        if len(recent) == TUNING.decimals_known_after:
            moved = (np.abs(np.diff(recent.all(), axis=0)) > 0.0).any(
                axis=0
            )  # one at rest says nothing of its decimals
            found = zip(model.names, self.so_far.tolist(), moved & (self.so_far <= MOST_DECIMALS), strict=True)
            self.known = {name: places if known else None for name, places, known in found}
        return self.known is not None

    def step(self, k: int) -> float:
        """The step of a sensor's readings, in robust units; 0 if it is not known."""
        name = self._model.names[k]
        found = [known.get(name) for known in (self._model.reading.get("decimals", {}), self.known or {})]
        places = [number for number in found if number is not None]
        return 10.0 ** -min(places) / float(self._model.scale[k]) if places else 0.0
