"""A plant watched window by window by its model of normal operation.

The statistic of `history` raises the alarm; the engine of `identify` names the sensors, with the kind and size of what
is wrong. From the onset on the level of the named sensors is frozen; the set is named anew as the alarm goes on, which
is over once the last windows are normal again. A local level says what is normal for a few hours only: what has lasted
for `streams.LONGEST` windows is its new level.

A sensor that repeats one value for longer than it may, or delivers nothing while others do, is named at once, on no
evidence but that, and bears none about others until it is back; one that has moved again may stand still for twice as
long from then on, so that sensors that come to rest often do not raise alarm after alarm. Missing windows say nothing;
after a long gap the level is taken afresh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index, as_floats, as_number
from eccaht.data.durations import parse_duration
from eccaht.data.windows import Windows
from eccaht.incident.describe import Case, suspect
from eccaht.incident.judge import Judge, Judgement
from eccaht.incident.onset import Onset, onset_of
from eccaht.incident.quiet import LONGER
from eccaht.labels import by_name
from eccaht.model.model import Model
from eccaht.watch.history import CALM_LENGTHS, Rule, rule_of_history
from eccaht.watch.streams import LONGEST, Streams

State = Literal["quiet", "suspicious", "alarm"]
Time = np.datetime64 | int
SUSPICIOUS = 0.1  # evidence
SHORT_GAP = 5  # windows: after a longer gap the watch begins afresh
FEWEST_SILENT = 5  # windows in a row, while others deliver, that make a sensor silent
CALM = 10  # windows in a row that must be normal for an alarm to be over
_EARLIER = 10  # windows before a stretch, and as many as it has, in which the onset is looked for
_FOLLOWED = 60  # windows, the last ones, that say which sensors are in the set
_EVERY_WINDOW, _LATER = 30, 10  # the set is named in so many windows after the alarm, then every tenth
_DECIDED = 1.0  # the share of quiet stretches in which the judge may name something: the alarm is raised already


@dataclass(frozen=True, eq=False)
class PlantAlarm:
    """What is wrong in a plant. Times are those of windows, or their numbers, from 0, where they have none.

    time: of the window that raised it. onset: the most likely first window of the fault, onset_interval: the first and
    the last one of an interval of 95 %. decision: the sensors, (n,); names, kinds, sizes (robust units): theirs.
    beliefs: the probability of each sensor of the model to be wrong, (K,). confidence: None, nobody has counted it.
    over: when it was called over, None while it goes on.
    """

    time: Time
    onset: Time
    onset_interval: tuple[Time, Time]
    decision: Index
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    sizes: Array
    beliefs: Array
    confidence: float | None = None
    over: Time | None = None


class PlantWatch:
    """Watch the sensors of a model.

    history: the windows that the model was calibrated on, as `calibrate_with_windows` gives them, or the rule that was
    counted on them. false_alarm_every: the mean time to a false alarm, in windows, or a length of time such as "1d".
    """

    def __init__(self, model: Model, history: Windows | Rule, *, false_alarm_every: float | str = 5000) -> None:
        if model.normal is None:
            raise ValueError("the model does not describe normal operation: calibrate it again")
        every = false_alarm_every
        if isinstance(every, str):
            every = parse_duration(every, "false_alarm_every") / model.seconds
        self.false_alarm_every = as_number(every, "false_alarm_every")
        if self.false_alarm_every < 1.0:
            raise ValueError(f"false_alarm_every is at least one window, not {false_alarm_every!r}")
        self.model, self.normal = model, model.normal
        self.rule = history if isinstance(history, Rule) else rule_of_history(model, history)
        self.threshold = self.rule.passes.threshold(self.false_alarm_every)
        self.basis = self.rule.basis(self.false_alarm_every)
        self.streams = Streams(self.normal, self.rule.law)
        self.judge = Judge(self.normal, self.rule.quiet, _DECIDED)
        K = self.normal.size
        self.time = 0  # windows so far, missing ones counted
        self.n_late = 0  # windows that came again or too late, and were left out
        self.alarm: PlantAlarm | None = None  # as it is now
        self.past: PlantAlarm | None = None  # the last one that is over
        self.standing: dict[int, tuple[str, int]] = {}  # sensors that are stuck or silent, and since which window
        self._recent = _Recent(K, self.normal.width + LONGEST)
        self._follow: _Followed | None = None
        self._start: np.datetime64 | None = None  # of the last window
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

    def update(self, x: Any, time: Any = None) -> PlantAlarm | None:
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
        rarities = self.rule.statistic(self.streams.update(shown, moment))
        self._statistic = float(rarities.max())
        if self.alarm is not None:
            self._calm = self._calm + 1 if float(rarities[:, :CALM_LENGTHS].max()) < self.rule.calm else 0
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
        if start is None:
            return True
        if self._start is not None:
            passed = float((start - self._start) / np.timedelta64(1, "us")) / (1e6 * self.model.seconds)
            if passed < 0.5:
                self.n_late += 1
                return False
            lost = round(passed) - 1
            self._missing += lost
            self.time += lost
        self._start = start
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

    def _standing(self, window: Array, now: int) -> PlantAlarm | None:
        """Sensors that stand still from this window on raise an alarm of their own; those that are back are free."""
        silent = np.isnan(window)
        self._silent = np.where(silent, self._silent + 1, 0)
        goes_on = window == self._value
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
        return PlantAlarm(
            time=self._recent.label(0),
            onset=self._recent.label(now - onset),
            onset_interval=(self._recent.label(now - onset), self._recent.label(now - onset)),
            decision=chosen,
            names=tuple(self.model.names[k] for k in new),
            kinds=tuple(self.standing[k][0] for k in new),
            sizes=np.full(len(new), np.nan),
            beliefs=beliefs,
        )

    # -- alarms --------------------------------------------------------------------------------------

    def _raise(self, now: int, length: int) -> None:
        """Name the sensors of an alarm whose evidence is strongest for the last `length` windows."""
        values, moments, starts = self._recent.all()
        start = max(len(values) - length, 0)
        judgement = self.judge(values, moments, start, len(values))
        onset = self._onset(judgement, values, moments, start)
        before = slice(max(onset.best - self.normal.width, 0), onset.best)
        self._follow = _Followed(
            now, now - (len(values) - 1 - onset.best), values[before], moments[before], starts[before]
        )
        self.alarm = self._described(judgement, onset, start, (values, starts), None)
        self._freeze()
        self._calm = 0

    def _onset(self, judgement: Judgement, values: Array, moments: Array, start: int) -> Onset:
        """The onset of what a judged stretch names, looked for further back than the stretch."""
        if not judgement.named:
            return Onset(start, start, start)
        first = max(len(values) - 2 * (len(values) - start) - _EARLIER, min(self.normal.width, start))
        longer = self.judge(values, moments, first, len(values))
        return onset_of(replace(longer, named=judgement.named, views=judgement.views), values, first)

    def _go_on(self, now: int, alarm: PlantAlarm) -> None:
        """Name the sensors anew, or call the alarm over."""
        if self._follow is None or self._calm >= CALM:
            self.past = replace(alarm, over=self._recent.label(0))
            self.alarm, self._follow, self._statistic = None, None, 0.0
            self.streams.frozen[:] = np.nan
            self.streams.restart()
            return
        age = now - self._follow.raised
        if age <= _EVERY_WINDOW or age % _LATER == 0:
            self._rename(now, alarm, self._follow)
        if now - self._follow.onset >= LONGEST:
            self.streams.frozen[:] = np.nan

    def _rename(self, now: int, alarm: PlantAlarm, follow: _Followed) -> None:
        values, moments, starts = self._recent.last(min(now + 1 - follow.onset, _FOLLOWED))
        start = len(follow.values)
        shown = np.concatenate([follow.values, values])
        times = np.concatenate([follow.starts, starts])
        judgement = self.judge(shown, np.concatenate([follow.moments, moments]), start, len(shown))
        self.alarm = self._described(judgement, Onset(start, start, start), start, (shown, times), alarm)
        self._freeze()

    def _described(
        self,
        judgement: Judgement,
        onset: Onset,
        start: int,
        windows: tuple[Array, NDArray[Any]],
        alarm: PlantAlarm | None,
    ) -> PlantAlarm:
        """The alarm of a judged stretch; an alarm that goes on keeps its time and onset."""
        values, labels = windows
        if not judgement.named:
            judgement = replace(judgement, named=judgement.order[:1])
        beliefs = judgement.beliefs()
        dates = np.arange(len(values)).astype("datetime64[s]")
        shown = Windows(dates, values, self.model.names, self.model.seconds, clock=self.model.clock)
        case = Case(self.model, shown, self.judge, judgement, onset, start, len(values))
        named = [suspect(case, k, float(beliefs[k])) for k in judgement.named]
        found = PlantAlarm(
            time=self._recent.label(0),
            onset=labels[onset.best],
            onset_interval=(labels[onset.first], labels[onset.last]),
            decision=np.array(judgement.named, dtype=np.intp),
            names=tuple(each.sensor for each in named),
            kinds=tuple(each.kind for each in named),
            sizes=np.array([each.size for each in named]),
            beliefs=beliefs,
        )
        if alarm is None:
            return found
        return replace(found, time=alarm.time, onset=alarm.onset, onset_interval=alarm.onset_interval)

    def _freeze(self) -> None:
        """The level of the named sensors stays as it was before the onset."""
        if self.normal.level != "local" or self._follow is None or self.alarm is None or not len(self._follow.values):
            return
        chosen = self.alarm.decision
        level = self.normal.level_at(self._follow.values, np.zeros(1))[0]
        self.streams.frozen[:] = np.nan
        self.streams.frozen[chosen] = level[chosen]


@dataclass(frozen=True, eq=False)
class _Followed:
    """The alarm that goes on: when it was raised, its onset, and the windows before that."""

    raised: int
    onset: int
    values: Array
    moments: Array
    starts: NDArray[Any]


class _Recent:
    """The last windows with their seconds of the day and their times."""

    def __init__(self, size: int, most: int) -> None:
        self._values, self._moments = np.zeros((most, size)), np.zeros(most)
        self._labels: list[Time] = [0] * most
        self._count = 0

    def put(self, x: Array, moment: float, label: Time) -> None:
        """Take a window."""
        row = self._count % len(self._moments)
        self._values[row], self._moments[row], self._labels[row] = x, moment, label
        self._count += 1

    def label(self, ago: int) -> Time:
        """The time of a window, 0 the last one."""
        known = min(self._count, len(self._moments))
        return self._labels[(self._count - 1 - min(ago, known - 1)) % len(self._moments)]

    def last(self, number: int) -> tuple[Array, Array, NDArray[Any]]:
        """The last windows, in order."""
        known = min(number, self._count, len(self._moments))
        rows = np.arange(self._count - known, self._count) % len(self._moments)
        return self._values[rows], self._moments[rows], np.array([self._labels[row] for row in rows])

    def all(self) -> tuple[Array, Array, NDArray[Any]]:
        """All that are kept."""
        return self.last(len(self._moments))
