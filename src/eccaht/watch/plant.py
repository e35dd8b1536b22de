"""A plant watched window by window by its model of normal operation.

The statistic of `history` raises the alarm; `suspects` names the sensors by the evidence of `identify`, with kind and
size of what is wrong. From the onset on the level of the named sensors is frozen; the set is named anew as the alarm
goes on, which is over once the last windows are normal again. A local level wanders, so that a frozen one says less and
less: a sensor that is as near to it as the history usually is after as many windows is back, as far as anybody can
tell, and what has lasted for `streams.LONGEST` windows is its new level.

A sensor that repeats one value for longer than it may, or delivers nothing while others do, is named at once, on no
evidence but that, and bears none about others until it is back; one that has moved again may stand still for twice as
long from then on, so that sensors that come to rest often do not raise alarm after alarm. Missing windows say nothing;
after a long gap the level is taken afresh.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eccaht.arrays import Array, Index, as_floats, as_number
from eccaht.data.durations import parse_duration
from eccaht.incident.judge import Basis
from eccaht.incident.quiet import LONGER
from eccaht.labels import by_name
from eccaht.model.model import Model
from eccaht.watch.alarm import SUSPICIOUS, Alarm, State, Time
from eccaht.watch.drill_confidence import WatchConfidence, set_belief
from eccaht.watch.history import CALM_LENGTHS, Rule
from eccaht.watch.recent import Followed, Recent
from eccaht.watch.streams import LONGEST, Streams
from eccaht.watch.suspects import Courses, Namer, Suspects, described
from eccaht.watch.wander import SEEN, moves_at

SHORT_GAP = 5  # windows: after a longer gap the watch begins afresh
FEWEST_SILENT = 5  # windows in a row, while others deliver, that make a sensor silent
CALM = 10  # windows that must be normal for an alarm to be over, or as many as it took to raise it
_CALM_LOOKS = 10  # windows in a row that must find them so
_SAME = 1e-9  # by how much means of the same values differ
_EARLIER = 10  # windows before a stretch, and as many as it has, in which the onset is looked for
_FOLLOWED = 30  # windows, the last ones, that say which sensors are in the set
_EVERY_WINDOW, _LATER = 30, 10  # the set is named in so many windows after the alarm, then every tenth


class PlantWatch:
    """Watch the sensors of a model, whose windows, sizes and alarms are in robust units here.

    rule: see `kept.rule_of`. false_alarm_every: the mean time to a false alarm, in windows, or a length of time such
    as "1d". confidence: what drills counted of named sets, if there were any.
    """

    def __init__(
        self,
        model: Model,
        rule: Rule,
        *,
        false_alarm_every: float | str = 5000,
        confidence: WatchConfidence | None = None,
    ) -> None:
        if model.normal is None:
            raise ValueError("the model does not describe normal operation: calibrate it again")
        every = false_alarm_every
        if isinstance(every, str):
            every = parse_duration(every, "false_alarm_every") / model.seconds
        self.false_alarm_every = as_number(every, "false_alarm_every")
        if self.false_alarm_every < 1.0:
            raise ValueError(f"false_alarm_every is at least one window, not {false_alarm_every!r}")
        self.model, self.normal = model, model.normal
        self.rule, self.confidence = rule, confidence
        self.threshold = self.rule.passes.threshold(self.false_alarm_every)
        self.basis = self.rule.basis(self.false_alarm_every)
        self.streams = Streams(self.normal, self.rule.law, self.rule.second)
        self.namer = Namer(self.normal, self.rule.quiet)
        K = self.normal.size
        self.time = 0  # windows so far, missing ones counted
        self.n_late = 0  # windows that came again or too late, and were left out
        self.alarm: Alarm | None = None  # as it is now
        self.past: Alarm | None = None  # the last one that is over
        self.standing: dict[int, tuple[str, int]] = {}  # sensors that are stuck or silent, and since which window
        self._recent = Recent(K, self.normal.width + LONGEST)
        self._follow: Followed | None = None
        self.start: np.datetime64 | None = None  # of the last window
        self._missing = 0  # windows in a row
        self._statistic = 0.0
        self._calm = 0
        self._repeats, self._silent = np.zeros(K), np.zeros(K)
        self._value = np.full(K, np.nan)  # the last reading
        self._still = np.array(self.rule.quiet.still)  # windows for which each sensor may repeat a value
        gap = model.summary.gaps * model.n_windows
        self._silent_after = np.maximum(2.0 * gap, FEWEST_SILENT)

    @property
    def evidence(self) -> float:
        """How unusual the last windows are: 1 raises an alarm.

        It is the mean time in which chance alone brings windows as unusual, in units of `false_alarm_every`.
        """
        return math.exp(min(self.rule.passes.log_time(self._statistic) - math.log(self.false_alarm_every), 700.0))

    @property
    def state(self) -> State:
        """Where it stands: "suspicious" is evidence of 0.1 or more."""
        if self.alarm is not None or self.standing:
            return "alarm"
        return "suspicious" if self.evidence >= SUSPICIOUS else "quiet"

    def update(self, x: Any, time: Any = None) -> Alarm | None:
        """Take a window, (K,) or a dict by name, in robust units, NaN where a sensor is silent; return a new alarm.

        time: its start; without it windows follow each other.
        """
        window = self._checked(x)
        start = None if time is None else self.model.clock.parse(time)
        if not self._arrived(start):
            return None
        if np.isnan(window).all():
            self._missing += 1
            self.time += 1
            return None
        self._after_gap()
        now, self.time = self.time, self.time + 1
        moments = None if start is None else self.model.clock.since_midnight(np.array([start]))
        moment = 0.0 if moments is None else float(moments[0])
        self._recent.put(window, moment, now if start is None else start)
        found = self._standing(window, now)
        shown = window.copy()
        shown[list(self.standing)] = np.nan
        if not self.streams.ready:
            self.streams.follow(shown)
            return found
        rarities = self.rule.statistic(self.streams.update(shown, moment, self._back(now)))
        self._statistic = float(rarities.max())
        if self.alarm is not None:
            self._calm = self._calm + 1 if self._is_calm(rarities) else 0
            self._go_on(now, self.alarm)
        elif self._statistic >= self.threshold:
            length = int(self.streams.lengths[int(rarities.max(axis=0).argmax())])
            self._raise(now, length)
            return self.alarm
        return found if self.alarm is None else None

    # -- arrival -------------------------------------------------------------------------------------

    def _checked(self, x: Any) -> Array:
        window = as_floats(by_name(x, self.model.names, "window", absent=np.nan), "window")
        if window.shape != (self.normal.size,) or np.isinf(window).any():
            raise ValueError(
                f"a window must hold {self.normal.size} numbers, one for each sensor, NaN where it is silent"
            )
        return window

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

    def _after_gap(self) -> None:
        if self._missing > SHORT_GAP:
            if self.normal.level == "local":
                self.streams.forget()
            else:
                self.streams.restart()
        if self._missing:
            self.streams.skip()
            self._value[:], self._repeats[:] = np.nan, 0.0
        self._missing = 0

    def _standing(self, window: Array, now: int) -> Alarm | None:
        """Sensors that stand still from this window on raise an alarm of their own; those that are back are free."""
        silent = np.isnan(window)
        self._silent = np.where(silent, self._silent + 1, 0)
        goes_on = np.abs(window - self._value) <= _SAME * (1.0 + np.abs(window))
        ended = ~goes_on & ~silent
        self._still = np.where(ended, np.maximum(self._still, LONGER * self._repeats), self._still)
        self._repeats = np.where(goes_on, self._repeats + 1, np.where(silent, 0, 1))
        self._value = window
        stuck = self._repeats > np.floor(self._still)
        gone = self._silent >= self._silent_after
        self.standing = {k: what for k, what in self.standing.items() if (stuck[k] or gone[k])}
        new = [k for k in np.flatnonzero(stuck | gone).tolist() if k not in self.standing]
        for k in new:
            lasted = self._silent[k] if gone[k] else self._repeats[k] - 1
            self.standing[k] = ("silent" if gone[k] else "stuck", now + 1 - int(lasted))
        if not new:
            return None
        chosen = np.array(new, dtype=np.intp)
        onset = min(self.standing[k][1] for k in new)
        beliefs = np.full(self.normal.size, 1.0 / self.normal.size)
        beliefs[list(self.standing)] = 1.0 - 1.0 / self.normal.size
        return Alarm(
            time=self._recent.label(0),
            onset=self._recent.label(now - onset),
            onset_interval=(self._recent.label(now - onset), self._recent.label(now - onset)),
            decision=chosen,
            names=tuple(self.model.names[k] for k in new),
            kinds=tuple(self.standing[k][0] for k in new),
            sizes=np.full(len(new), np.nan),
            beliefs=beliefs,
            confidence=self._counted("stuck" if stuck[chosen].any() else "silent", beliefs, chosen, 0),
        )

    # -- alarms --------------------------------------------------------------------------------------

    def _raise(self, now: int, length: int) -> None:
        """Name the sensors of an alarm whose evidence is strongest for the last `length` windows."""
        values, moments, starts = self._recent.all()
        T = len(values)
        start, shown = max(T - length, 0), max(T - min(length, _FOLLOWED), 0)
        values[start:, list(self.standing)] = np.nan
        before = self.namer.before(values[:start], moments[start])
        suspects = self.namer(before, values[shown:], moments[shown:])
        first = min(max(T - length - min(length, _FOLLOWED) - _EARLIER, min(self.normal.width, start)), start)
        earlier = self.namer.before(values[:first], moments[first])
        onset = self.namer.onset(earlier, values[first:], moments[first:], suspects)
        began = first + onset.best
        before = self.namer.before(values[:began], moments[began])
        self._follow = Followed(now, now - (T - 1 - began), length, before)
        interval = (starts[first + onset.first], starts[first + onset.last])
        courses = self.namer.courses(before, values[began:], moments[began:], suspects)
        self.alarm = self._described(suspects, courses, starts[began], interval)
        self._freeze()
        self._calm = 0

    def _is_calm(self, rarities: Array) -> bool:
        """Whether all stretches of the last windows are normal, up to the length of the one that raised the alarm."""
        length = CALM if self._follow is None else max(CALM, self._follow.length)
        looked = np.flatnonzero(self.streams.lengths <= length)[:CALM_LENGTHS]
        return float(rarities[:, looked].max()) < self.rule.calm

    def _back(self, now: int) -> Sequence[int]:
        """Sensors of the alarm that are no farther from their frozen level than usual after as many windows."""
        if self._follow is None:
            return ()
        held = np.flatnonzero(~np.isnan(self.streams.frozen[0]))
        if not held.size:
            return ()
        age = now + 1 - self._follow.onset
        windows = self._recent.last(min(age, SEEN))[0][:, held]
        present = ~np.isnan(windows)
        means = np.where(present, windows, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        away = np.abs(means - self.streams.frozen[0, held])
        near = present.any(axis=0) & (away <= moves_at(self.rule.moves, age)[held])
        return tuple(held[near].tolist())

    def _go_on(self, now: int, alarm: Alarm) -> None:
        """Name the sensors anew, or call the alarm over."""
        if self._follow is None or self._calm >= _CALM_LOOKS:
            self.past = replace(alarm, over=self._recent.label(0))
            self.alarm, self._follow, self._statistic = None, None, 0.0
            self.streams.frozen[:] = np.nan
            self.streams.restart()
            return
        age = now - self._follow.raised
        if self._calm == 0 and (age <= _EVERY_WINDOW or age % _LATER == 0):  # what is over says nothing of the fault
            self._rename(now, alarm, self._follow)
        if now - self._follow.onset >= LONGEST:
            self.streams.frozen[:] = np.nan

    def _rename(self, now: int, alarm: Alarm, follow: Followed) -> None:
        values, moments, _ = self._recent.last(min(now + 1 - follow.onset, LONGEST))
        values[:, list(self.standing)] = np.nan
        known = alarm.decision.tolist()
        suspects = self.namer(follow.before, values[-_FOLLOWED:], moments[-_FOLLOWED:], known)
        courses = self.namer.courses(follow.before, values, moments, suspects)
        found = self._described(suspects, courses, alarm.onset, alarm.onset_interval)
        if now - follow.onset >= LONGEST:  # how it began is no longer seen
            known_kinds = dict(zip(known, alarm.kinds, strict=True))
            kinds = zip(suspects.members, found.kinds, strict=True)
            found = replace(found, kinds=tuple(known_kinds.get(k, kind) for k, kind in kinds))
        self.alarm = replace(found, time=alarm.time)
        self._freeze()

    def _described(self, suspects: Suspects, courses: Courses, onset: Time, interval: tuple[Time, Time]) -> Alarm:
        kinds, sizes = described(courses)
        beliefs, decision = suspects.beliefs(), np.array(suspects.members, dtype=np.intp)
        age = 0 if self._follow is None else self.time - 1 - self._follow.raised
        return Alarm(
            time=self._recent.label(0),
            onset=onset,
            onset_interval=interval,
            decision=decision,
            names=tuple(self.model.names[k] for k in suspects.members),
            kinds=kinds,
            sizes=sizes,
            beliefs=beliefs,
            confidence=self._counted("evidence", beliefs, decision, age),
        )

    def _counted(self, basis: Basis, beliefs: Array, decision: Index, age: int) -> float | None:
        """The confidence in a set, `age` windows after its alarm; None where no drill has counted it."""
        if self.confidence is None:
            return None
        share = self.confidence.counted(basis, set_belief(beliefs, decision), age)
        return None if math.isnan(share) else share

    def _freeze(self) -> None:
        """The level of the named sensors stays as it was before the onset."""
        if self.normal.level != "local" or self._follow is None or self.alarm is None:
            return
        if not len(self._follow.before.values):
            return
        chosen = self.alarm.decision
        level = self.normal.level_at(self._follow.before.values, np.zeros(1))[0]
        self.streams.frozen[:] = np.nan
        self.streams.frozen[:, chosen] = level[chosen]
