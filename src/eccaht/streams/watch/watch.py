"""Streams watched for a change with few readings a step, or all: ask, tell, an alarm, and then which streams.

A file keeps the last readings as they came, and works out the rest again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, as_count, as_floats, as_number, frozen
from eccaht.base.codec import Field, Part, Sizes, restore, state_of
from eccaht.base.files import check_keys, read_archive, write_archive
from eccaht.base.labels import by_name
from eccaht.streams.policies.storage import packed_problem, unpacked_problem
from eccaht.streams.problem import Problem
from eccaht.streams.watch.alarm import CAUTION, SUSPICIOUS, Alarm, State, bounded_evidence, number_of
from eccaht.streams.watch.assumption import Assumption
from eccaht.streams.watch.choice import Choice
from eccaht.streams.watch.evidence import Evidence
from eccaht.streams.watch.readings import LONGEST, Readings
from eccaht.streams.watch.suspects import Suspects, onset_of
from eccaht.streams.watch.threshold import threshold_of

_KIND, _VERSION = "watch", 7
_PATIENCE = 4  # times as long as reading all streams in turn takes, after which a stream is read whatever is suspected
_SEEN = 0.1  # of the information in reading a stream alone: it has been visited


class Watch:
    """Watch streams for a change with `readings` measurements a step, under the constraint of the problem.

    readings: how many measurements `ask` gives a step; None reads all streams.
    false_alarm_every: the mean time to a false alarm, in steps, at least.

    The problem says which changes are looked for: their size (`shift`, an UnknownShift where it is not known) and how
    many streams they move (`n_anomalies`). Steps are independent while nothing is wrong. After an alarm the readings
    separate the suspects; `certain` says when the set is wrong with a probability of 5 % at most, and once the readings
    look normal again the watch starts afresh.

    >>> problem = Problem(np.eye(5), shift=3.0, n_anomalies=1, budget=1.0, names=list("abcde"))
    >>> watch, rng = Watch(problem, readings=2, false_alarm_every=1000), np.random.default_rng(1)
    >>> while watch.alarm is None:
    ...     C = watch.ask()
    ...     x = rng.standard_normal(5) + 3.0 * (watch.time >= 40) * problem.covariance.column(2)
    ...     alarm = watch.tell(C, C @ x)
    >>> alarm.time, alarm.onset, alarm.names
    (43, 42, ('c',))
    """

    FIELDS = (
        Field("time", (), int),
        Field("_unread", ("K",), int),
        Field("_fresh", (), int),
        Field("_threshold", low=0.0),
        Part("_evidence"),
        Part("_readings"),
        Part("_assumption", optional=True),
        Part("_suspects", optional=True),
        Part("alarm", Alarm, optional=True),
        Part("past", Alarm, optional=True),
    )

    def __init__(self, problem: Problem, readings: int | None = None, false_alarm_every: float = 5000) -> None:
        if not isinstance(problem, Problem):
            raise ValueError(f"Watch needs a Problem, not {type(problem).__name__}")
        every = as_number(false_alarm_every, "false_alarm_every")
        if every < 1.0:
            raise ValueError(f"false_alarm_every is a number of steps of at least 1, not {false_alarm_every!r}")
        self.problem, self.false_alarm_every = problem, every
        self.readings = None if readings is None else as_count(readings, "readings", least=1)
        self._choice = None if self.readings is None else Choice(problem, self.readings)
        self._readings = Readings(problem)
        self.time = 0  # steps so far
        self.alarm: Alarm | None = None  # as it is now
        self.past: Alarm | None = None  # the last one that is over
        self._asked: Array | None = None
        self._unread = np.zeros(problem.size, dtype=np.int64)  # steps since a stream was visited
        known = problem.degrees_of_freedom is None and problem.estimated_from is None
        self._assumption = Assumption() if known else None
        self._begin()

    @cached_property
    def _threshold(self) -> float:
        return threshold_of(self.problem, self._choice, self.false_alarm_every)

    def _begin(self) -> None:
        self._fresh = self.time  # the first step since the last start
        self._evidence = Evidence(self.problem)
        self._suspects: Suspects | None = None

    def ask(self) -> Array:
        """The measurements of this step, (m, K), read-only; the same ones until they are told."""
        if self._asked is None:
            if self._choice is None:
                self._asked = frozen(np.eye(self.problem.size))
            else:
                longest = int(self._unread.argmax())
                overdue = self.time % 2 == 0 and self._unread[longest] >= _PATIENCE * self._round
                self._asked = self._choice(self._variance(), longest if overdue else None)
        return self._asked

    @property
    def longest_unread(self) -> int:
        """The most steps that a stream ever goes without being read, if what is asked for is told."""
        return _PATIENCE * self._round + 2 * self.problem.size

    @property
    def _round(self) -> int:
        return -(-self.problem.size // (self.readings or self.problem.size))

    def _variance(self) -> Array:
        """Of the shifts, (K,), by what is known of them."""
        return self._evidence.suspicion() if self._suspects is None else self._suspects.variance()

    def tell(self, C: Any, y: ArrayLike) -> Alarm | None:
        """Take the readings y (q,) of the measurements C (q, K) of this step; return an alarm that they raise.

        C need not be what was asked for. A reading that is NaN did not come.
        """
        if C is self._asked and self._choice is None:
            return self.update(y)
        values = as_floats(y, "readings")
        came = ~np.isnan(values)
        if values.ndim == 1 and len(values) == len(C) and not came.all():
            C, values = [row for row, there in zip(C, came.tolist(), strict=True) if there], values[came]
        if values.size:
            rows, values = self.problem.checked_moment(C, values)
        else:
            rows = np.zeros((0, self.problem.size))
        return self._take(rows, values - rows @ self.problem.mean)

    def update(self, x: Any) -> Alarm | None:
        """Take a whole vector, (K,) or a dict by name, NaN where a stream is silent; return an alarm that it raises."""
        vector = as_floats(by_name(x, self.problem.names, "reading", absent=np.nan), "reading")
        if vector.shape != (self.problem.size,) or not np.isnan(vector).all():  # unlike others it may be silent
            vector = self.problem.checked_vector(vector)
        return self._take(None, vector - self.problem.mean)

    def _take(self, C: Array | None, rest: Array) -> Alarm | None:
        step = self._readings.take(C, rest)
        self.time, self._asked = self.time + 1, None
        self._unread += 1
        self._unread[step.noise.information * self.problem.covariance.diagonal() >= _SEEN] = 0
        if self.alarm is None:
            self._evidence.update(step.noise.weights, step.w, step.noise.information)
            if self._assumption is not None:
                self._assumption.take(step.w)
            return self._raised() if self.evidence >= 0.0 else None
        assert self._suspects is not None
        self._suspects.take([step])
        if self._suspects.passes(step):
            self.past, self.alarm = replace(self.alarm, over=self.time - 1), None
            self._begin()
        else:
            self.alarm = self._described(self.alarm)
        return None

    def _raised(self) -> Alarm:
        """Find the onset for the streams that are most probable, and the set from the readings since."""
        now, steps = self.time - 1, self._readings.last(self.time - self._fresh)
        chance, mean, _ = self._evidence.expected(1.0 / self.problem.size)
        members = np.flatnonzero(chance >= min(0.5, float(chance.max())))
        onset = onset_of(steps, members, mean[members] / chance[members])
        since = steps[len(steps) - 1 - onset.last :]  # earlier ones may be quiet, and would speak against members
        self._suspects = Suspects(self.problem)
        self._suspects.take(since)
        if self._assumption is not None:
            self._assumption.take_back([step.w for step in since])
        first, last = now - onset.first, now - onset.last
        nobody = np.zeros(0, dtype=np.intp)
        begun = Alarm(now, now - onset.best, (first, last), nobody, (), np.zeros(0), (), np.zeros(0), None)
        self.alarm = replace(self._described(begun), cautions=self.cautions)
        return self.alarm

    def _described(self, alarm: Alarm) -> Alarm:
        """The alarm with the streams that are suspected now."""
        assert self._suspects is not None
        members, sizes = self._suspects.members
        names = self.problem.names or tuple(map(str, range(self.problem.size)))
        return replace(
            alarm,
            decision=members,
            names=tuple(names[k] for k in members.tolist()),
            sizes=sizes,
            kinds=("step",) * len(members),
            beliefs=self._suspects.beliefs,
            confidence=self._suspects.confidence,
        )

    @property
    def evidence(self) -> float:
        """How much speaks for a change, in nats above the threshold: 0 raises an alarm."""
        return bounded_evidence(self._evidence.log - self._threshold)

    @property
    def state(self) -> State:
        if self.alarm is not None:
            return "alarm"
        return "suspicious" if self.evidence >= SUSPICIOUS else "quiet"

    @property
    def certain(self) -> bool:
        """Is there an alarm whose set is wrong with a probability of 5 % at most?"""
        return self._suspects is not None and self._suspects.certain

    @property
    def cautions(self) -> tuple[str, ...]:
        """Ways in which the readings contradict what the false-alarm rate assumes.

        Only Gaussian noise of exactly this covariance is tested, and wrongly rejected in one watch of 1,000 at most.
        """
        return (CAUTION,) if self._assumption is not None and self._assumption.fails else ()

    def __repr__(self) -> str:
        return f"Watch(readings={self.readings}, false_alarm_every={self.false_alarm_every:g}, state={self.state!r})"

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file from which `Watch.load` goes on exactly where this watch is."""
        write_archive(path, _KIND, _VERSION, self.stored())

    @staticmethod
    def load(path: str | PathLike[str]) -> Watch:
        """Read a watch that was saved; safe for untrusted files."""
        return read_archive(path, _KIND, _VERSION, Watch.build)

    def stored(self) -> dict[str, Any]:
        """All of it, of which `build` makes it again."""
        of = {"readings": self.readings, "false_alarm_every": self.false_alarm_every}
        return {"problem": packed_problem(self.problem), **of, "state": state_of(self)}

    @staticmethod
    def build(stored: Any) -> Watch:
        """From what an untrusted file says."""
        check_keys(stored, {"problem", "readings", "false_alarm_every", "state"}, "watch")
        problem, state = unpacked_problem(stored["problem"], stored), stored["state"]
        watch = Watch(problem, stored["readings"], stored["false_alarm_every"])
        sizes = {"K": problem.size, "n": problem.sizes[1]}
        if isinstance(state, dict) and isinstance(suspects := state.get("suspects"), dict):
            watch._suspects = Suspects(problem)
            sizes["t"] = as_count(suspects["rows"], "the number of its readings", least=0)
        restore(watch, state, sizes)
        return watch

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        names = self.problem.names or tuple(map(str, range(self.problem.size)))
        if self._fresh > self.time or (self.alarm is None) != (self._suspects is None):
            raise ValueError("its steps are damaged: they do not fit its alarm")
        if len(self._readings) != min(self.time, LONGEST):
            raise ValueError("its readings are damaged: they are not those of the last steps")
        for alarm in (self.alarm, self.past):
            if alarm is not None:
                alarm.check_of(names, dated=False, over=alarm is self.past)
                if number_of(alarm.time) >= self.time or (np.diff(alarm.decision) <= 0).any():
                    raise ValueError("its alarms are damaged: they are of steps to come, or of streams in no order")
