"""The price of reading less: the same faults under a full watch, and under watches with few readings.

Limits are counted on other windows than those that are drilled: of two halves of a history, each is judged by the fit
to the other half and by the limits that were counted there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import as_count
from eccaht.base.extras import need
from eccaht.base.frames import frame_of
from eccaht.base.presentation.text import percent, shown_progress
from eccaht.base.statistics import clopper_pearson
from eccaht.plants.front.identify import data_of
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.investigate import compare
from eccaht.plants.incident.trials import (
    FEWEST_WINDOWS,
    DrillPlan,
    Judge,
    alarmed_before,
    first_alarm,
    halves_of,
    plans_of,
    quiet_of,
    run_plans,
)
from eccaht.plants.model.model import Model
from eccaht.plants.watch.active import (
    ActiveEngine,
    ReadingPlan,
    alarms_of,
    budget_of,
    counted,
    masked,
    planned,
    replayed,
)
from eccaht.plants.watch.session import false_alarm_every

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 200
FULL, TELLING, IN_TURN = "all", "most telling", "in turn"
LEFT_OUT = -1  # an alarm was on before the fault
Delay = int | None
Progress = Callable[[int], object]


class ReadingCount(NamedTuple):
    """What a watch with so many readings a window found.

    rule: all, most telling or in turn. drills, found: faults. delay: median windows to the alarm of those found; later:
    the mean by which it came later than that of the full watch, of faults that both found. quiet: windows without a
    fault, alarms: that began in them.
    """

    readings: float
    rule: str
    drills: int
    found: int
    delay: float | None
    later: float | None
    quiet: int
    alarms: int

    @property
    def interval(self) -> tuple[float, float]:
        return clopper_pearson(self.found, self.drills) if self.drills else (0.0, 1.0)


@dataclass(frozen=True, repr=False)
class ReadingDrills:
    """What is found with how many readings; every: windows to a false alarm that were asked for."""

    model: Model
    every: float
    counts: tuple[ReadingCount, ...]

    @property
    def line(self) -> str:
        """What the fewest readings cost, in one line."""
        full = next((each for each in self.counts if each.rule == FULL), None)
        few = min((each for each in self.counts if each.rule == TELLING), key=lambda each: each.readings, default=None)
        if few is None:
            return "No number of readings was drilled."
        shares = [percent(each.found / max(each.drills, 1)) for each in (few, full) if each is not None]
        line = f"With {few.readings:g} of {len(self.model.names)} readings a window {shares[0]} of the faults are found"
        if full is None:
            return f"{line}."
        later = "" if few.later is None else f", {abs(few.later):.2g} windows {'later' if few.later >= 0 else 'sooner'}"
        return f"{line}{later}; with all of them {shares[1]}."

    def __repr__(self) -> str:
        return f"ReadingDrills({self.line})"

    def to_dict(self) -> dict[str, Any]:
        """What `eccaht drill --readings --json` prints, without the names of files."""
        rows = [
            each._asdict() | {"share": each.found / each.drills if each.drills else None, "interval": each.interval}
            for each in self.counts
        ]
        return {"line": self.line, "false_alarm_every": self.every, "readings": rows}

    def to_frame(self) -> Any:
        """One row for each number of readings and rule; pandas if it is installed, else polars."""
        rows = self.to_dict()["readings"]
        for row in rows:
            row["share_low"], row["share_high"] = row.pop("interval")
        return frame_of({name: [row[name] for row in rows] for name in rows[0]})

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the share found and the delay against the readings; path: also save it, as .png, .pdf or .svg."""
        need("matplotlib")
        from eccaht.base.presentation.style import for_notebooks
        from eccaht.plants.show.drill_picture import draw_readings

        return for_notebooks(draw_readings(self.to_dict()["readings"], self.line), path)


def drill_readings(
    model: Model,
    data: Any,
    readings: Sequence[float | None],
    asked: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    times: ArrayLike | None = None,
    progress: bool = True,
) -> ReadingDrills:
    """What `Model.drill` returns with `readings`; asked: its options runs, seed and false_alarms."""
    options = {name: value for name, value in asked.items() if value is not None}
    if "alpha" in options:
        raise ValueError("alpha is about confident answers, which drills of readings do not count: leave it out")
    runs, seed = as_count(options.get("runs", RUNS), "runs", least=1), as_count(options.get("seed", 0), "seed", least=0)
    every = false_alarm_every(options.get("false_alarms"), model, "false_alarms")
    budgets = [budget_of(model, each) for each in sorted({float(each) for each in readings if each is not None})]
    judges = _judges(model, data, names, times)
    faults = [plans_of(judge, range(j, runs, len(judges)), seed) for j, judge in enumerate(judges)]
    with shown_progress("drilling", (1 + 2 * len(budgets)) * runs, shown=progress) as bar:
        full = _found_by_all(judges, faults, every)
        bar.advance(runs)
        counts = [_count(len(model.names), FULL, full, full, judges, quiet_of(judges, every).alarms)]
        for budget in budgets:
            for rule in (TELLING, IN_TURN):
                plans, alarms = _plans(model, judges, replace(budget, in_turn=rule == IN_TURN), every)
                delays = [
                    _delay(judge, plan, fault, every, bar.advance)
                    for judge, plan, some in zip(judges, plans, faults, strict=True)
                    for fault in some
                ]
                counts.append(_count(budget.readings, rule, delays, full, judges, alarms))
    asked_for = [each for each in counts if each.rule != FULL or None in readings]
    return ReadingDrills(model, every, tuple(asked_for))


def _judges(model: Model, data: Any, names: Sequence[str] | None, times: ArrayLike | None) -> list[Judge]:
    """Quiet windows with what judges them: both halves of the history that the model keeps, or given data."""
    if data is not None:
        windows = model.prepare(data_of(model, data, names, times), bad="skip")
        values, missing = np.ascontiguousarray(windows.values), gaps_before(windows)
    elif model.history is not None:
        values, missing = model.quiet
    else:
        raise ValueError("the model does not say what is normal: calibrate on a history of at least 40 windows")
    if len(values) < FEWEST_WINDOWS:
        raise ValueError(f"drills need at least {FEWEST_WINDOWS} windows, and there are {len(values)}: give more")
    if data is not None:
        return [Judge(compare(model, windows)[0], values, missing, model.longest_gaps)]
    return halves_of(values, missing, model.longest_gaps)


def _plans(model: Model, judges: Sequence[Judge], budget: ReadingPlan, every: float) -> tuple[list[ReadingPlan], int]:
    """The plan by which each judge watches, counted on other windows than its own, and the alarms in all of them."""
    if len(judges) > 1:
        plans = [counted(budget, other.values, other.missing) for other in reversed(judges)]
    else:
        plans = [planned(model, budget)]
    alarms = 0
    for judge, plan in zip(judges, plans, strict=True):
        whole = [(slice(0, len(judge.values)), judge.normal)]
        shown = replayed(whole, judge.values, judge.missing, plan)
        alarms += len(alarms_of(shown, plan.limits(every)[0]))
    return plans, alarms


def _found_by_all(judges: Sequence[Judge], faults: Sequence[Sequence[DrillPlan]], every: float) -> list[Delay]:
    """The delays of the full watch."""
    delays: list[Delay] = []
    for judge, some in zip(judges, faults, strict=True):
        for run, fault in zip(run_plans(judge, every, some), some, strict=True):
            raised = first_alarm(run, fault)
            late = None if raised is None else raised - fault.start
            delays.append(LEFT_OUT if alarmed_before(run, fault) else late)
    return delays


def _delay(judge: Judge, plan: ReadingPlan, fault: DrillPlan, every: float, progress: Progress) -> Delay:
    """The windows until a watch with few readings finds a fault, None if it does not."""
    progress(1)
    engine, sensors = ActiveEngine(judge.normal, every, plan), list(fault.fault.sensors)
    for t, row in enumerate(fault.stretch[: fault.latest]):
        if t == fault.start and engine.latch.on:
            return LEFT_OUT
        engine.gap(int(fault.missing[t]))
        shown = engine.step(masked(row, engine.ask())[None])
        stands = t < fault.stop and bool(engine.standing[:2, 0, sensors].any())
        if t >= fault.start and (shown.began[0] or stands):
            return t - fault.start
    return None


def _count(
    readings: float, rule: str, delays: list[Delay], full: list[Delay], judges: Sequence[Judge], alarms: int
) -> ReadingCount:
    counted_ones = [each for each in delays if each != LEFT_OUT]
    found = [each for each in counted_ones if each is not None]
    both = [
        few - all_of_it
        for few, all_of_it in zip(delays, full, strict=True)
        if few is not None and all_of_it is not None and LEFT_OUT not in (few, all_of_it)
    ]
    return ReadingCount(
        readings,
        rule,
        len(counted_ones),
        len(found),
        float(np.median(found)) if found else None,
        float(np.mean(both)) if both else None,
        sum(len(judge.values) for judge in judges),
        alarms,
    )
