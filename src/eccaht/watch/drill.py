"""Drills of a watch: quiet windows watched from beginning to end, and faults of known kind that begin on the way.

The watch runs along the quiet windows once. At the onset of each fault it is copied, and the copy goes on with the
windows as the fault shows them, so that it has seen what a watch would have seen, and no window is watched twice to get
there. A fault begins while no alarm is on; where one is, it waits until that is over. It is found in the first window
in which an alarm raised since its onset names one of its sensors.

Then the same once more, with steps alone, on windows whose levels wander otherwise: the slow course of all sensors is
that of another time (see `wander`). A slow change of normal operation of the size that the windows themselves show must
neither raise alarms nor hide a fault.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, as_count
from eccaht.data.windows import Windows
from eccaht.incident.drilling import LENGTHS, Ground
from eccaht.incident.faults import KINDS
from eccaht.incident.judge import Basis
from eccaht.randomness import Seed, check_seed, rng_for
from eccaht.watch.alarm import Alarm
from eccaht.watch.drill_confidence import SETTLED, NamedSet, WatchConfidence, set_belief
from eccaht.watch.plant import PlantWatch
from eccaht.watch.wander import elsewhere, slow_course

RUNS = 120
MOST_RUNS = 5000
WANDERS = "step"  # the kind of faults that are put into windows whose levels wander
_STRETCHES = 3  # that must fit beside each other
_TRIES = 5  # draws of a fault that shows something
Progress = Callable[[int], object]


@dataclass(frozen=True)
class WatchDrill:
    """One fault and what the watch made of it.

    size: in robust units, 0 for kinds without. sensors: the faulty ones. onset: number of its first window.
    raised: what the first alarm since the onset named; settled: what was named SETTLED windows later. raised_after,
    found_after: windows from the onset up to and with the one that raised that alarm, and up to the first one in which
    a faulty sensor was named. All of them None where there was no such window before the end.
    """

    kind: str
    size: float
    sensors: tuple[int, ...]
    onset: int
    raised: NamedSet | None = None
    raised_after: int | None = None
    settled: NamedSet | None = None
    found_after: int | None = None

    def right(self, named: NamedSet) -> bool:
        """Whether these are exactly the faulty sensors."""
        return set(named.sensors) == set(self.sensors)


class QuietAlarm(NamedTuple):
    """An alarm in quiet windows: when it was raised, on what basis, and whom it named."""

    time: np.datetime64
    basis: Basis
    names: tuple[str, ...]


@dataclass(frozen=True)
class Watched:
    """What a watch did along quiet windows and in the faults that began there.

    windows: those that it could judge; free: those of them in which no alarm was on, so that one could be raised.
    left_out: faults that could not begin, or not show.
    """

    windows: int
    free: int
    alarms: tuple[QuietAlarm, ...]
    drills: tuple[WatchDrill, ...]
    left_out: int


@dataclass(frozen=True)
class WatchDrilled:
    """Drills of a watch. stretch: windows for which each fault was watched. wandering: where levels wander otherwise.

    wander: the standard deviation of that slow course, the median of the sensors, in robust units.
    """

    every: float
    stretch: int
    plain: Watched
    wandering: Watched
    wander: float

    @property
    def confidence(self) -> WatchConfidence:
        """How often the sets of alarms were right; faults without an alarm say nothing of that."""
        drills = self.plain.drills
        raised = [(drill.raised, drill.right(drill.raised)) for drill in drills if drill.raised is not None]
        settled = [(drill.settled, drill.right(drill.settled)) for drill in drills if drill.settled is not None]
        return WatchConfidence.of(raised, settled)


def total(windows: int, width: int, runs: int = RUNS) -> int:
    """How many steps `drill_watch` reports; width: of the model's level."""
    return 2 * windows + stretch_of(windows, width) * (runs + len(_kinds(runs, WANDERS)))


def stretch_of(windows: int, width: int) -> int:
    """For how many windows a fault is watched: the longest of LENGTHS that fits three times after the first windows."""
    fitting = [length for length in LENGTHS if windows - width >= _STRETCHES * length]
    if not fitting:
        least = width + _STRETCHES * min(LENGTHS)
        raise ValueError(f"drills need {least} quiet windows, and there are {windows}: give more quiet data")
    return max(fitting)


def drill_watch(
    watch: PlantWatch, windows: Windows, *, runs: int = RUNS, seed: Seed = 0, progress: Progress | None = None
) -> WatchDrilled:
    """Drill a watch that has seen no window yet, which stays as it is.

    windows: quiet ones that the model has not seen. runs: faults to inject. `progress` is told of finished steps.
    """
    if windows.names != watch.model.names:
        raise ValueError("the windows to drill in must be those of the model's sensors: prepare them with it")
    if watch.time:
        raise ValueError("a watch to drill must not have seen any window: make a new one")
    if as_count(runs, "runs", least=1) > MOST_RUNS:
        raise ValueError(f"a watch is drilled with at most {MOST_RUNS} faults, not {runs}")
    values, seed = windows.values, check_seed(seed)
    stretch = stretch_of(len(values), watch.normal.width)
    course = _Course(windows.starts, stretch, seed, progress or (lambda _: None))
    slow = slow_course(values, stretch)
    other = elsewhere(slow, rng_for(seed, "watch drill", "wander"))
    return WatchDrilled(
        every=watch.false_alarm_every,
        stretch=stretch,
        plain=course.watched(fork(watch), values, _kinds(runs)),
        wandering=course.watched(fork(watch), values - slow + other, _kinds(runs, WANDERS)),
        wander=float(np.median(slow.std(axis=0))),
    )


def fork(watch: PlantWatch) -> PlantWatch:
    """A copy of a watch that goes on by itself; what never changes is shared."""
    shared = (watch.model, watch.rule, watch.normal, watch.namer)
    return copy.deepcopy(watch, {id(part): part for part in shared})


def _kinds(runs: int, only: str | None = None) -> list[tuple[int, str]]:
    """Numbers and kinds of all faults, or of those of one kind."""
    kinds = [(number, KINDS[number % len(KINDS)]) for number in range(runs)]
    return [(number, kind) for number, kind in kinds if only in (None, kind)]


class _Plan(NamedTuple):
    """A fault to come: the window from which on it may begin, its kind, and what draws the rest of it."""

    onset: int
    kind: str
    rng: np.random.Generator


@dataclass(frozen=True)
class _Course:
    """How windows are watched: their times, for how long faults are, and the seed of these."""

    starts: NDArray[np.datetime64]
    stretch: int
    seed: Seed
    progress: Progress

    def watched(self, watch: PlantWatch, values: Array, kinds: Iterable[tuple[int, str]]) -> Watched:
        """Watch all windows, and each fault by a copy of the watch."""
        ground, last = Ground.of(values), len(values) - self.stretch
        due = deque(sorted((self._plan(number, kind, watch.normal.width, last) for number, kind in kinds), key=_onset))
        windows = free = left_out = 0
        alarms: list[QuietAlarm] = []
        drills: list[WatchDrill] = []
        for t, x in enumerate(values):
            judged = watch.streams.ready and not np.isnan(x).all()
            armed = judged and watch.alarm is None
            while due and armed and due[0].onset <= t <= last:
                drill = self._drilled(watch, ground, due.popleft(), t)
                left_out += drill is None
                drills += [] if drill is None else [drill]
                self.progress(self.stretch)
            windows, free = windows + judged, free + armed
            standing, before = set(watch.standing), watch.alarm
            watch.update(x, self.starts[t])
            alarms += _news(watch, self.starts[t], standing, before)
            self.progress(1)
        self.progress(len(due) * self.stretch)
        return Watched(windows, free, tuple(alarms), tuple(drills), left_out + len(due))

    def _plan(self, number: int, kind: str, width: int, last: int) -> _Plan:
        rng = rng_for(self.seed, "watch drill", str(number))
        return _Plan(int(rng.integers(width, last + 1)), kind, rng)

    def _drilled(self, quiet: PlantWatch, ground: Ground, plan: _Plan, start: int) -> WatchDrill | None:
        """The fault that begins now, watched until it is found and its set has settled, or its stretch ends."""
        sound = replace(ground, alive=np.setdiff1d(ground.alive, list(quiet.standing)))
        drawn = (sound.faulty(plan.kind, start, start + self.stretch, plan.rng) for _ in range(_TRIES))
        found = next((each for each in drawn if each is not None), None)
        if found is None:
            return None
        fault, shown = found
        watch, stood = fork(quiet), set(quiet.standing)
        drill = WatchDrill(fault.kind, fault.size, fault.sensors, start)
        for age in range(1, self.stretch + 1):
            watch.update(shown[start + age - 1], self.starts[start + age - 1])
            drill = _after(drill, age, named_by(watch, stood))
            if drill.found_after is not None and drill.settled is not None:
                break
        return drill


def _onset(plan: _Plan) -> int:
    return plan.onset


def _after(drill: WatchDrill, age: int, now: NamedSet | None) -> WatchDrill:
    """The drill after one more window, in which the watch names these."""
    if drill.raised is None and now is not None:
        drill = replace(drill, raised=now, raised_after=age)
    if drill.found_after is None and now is not None and set(now.sensors) & set(drill.sensors):
        drill = replace(drill, found_after=age)
    if drill.raised_after is not None and age == drill.raised_after + SETTLED:
        drill = replace(drill, settled=now or NamedSet())
    return drill


def named_by(watch: PlantWatch, stood: set[int]) -> NamedSet | None:
    """What a watch names now, None if nothing; stood: sensors that were stuck or silent before, which are no news."""
    kinds = {k: what for k, (what, _) in watch.standing.items() if k not in stood}
    basis: Basis = "stuck" if "stuck" in kinds.values() else "silent"
    belief = float("nan")
    if watch.alarm is not None:
        basis, belief = "evidence", set_belief(watch.alarm.beliefs, watch.alarm.decision)
        kinds = dict(zip(watch.alarm.decision.tolist(), watch.alarm.kinds, strict=True)) | kinds
    return NamedSet(tuple(kinds), tuple(kinds.values()), basis, belief) if kinds else None


def _news(watch: PlantWatch, time: np.datetime64, standing: set[int], before: Alarm | None) -> Sequence[QuietAlarm]:
    """The alarms that the last window raised: one on evidence, one for each way of standing still."""
    news = []
    if before is None and watch.alarm is not None:
        news.append(QuietAlarm(time, "evidence", watch.alarm.names))
    bases: tuple[Basis, ...] = ("stuck", "silent")
    for basis in bases:
        new = [k for k, (what, _) in watch.standing.items() if what == basis and k not in standing]
        if new:
            news.append(QuietAlarm(time, basis, tuple(watch.model.names[k] for k in new)))
    return news
