"""The streams of a problem watched for steps, window by window: quiet, suspicious, alarm, and quiet again.

`Watch.update` decides when an alarm is raised and when it is over. A file keeps the problem as its covariance, mean
and names, all that watching needs, with the inverse that was used, so that the watch goes on bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import numpy as np

from eccaht.base.arrays import Array, as_floats, as_number
from eccaht.base.codec import Field, Part, Sizes, restore, state_of
from eccaht.base.files import check_keys, read_archive, write_archive
from eccaht.base.labels import by_name
from eccaht.base.presentation.text import unknown
from eccaht.base.randomness import Seed, check_seed
from eccaht.streams.posterior.shared_noise import vector_noise
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import ShiftPrior, log_ratio_of_many
from eccaht.streams.watch.alarm import CAUTION, SUSPICIOUS, Alarm, State, bounded_evidence, number_of
from eccaht.streams.watch.assumption import Assumption
from eccaht.streams.watch.detector import LONGEST, EDetector
from eccaht.streams.watch.naming import Named, name_streams
from eccaht.streams.watch.sums import RecentSums
from eccaht.streams.watch.thresholds import GAUSSIAN, Calibrated, Calibration, SimulatedNoise, calibrated

Threshold = Literal["calibrated", "proven"]
_KIND, _VERSION = "watch", 5
FALSELY_OVER = 1000.0  # windows: mean time until a fault that goes on is called over, at least
STILL_THERE = 0.7  # of its estimated size: a fault that is as large at least goes on
_SETTLED = 20  # windows after the alarm until which its onset is looked for
_FOLLOWED = 60  # windows, the last ones, that say which streams are in the set
_INVERSE = 1e-6  # by how much covariance times precision of a file may differ from the identity
_OF_PROBLEM = ("n_anomalies", "mean", "names", "degrees_of_freedom", "estimated_from")


class Watch:
    """Watch streams window by window: an alarm in time, rarely a false one, and the streams named.

    Steps of any size, either sign, in any stream are looked for; a plant with a history is watched by `Model.watch`.

    problem: its covariance, mean and names; windows are independent draws while nothing is wrong, Gaussian unless it
    has degrees of freedom, of exactly this covariance unless that was estimated. `assumes` says which.
    false_alarm_every: the mean time to a false alarm, in windows, at least.
    threshold: "calibrated" by a simulation of the problem, which takes seconds when the watch is made, or "proven",
    without any simulation, whose alarms come some windows later; the proof is for Gaussian noise of a known covariance.

    Memory and time a window are constant. After an alarm its set is named anew in every window, until the windows look
    normal again; then the watch starts afresh. Only the threshold depends on degrees of freedom and estimates: streams
    are named, and the end is found, as with Gaussian noise of the given covariance.

    >>> problem = Problem(np.eye(5), shift=1.0, n_anomalies=1, budget=1.0, names=list("abcde"))
    >>> watch = Watch(problem, threshold="proven")
    >>> rows = np.random.default_rng(1).standard_normal((60, 5))
    >>> rows[40:, 2] += 3.0
    >>> alarms = [alarm for row in rows if (alarm := watch.update(row))]
    >>> [(alarm.time, alarm.onset, alarm.names) for alarm in alarms], watch.state
    ([(42, 40, ('c',))], 'alarm')
    """

    FIELDS = (
        Field("time", (), int),
        Field("_fresh", (), int),
        Field("_recent", (LONGEST, "K"), nan=True),
        Field("_log_time", low=-math.inf),
        Field("_over", low=-math.inf),
        Part("_assumption"),
        Part("_rule"),
        Part("alarm", Alarm, optional=True),
        Part("past", Alarm, optional=True),
        Part("_named", Named, optional=True),
    )

    def __init__(
        self,
        problem: Problem,
        *,
        false_alarm_every: float = 5000,
        threshold: Threshold = "calibrated",
        seed: Seed = 0,
    ) -> None:
        every = as_number(false_alarm_every, "false_alarm_every")
        if every < 1.0:
            raise ValueError(f"false_alarm_every is a number of windows of at least 1, not {false_alarm_every!r}")
        if threshold not in ("calibrated", "proven"):
            raise unknown(threshold, ("calibrated", "proven"), "threshold")
        if threshold == "proven":
            problem.check_gaussian("proven thresholds")
        covariance = vector_noise(problem, np.arange(problem.size))
        inverse = covariance.solve(np.eye(problem.size))
        precision = np.asarray(0.5 * (inverse + inverse.T))
        rule = (
            EDetector(precision)
            if threshold == "proven"
            else Calibrated(precision, calibrated(precision, check_seed(seed), SimulatedNoise.of(problem)))
        )
        self._begin(problem, every, covariance.dense(), precision, rule)

    def _begin(
        self, problem: Problem, every: float, covariance: Array, precision: Array, rule: Calibrated | EDetector
    ) -> None:
        self.problem, self.false_alarm_every = problem, every
        self._covariance, self._precision, self._rule = covariance, precision, rule
        self.time = 0  # windows so far
        self.alarm: Alarm | None = None  # as it is now
        self.past: Alarm | None = None  # the last one that is over
        self._recent = np.zeros((LONGEST, problem.size))  # x - mean, window t in row t modulo LONGEST
        self._windows = RecentSums(covariance, precision)
        self._fresh = 0  # the first window since the last start
        self._log_time = -math.inf
        self._over = -math.inf  # log evidence that the fault is over
        self._named: Named | None = None
        self._assumption = Assumption() if SimulatedNoise.of(problem) == GAUSSIAN else None

    def __repr__(self) -> str:
        rate = f"false_alarm_every={self.false_alarm_every:g}, threshold={self.threshold!r}"
        return f"Watch({rate}, assumes={self.assumes!r}, state={self.state!r})"

    @property
    def assumes(self) -> str:
        """What the false-alarm rate assumes."""
        return str(SimulatedNoise.of(self.problem))

    @property
    def cautions(self) -> tuple[str, ...]:
        """Ways in which the windows contradict what the false-alarm rate assumes.

        Only Gaussian noise of exactly this covariance is tested, and wrongly rejected in one watch of 1,000 at most.
        """
        return (CAUTION,) if self._assumption is not None and self._assumption.fails else ()

    @property
    def threshold(self) -> Threshold:
        """How the false-alarm rate is held."""
        return "proven" if isinstance(self._rule, EDetector) else "calibrated"

    @property
    def evidence(self) -> float:
        """How unusual the last windows are, in nats above the threshold: 0 raises an alarm.

        It is the logarithm of the mean time, so calibrated, in which chance alone brings windows as unusual as the last
        ones, in units of `false_alarm_every`.
        """
        return bounded_evidence(self._log_time - math.log(self.false_alarm_every))

    @property
    def state(self) -> State:
        if self.alarm is not None:
            return "alarm"
        return "suspicious" if self.evidence >= SUSPICIOUS else "quiet"

    def update(self, x: Any) -> Alarm | None:
        """Take a window, (K,) or a dict by name, NaN where a stream is silent; return an alarm that it raises."""
        deviations = self._checked(x) - self.problem.mean
        now, self.time = self.time, self.time + 1
        self._recent[now % LONGEST] = deviations
        self._windows.take(deviations)
        self._log_time = self._rule.update(deviations)
        if self.alarm is None:
            self._compare(now, now)
            if self._log_time < math.log(self.false_alarm_every):
                return None
            self._over = -math.inf
            alarm = self._described(now, None)
            self._compare(number_of(alarm.onset), now, back=True)
            self.alarm = replace(alarm, cautions=self.cautions)
            return self.alarm
        if self._is_over():
            self.past, self.alarm, self._named = replace(self.alarm, over=now), None, None
            self._fresh, self._log_time = self.time, -math.inf
            self._rule.reset()
        else:
            self.alarm = self._described(now, self.alarm)
        return None

    def _compare(self, first: int, last: int, back: bool = False) -> None:
        """Compare these windows with the assumption, or take back what they have added."""
        if self._assumption is not None:
            take = self._assumption.take_back if back else self._assumption.take
            take(self._windows.extent(self._recent[np.arange(first, last + 1) % LONGEST]))

    def _checked(self, x: Any) -> Array:
        """A window; unlike other readings it may be silent throughout."""
        vector = as_floats(by_name(x, self.problem.names, "window", absent=np.nan), "window")
        if vector.shape == (self.problem.size,) and np.isnan(vector).all():
            return vector
        return self.problem.checked_vector(vector)

    def _described(self, now: int, alarm: Alarm | None) -> Alarm:
        first = max(self._fresh, now + 1 - LONGEST)
        if len(self._windows) < now + 1 - first:  # after a restart
            self._windows.refill(self._recent[np.arange(first, now + 1) % LONGEST])
        settled = alarm is not None and now - number_of(alarm.time) > _SETTLED
        begin = None if alarm is None else max(number_of(alarm.onset) - first, 0)
        named = self._named = name_streams(
            self._windows, now + 1 - first, begin=begin, settled=settled, start=self._named, recent=_FOLLOWED
        )
        members = tuple(named.members.tolist())
        if alarm is not None and settled:
            when, interval = number_of(alarm.onset), alarm.onset_interval
        else:
            when, interval = first + named.onset.best, (first + named.onset.first, first + named.onset.last)
        return Alarm(
            time=now if alarm is None else alarm.time,
            onset=when,
            onset_interval=interval,
            decision=named.members,
            names=tuple(str(k) if self.problem.names is None else self.problem.names[k] for k in members),
            sizes=named.sizes,
            kinds=("step",) * len(members),
            beliefs=named.beliefs,
            confidence=named.confidence,
            cautions=self.cautions,
        )

    def _is_over(self) -> bool:
        """Has the fault ended? The likelihood of no shift against a share c of the last known shifts d of its set A.

        A window adds -c d'g_A + c^2 d'Q_AA d / 2 to the log ratio, whose exponential has a mean of at most 1 while the
        fault goes on with at least c d. The sum over the windows from which on it may have ended reaches FALSELY_OVER
        after as many windows in the mean, at the earliest.
        """
        if self._named is None:
            return False
        A, d = self._named.members, STILL_THERE * self._named.sizes / self._windows.units[self._named.members]
        window = self._windows.last(1)
        ratio = log_ratio_of_many(d, window.b[A], window.M[np.ix_(A, A)])
        self._over = float(np.logaddexp(0.0, self._over) - ratio)
        return self._over >= math.log(FALSELY_OVER)

    # -- files ---------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file from which `Watch.load` goes on exactly where this watch is."""
        write_archive(path, _KIND, _VERSION, self.stored())

    @staticmethod
    def load(path: str | PathLike[str]) -> Watch:
        """Read a watch that was saved; safe for untrusted files."""
        return read_archive(path, _KIND, _VERSION, Watch.build)

    def stored(self) -> dict[str, Any]:
        """All of it, of which `build` makes it again."""
        problem, rule = self.problem, self._rule
        return {
            "problem": {
                "covariance": self._covariance,
                "shift": problem.shift,
                "shift_spread": problem.shift_spread,
                **{name: getattr(problem, name) for name in _OF_PROBLEM},
            },
            "precision": self._precision,
            "calibration": rule.calibration.numbers() if isinstance(rule, Calibrated) else None,
            "false_alarm_every": self.false_alarm_every,
            "state": state_of(self),
        }

    @staticmethod
    def build(stored: Any) -> Watch:
        """From what an untrusted file says."""
        check_keys(stored, {"problem", "precision", "calibration", "false_alarm_every", "state"}, "watch")
        known, calibration = stored["problem"], stored["calibration"]
        check_keys(known, {"covariance", "shift", "shift_spread", *_OF_PROBLEM}, "problem")
        problem = Problem(
            known["covariance"],
            shift=ShiftPrior(known["shift"], known["shift_spread"]),
            budget=1.0,
            **{name: known[name] for name in _OF_PROBLEM},
        )
        every = as_number(stored["false_alarm_every"], "false_alarm_every")
        if every < 1.0:
            raise ValueError("its false-alarm rate is damaged")
        precision = _checked_inverse(stored["precision"], known["covariance"])
        rule: Calibrated | EDetector
        if calibration is None:
            problem.check_gaussian("proven thresholds")
            rule = EDetector(precision)
        else:
            rule = Calibrated(precision, Calibration.from_numbers(calibration, SimulatedNoise.of(problem)))
        watch = Watch.__new__(Watch)
        watch._begin(problem, every, known["covariance"], precision, rule)
        restore(watch, stored["state"], {"K": problem.size})
        return watch

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        names = self.problem.names or tuple(map(str, range(self.problem.size)))
        if self._fresh > self.time or (self.alarm is None) != (self._named is None):
            raise ValueError("its windows are damaged: they do not fit its alarm")
        for alarm in (self.alarm, self.past):
            if alarm is not None:
                alarm.check_of(names, dated=False, over=alarm is self.past)
                last = number_of(alarm.onset_interval[1])
                if number_of(alarm.time) >= self.time or last > number_of(alarm.time) + LONGEST:
                    raise ValueError("its alarms are damaged: they are of windows to come")
                if (np.diff(alarm.decision) <= 0).any() or np.isnan(alarm.sizes).any():
                    raise ValueError("its alarms are damaged: their streams are in no order")
        named, alarm = self._named, self.alarm
        if named is not None and alarm is not None and not np.array_equal(named.members, alarm.decision):
            raise ValueError("its alarm is damaged: it names other streams than the windows")


def _checked_inverse(precision: Array, covariance: Array) -> Array:
    if precision.shape != covariance.shape or not np.isfinite(precision).all() or (precision != precision.T).any():
        raise ValueError("its precision is damaged")
    root = np.sqrt(covariance.diagonal())
    off = (covariance / np.outer(root, root)) @ (precision * np.outer(root, root)) - np.eye(len(root))
    if np.abs(off).max() > _INVERSE * max(1.0, float(np.abs(precision).max() * root.max() ** 2)):
        raise ValueError("its precision is not the inverse of its covariance")
    return precision
