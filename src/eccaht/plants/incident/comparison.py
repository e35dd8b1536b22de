"""Two models of one plant on the same windows: the same faults drilled in both, and the same windows without a fault.

The new model was fitted to these windows, so each half of them is judged by a fit to the other half; the old one is
judged as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from eccaht.base.statistics import clopper_pearson
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.counts import Counts, Drilled
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.drill import ALPHA, drilled_of
from eccaht.plants.incident.trials import FEWEST_WINDOWS, halves_of, quiet_of, run_trials
from eccaht.plants.model.model import Model

Better = Literal["new", "old", "neither"]
_COUNTED = ("drills", "found", "right")


@dataclass(frozen=True)
class Comparison:
    """What both models made of the same faults and of the same quiet windows."""

    old: Drilled
    new: Drilled

    @property
    def better(self) -> Better:
        """The model that is better in false alarms or in right sets, beyond chance, and worse in neither."""
        old, new = self.old.counts, self.new.counts
        drills = max(old.drills, new.drills)  # a drill is left out where an alarm was on already, which is no merit
        signs = {
            _differs((old.quiet.alarms, old.quiet.windows), (new.quiet.alarms, new.quiet.windows)),
            -_differs((old.total("right"), drills), (new.total("right"), drills)),
        }
        if signs >= {1, -1} or signs == {0}:
            return "neither"
        return "new" if 1 in signs else "old"


def compare_models(
    old: Model,
    new: Model,
    windows: Windows,
    *,
    every: float,
    runs: int,
    first: int = 0,
    seed: int = 0,
    progress: Callable[[int], object] = lambda done: None,  # noqa: ARG005
) -> Comparison:
    """Drill `runs` faults in the windows that the new model was fitted to, from `first` on, once for each model.

    old: of the same sensors and units. every: windows to a false alarm. progress: is called with faults that are done.
    """
    if old.normal is None or old.names != new.names or not np.array_equal(old.scale, new.scale):
        raise ValueError("two models are compared on the same sensors, in the same units")
    if (there := len(windows.values) - first) < FEWEST_WINDOWS:
        raise ValueError(f"drills need {FEWEST_WINDOWS} windows at least, there are {there}: choose a longer period")
    values, gaps = np.ascontiguousarray(windows.values), new.longest_gaps
    fresh = halves_of(values, gaps_before(windows), gaps, first)
    usual = old.longest_gaps
    drilled = []
    for judges in ([replace(judge, normal=old.normal, gaps=usual) for judge in fresh], fresh):
        trials = run_trials(judges, every, runs, seed, progress)
        drilled.append(drilled_of(trials, quiet_of(judges, every), every, ALPHA))
    return Comparison(*drilled)


def counted(drilled: Drilled) -> dict[str, Any]:
    """The counts of a model that people compare."""
    counts: Counts = drilled.counts
    confident, wrong = counts.confident
    alarms, expected = counts.false_alarms
    return {name: counts.total(name) for name in _COUNTED} | {
        "confident": confident,
        "confident_wrong": wrong,
        "windows": counts.quiet.windows,
        "false_alarms": alarms,
        "expected": expected,
        "in_alarm": counts.share_in_alarm,
    }


def _differs(old: tuple[int, int], new: tuple[int, int]) -> int:
    """1 if the old share is larger than the new one beyond chance (their 95 % intervals do not meet), -1 if smaller."""
    (old_low, old_high), (new_low, new_high) = (
        clopper_pearson(*part) if part[1] else (0.0, 1.0) for part in (old, new)
    )
    return int(old_low > new_high) - int(old_high < new_low)
