"""Drills: faults with a beginning and an end in stretches of the history that the fit has not seen.

Each trial goes through the very engine that `identify` and `watch` use, and is named and dated as they do, at the alarm
and with hindsight. One set of trials says how soon faults are found, how well they are dated and named, and how often
an answer is exactly right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.randomness import rng_for
from eccaht.plants.incident.alarms import Engine, Run, runs_of
from eccaht.plants.incident.confidence import Clues, clues_of
from eccaht.plants.incident.counts import Quiet
from eccaht.plants.incident.describe import Courses
from eccaht.plants.incident.faults import (
    KINDS,
    MOST_FAULTY,
    REPLAYED,
    Fault,
    correlations,
    draw_fault,
    draw_number,
    inject,
    varying,
)
from eccaht.plants.incident.naming import LONGEST_DRILL, DatedIncident, incidents_of
from eccaht.plants.model.fitting import fit_normal
from eccaht.plants.model.residuals import Normal
from eccaht.plants.tuning import TUNING

SHORTEST = 8  # windows that a fault lasts, at most LONGEST_DRILL
_LEAD = TUNING.level_windows + TUNING.earlier_windows  # windows before it
_AFTER = 2 * TUNING.long_windows  # and after it
_AT_ONCE = 64  # trials that run side by side
_PIECE = 512  # windows of a quiet history, pieces of which run side by side
FEWEST_WINDOWS = 100  # of a history that is drilled
Progress = Callable[[int], object]


class DrilledAnswer(NamedTuple):
    """An answer that was given: its clues, whether all its sensors are wrong by themselves, and whether it is right."""

    clues: Clues
    standing: bool
    right: bool


@dataclass(frozen=True)
class Trial:
    """One fault and what was made of it.

    kind, size, truth: the fault. lasted: windows. found: was an alarm raised by it? delay: windows to the alarm.
    onset_error, end_error: windows by which the dates are off, None where nothing was found or no end. named: with
    hindsight; raised: at the alarm. answers: of all incidents in the stretch, that of the fault first; at_alarm: that
    of the alarm, if no sensor is wrong by itself; both of at most MOST_FAULTY sensors.
    """

    kind: str
    size: float
    truth: tuple[int, ...]
    lasted: int
    found: bool
    delay: int | None = None
    onset_error: int | None = None
    end_error: int | None = None
    named: tuple[int, ...] = ()
    raised: tuple[int, ...] = ()
    answers: tuple[DrilledAnswer, ...] = ()
    at_alarm: DrilledAnswer | None = None

    @property
    def right(self) -> bool:
        """Are exactly the faulty sensors named?"""
        return set(self.named) == set(self.truth)

    @property
    def right_at_alarm(self) -> bool:
        return set(self.raised) == set(self.truth)


@dataclass(frozen=True, eq=False)
class Judge:
    """Quiet windows, (T, K), and normal operation by a fit that has not seen them.

    missing: windows that are not there before each, (T,). gaps: for how many windows sensors were silent in the
    history, (K,). first: the place of the first window.
    """

    normal: Normal
    values: Array
    missing: Index
    gaps: Array
    first: int = 0

    @cached_property
    def alive(self) -> Index:
        return varying(self.values)

    @cached_property
    def near(self) -> Array:
        """How sensors are correlated, (K, K)."""
        return correlations(self.values)

    def engine(self, every: float, plants: int) -> Engine:
        return Engine(self.normal, every, plants, self.gaps)


def halves_of(values: Array, missing: Index, gaps: Array, first: int = 0) -> list[Judge]:
    """Each half of the windows from `first` on, with normal operation as all other windows, (T, K), show it."""
    middle, T = first + (len(values) - first) // 2, len(values)
    judges = []
    for held in (slice(first, middle), slice(middle, T)):
        others = np.r_[0 : held.start, held.stop : T]
        follows = (missing[others][1:] == 0) & (np.diff(others) == 1)
        before = np.concatenate([[0], missing[held][1:]])
        judges.append(Judge(fit_normal(values[others], follows), values[held], before, gaps, held.start))
    return judges


def quiet_of(judges: Sequence[Judge], every: float) -> Quiet:
    """Run the engine over the windows as they are."""
    windows, on, begun = 0, 0, []
    for judge in judges:
        found, in_alarm = _quiet(judge, every)
        begun += [judge.first + t for t in found]
        windows, on = windows + len(judge.values), on + in_alarm
    return Quiet(windows, len(begun), on, tuple(sorted(begun)))


def _quiet(judge: Judge, every: float) -> tuple[list[int], int]:
    """The windows with which alarms begin, and how many are in alarm or in a change that lasts.

    Pieces run side by side, each after a lead.
    """
    T = len(judge.values)
    pieces = max(1, T // _PIECE)
    length = -(-T // pieces)
    engine, starts = judge.engine(every, pieces), np.arange(pieces) * length
    begun: list[int] = []
    on = 0
    for t in range(-_LEAD if pieces > 1 else 0, length):
        which = np.flatnonzero((starts + t >= 0) & (starts + t < T))
        rows = starts[which] + t
        engine.gaps(judge.missing[rows], which)
        shown = engine.step(judge.values[rows], which)
        if t >= 0:
            begun += rows[shown.began].tolist()
            on += int((engine.on | engine.settled)[which].sum())
    return begun, on


def run_trials(
    judges: Sequence[Judge],
    every: float,
    runs: int,
    seed: int,
    progress: Progress = lambda done: None,  # noqa: ARG005
) -> list[Trial]:
    """Drill `runs` faults, all kinds in turn; trial k does not depend on how many there are."""
    found: list[Trial] = []
    for j, judge in enumerate(judges):
        numbers = range(j, runs, len(judges))
        for first in range(0, len(numbers), _AT_ONCE):
            group = numbers[first : first + _AT_ONCE]
            found += _run(judge, every, plans_of(judge, group, seed))
            progress(len(group))
    return found


def plans_of(judge: Judge, numbers: Sequence[int], seed: int) -> list[DrillPlan]:
    """The faults of these numbers, without those for which the windows are too few."""
    plans = [_plan(judge, KINDS[k % len(KINDS)], rng_for((seed, k), "drill")) for k in numbers]
    return [plan for plan in plans if plan is not None]


@dataclass(frozen=True, eq=False)
class DrillPlan:
    """A fault in windows [start, stop) of a stretch, (L, K); missing: windows before each, (L,).

    An alarm that begins up to `latest` is counted as its finding.
    """

    stretch: Array
    missing: Index
    start: int
    stop: int
    fault: Fault

    @property
    def latest(self) -> int:
        return self.stop + TUNING.long_windows


def _plan(judge: Judge, kind: str, rng: np.random.Generator) -> DrillPlan | None:
    """A fault of this kind somewhere in quiet windows; None where they are too few for it."""
    T, alive = len(judge.values), judge.alive
    lead, after = min(_LEAD, T // 3), min(_AFTER, T // 8)
    most = min(LONGEST_DRILL, T - lead - after - 1)
    if most < SHORTEST or not alive.size:
        return None
    lasted = int(np.exp(rng.uniform(np.log(SHORTEST), np.log(most + 1))))
    first = int(rng.integers(0, T - lead - lasted - after + 1))
    start, stop = first + lead, first + lead + lasted
    fault = draw_fault(rng, kind, alive, draw_number(rng, min(3, len(alive))), judge.near)
    replayed = None
    if fault.kind in REPLAYED:
        places = np.concatenate([np.arange(0, max(start - lasted + 1, 0)), np.arange(stop, T - lasted + 1)])
        if not places.size:
            return None
        donor = int(rng.choice(places))
        replayed = judge.values[donor : donor + lasted]
    stretch = slice(first, stop + after)
    changed = inject(judge.values[stretch], lead, lead + lasted, fault, rng, replayed)
    return DrillPlan(changed, np.concatenate([[0], judge.missing[stretch][1:]]), lead, lead + lasted, fault)


def _run(judge: Judge, every: float, plans: Sequence[DrillPlan]) -> list[Trial]:
    """Trials side by side; one in which an alarm was on before the fault is left out."""
    found = zip(run_plans(judge, every, plans), plans, strict=True)
    return [_outcome(judge.normal, run, plan) for run, plan in found if not alarmed_before(run, plan)]


def run_plans(judge: Judge, every: float, plans: Sequence[DrillPlan]) -> list[Run]:
    """The engine over the stretches of these faults, side by side."""
    if not plans:
        return []
    N, L, K = len(plans), max(len(plan.stretch) for plan in plans), judge.normal.size
    shown, missing = np.full((L, N, K), np.nan), np.zeros((L, N), dtype=np.intp)
    for n, plan in enumerate(plans):
        shown[: len(plan.stretch), n], missing[: len(plan.stretch), n] = plan.stretch, plan.missing
    runs = runs_of(judge.engine(every, N), shown, missing)
    return [run.until(len(plan.stretch)) for run, plan in zip(runs, plans, strict=True)]


def alarmed_before(run: Run, plan: DrillPlan) -> bool:
    return any(begun < plan.start and (over is None or over > plan.start) for begun, over, _ in run.alarms)


def _outcome(normal: Normal, run: Run, plan: DrillPlan) -> Trial:
    """What was made of a fault."""
    fault = plan.fault
    trial = Trial(fault.kind, fault.size, fault.sensors, plan.stop - plan.start, found=False)
    incidents, stop = incidents_of(normal, run), len(run.values)  # sensors at rest no longer stand still
    raised = first_alarm(run, plan)
    overlapping = [each for each in incidents if _overlaps(each, plan, stop)]
    best = None if raised is None else max(overlapping, key=lambda each: each.weight, default=None)
    alarm = None if raised is None else _at_alarm(normal, run, raised) or best
    if raised is not None and alarm is not None:
        named = alarm.naming.named
        trial = replace(trial, found=True, delay=raised - plan.start, raised=named)
        if not alarm.wrong and len(named) <= MOST_FAULTY:
            given = DrilledAnswer(clues_of(alarm.naming), False, set(named) == set(fault.sensors))
            trial = replace(trial, at_alarm=given)
    if best is not None:
        incidents.sort(key=lambda each: each is not best)  # that of the fault first
        onset, end = best.dates.onset - plan.start, None if best.dates.end is None else best.dates.end - plan.stop
        trial = replace(trial, onset_error=onset, end_error=end, named=best.naming.named)
    answered = [each for each in incidents if len(each.sensors) <= MOST_FAULTY]
    return replace(trial, answers=tuple(_given(Courses(normal, run, each), fault) for each in answered))


def _given(case: Courses, fault: Fault) -> DrilledAnswer:
    found = case.found
    clues = clues_of(found.naming, case.kinds, found.weight, case.stop - found.dates.onset)
    return DrilledAnswer(clues, found.stands_still, found.sensors == set(fault.sensors))


def first_alarm(run: Run, plan: DrillPlan) -> int | None:
    """The window in which an alarm, a standstill or silence of a faulty sensor is noticed."""
    times = [begun for begun, _, _ in run.alarms if plan.start <= begun < plan.latest]
    noticed = run.standing[:2, plan.start : plan.stop][:, :, list(plan.fault.sensors)].any(axis=(0, 2))
    if noticed.any():
        times.append(plan.start + int(noticed.argmax()))
    return min(times) if times else None


def _at_alarm(normal: Normal, run: Run, raised: int) -> DatedIncident | None:
    """What is known with the window in which an alarm is raised; None where a standstill contradicts nothing yet."""
    past = run.until(raised + 1)
    past.alarms = [alarm for alarm in past.alarms if alarm[0] == raised]
    return max(incidents_of(normal, past), key=lambda each: each.weight, default=None)


def _overlaps(found: DatedIncident, plan: DrillPlan, windows: int) -> bool:
    end = windows if found.dates.end is None else found.dates.end
    return found.dates.onset < plan.latest and end > plan.start
