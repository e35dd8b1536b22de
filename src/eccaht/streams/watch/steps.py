"""The streams of a problem watched for steps, window by window: quiet, suspicious, alarm, and quiet again.

`StepWatch.update` decides when an alarm is raised and when it is over. A file keeps the problem as its covariance, mean
and names, all that watching needs, with the inverse that was used, so that the watch goes on bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, as_count, as_floats, as_number, check_bounded
from eccaht.base.files import check_keys, part_of
from eccaht.base.labels import by_name
from eccaht.base.presentation.text import unknown
from eccaht.base.randomness import Seed, check_seed
from eccaht.streams.posterior.shared_noise import vector_noise
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import ShiftPrior, log_ratio_of_many
from eccaht.streams.watch.alarm import (
    CAUTION,
    SUSPICIOUS,
    Alarm,
    State,
    built_alarms,
    number_of,
    stored_alarms,
)
from eccaht.streams.watch.assumption import Assumption
from eccaht.streams.watch.detector import LONGEST, EDetector
from eccaht.streams.watch.naming import SIZES, Named, Onset, name_streams
from eccaht.streams.watch.sums import RecentSums
from eccaht.streams.watch.thresholds import GAUSSIAN, Calibrated, Calibration, SimulatedNoise, calibrated

Threshold = Literal["calibrated", "proven"]
FALSELY_OVER = 1000.0  # windows: mean time until a fault that goes on is called over, at least
STILL_THERE = 0.7  # of its estimated size: a fault that is as large at least goes on
_SETTLED = 20  # windows after the alarm until which its onset is looked for
_FOLLOWED = 60  # windows, the last ones, that say which streams are in the set
_INVERSE = 1e-6  # by how much covariance times precision of a file may differ from the identity
_KEYS = {"names", "n_anomalies", "threshold", "false_alarm_every", "time", "fresh", "alarm", "past", "common"}
_ARRAYS = {"covariance", "precision", "mean", "shift", "shift_spread", "recent", "logarithms"}
_NOISE: dict[str, Any] = {"degrees_of_freedom": None, "estimated_from": None}  # absent from earlier files


class StepWatch:
    """Watch the streams of a problem for steps of any size, either sign, in any of them.

    problem: its covariance, mean and names; windows are independent draws while nothing is wrong, Gaussian unless it
    has degrees of freedom, of exactly this covariance unless that was estimated. `assumes` says which.
    false_alarm_every: the mean time to a false alarm, in windows, at least.
    threshold: "calibrated" by a simulation of the problem, which takes seconds when the watch is made, or "proven",
    without any simulation, whose alarms come some windows later; the proof is for Gaussian noise of a known covariance.

    Memory and time a window are constant. After an alarm its set is named anew in every window, until the windows look
    normal again; then the watch starts afresh. Only the threshold depends on degrees of freedom and estimates: streams
    are named, and the end is found, as with Gaussian noise of the given covariance.
    """

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
        """How unusual the last windows are: 1 raises an alarm.

        It is the mean time, so calibrated, in which chance alone brings windows as unusual as the last ones, in units
        of `false_alarm_every`.
        """
        return math.exp(min(self._log_time - math.log(self.false_alarm_every), 700.0))

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

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All of it as values of JSON and arrays, of which `build` makes it again."""
        problem = self.problem
        arrays: dict[str, NDArray[Any]] = {
            "covariance": self._covariance,
            "precision": self._precision,
            "mean": problem.mean,
            "shift": problem.shift,
            "shift_spread": problem.shift_spread,
            "recent": self._recent,
            "logarithms": np.array([self._log_time, self._over]),
        }
        if self._assumption is not None:
            arrays["assumption"] = self._assumption.state()
        arrays |= {f"rule.{name}": array for name, array in self._rule.state().items()}
        header: dict[str, Any] = {
            "names": problem.names,
            "n_anomalies": problem.n_anomalies,
            "threshold": self.threshold,
            "false_alarm_every": self.false_alarm_every,
            "time": self.time,
            "fresh": self._fresh,
            "common": None if self._named is None else self._named.common,
            **{name: getattr(problem, name) for name in _NOISE},
        }
        alarms, of_alarms = stored_alarms(self.alarm, self.past)
        return header | alarms, arrays | of_alarms

    @staticmethod
    def build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> StepWatch:
        """From the header and arrays of an untrusted file."""
        header = {**_NOISE, **header}
        check_keys(header, _KEYS | set(_NOISE), "header")
        parts = ("rule", "alarm", "past")
        plain = {name: array for name, array in arrays.items() if name.partition(".")[0] not in parts}
        check_keys(plain, _ARRAYS | ({"assumption"} & set(plain)), "list of arrays")
        problem = Problem(
            plain["covariance"],
            shift=ShiftPrior(plain["shift"], plain["shift_spread"]),
            n_anomalies=header["n_anomalies"],
            budget=1.0,
            mean=plain["mean"],
            names=header["names"],
            **{name: header[name] for name in _NOISE},
        )
        every = as_number(header["false_alarm_every"], "false_alarm_every")
        if every < 1.0:
            raise ValueError("its false-alarm rate is damaged")
        precision = _checked_inverse(plain["precision"], plain["covariance"])
        rule = _rule(header["threshold"], problem, precision, part_of(arrays, "rule"))
        watch = StepWatch.__new__(StepWatch)
        watch._begin(problem, every, plain["covariance"], precision, rule)
        watch._restore(header, plain, arrays)
        return watch

    def _restore(self, header: dict[str, Any], plain: dict[str, NDArray[Any]], arrays: dict[str, NDArray[Any]]) -> None:
        """Take what changes from window to window, checked."""
        self.time, self._fresh = (as_count(header[name], name, least=0) for name in ("time", "fresh"))
        recent, logarithms = plain["recent"], plain["logarithms"]
        if self._fresh > self.time or recent.shape != self._recent.shape or logarithms.shape != (2,):
            raise ValueError("its windows are damaged")
        check_bounded(recent[~np.isnan(recent)], "windows")
        if not (logarithms < np.inf).all():
            raise ValueError("its evidence is damaged")
        self._recent, (self._log_time, self._over) = recent, logarithms.tolist()
        if "assumption" in plain:
            if self._assumption is None:
                raise ValueError("its check of the noise is damaged")
            self._assumption.restore(plain["assumption"])
        names = self.problem.names or tuple(map(str, range(self.problem.size)))
        self.alarm, self.past = built_alarms(header, arrays, names, dated=False)
        for alarm in (self.alarm, self.past):
            self._check_alarm(alarm)
        if (self.alarm is None) != (header["common"] is None):
            raise ValueError("its alarms are damaged")
        if (a := self.alarm) is not None:
            if a.over is not None or header["common"] not in SIZES:
                raise ValueError("its alarm is damaged")
            onset = Onset(*map(number_of, (a.onset, *a.onset_interval)))
            self._named = Named(a.decision, a.sizes, a.beliefs, onset, header["common"])

    def _check_alarm(self, alarm: Alarm | None) -> None:
        if alarm is None:
            return
        time, last = number_of(alarm.time), number_of(alarm.onset_interval[1])
        if time >= self.time or last > time + LONGEST or (np.diff(alarm.decision) <= 0).any():
            raise ValueError("its alarms are damaged")
        check_bounded(alarm.sizes, "sizes")


def _rule(threshold: Any, problem: Problem, precision: Array, state: dict[str, NDArray[Any]]) -> Calibrated | EDetector:
    rule: Calibrated | EDetector
    if threshold == "proven":
        problem.check_gaussian("proven thresholds")
        rule = EDetector(precision)
    elif threshold == "calibrated":
        rule = Calibrated(precision, Calibration.from_numbers(state["calibration"], SimulatedNoise.of(problem)))
    else:
        raise ValueError("its threshold is neither 'calibrated' nor 'proven'")
    rule.restore(state)
    return rule


def _checked_inverse(precision: Array, covariance: Array) -> Array:
    if precision.shape != covariance.shape or not np.isfinite(precision).all() or (precision != precision.T).any():
        raise ValueError("its precision is damaged")
    root = np.sqrt(covariance.diagonal())
    off = (covariance / np.outer(root, root)) @ (precision * np.outer(root, root)) - np.eye(len(root))
    if np.abs(off).max() > _INVERSE * max(1.0, float(np.abs(precision).max() * root.max() ** 2)):
        raise ValueError("its precision is not the inverse of its covariance")
    return precision
