"""What drills on the history of a model found: one table for `identify` and `watch`, and one confidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eccaht.base.archive import check_keys
from eccaht.base.arrays import as_count, check_alpha
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.comparison import compare
from eccaht.plants.incident.confidence import DrilledConfidence
from eccaht.plants.incident.counts import MOST, Counts
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.recording import Found
from eccaht.plants.incident.trials import (
    FEWEST_WINDOWS,
    DrilledAnswer,
    Judge,
    Quiet,
    Trial,
    clarity,
    halves_of,
    quiet_of,
    run_trials,
)
from eccaht.plants.model.counted import Counted
from eccaht.plants.model.model import Model

RUNS = 1000
ALPHA = 0.05  # 1 less the confidence from which on an answer is sure
_PARTS = ("afterwards", "standing", "at_alarm")
Progress = Callable[[int], object]


@dataclass(frozen=True)
class Drilled:
    """What drills counted, and how often sets are right by their clarity.

    afterwards: with hindsight; standing: of these, sets with sensors that are stuck, silent or out of range, which are
    wrong by themselves; at_alarm: as a watch names them. None where there were too few drills.
    """

    counts: Counts
    afterwards: DrilledConfidence | None
    standing: DrilledConfidence | None
    at_alarm: DrilledConfidence | None

    @staticmethod
    def of(trials: Sequence[Trial], quiet: Quiet, every: float, alpha: float) -> Drilled:
        """From trials. Each half of them is counted by the confidence that the other half shows."""
        halves = [_fitted(trials[1::2]), _fitted(trials[::2])]
        confidences = [[_confidence(halves[k % 2], each) for each in trial.answers] for k, trial in enumerate(trials)]
        return Drilled(Counts.of(trials, quiet, every, alpha, confidences), **_fitted(trials))

    @property
    def holds(self) -> bool:
        """Whether confident answers were wrong no more often than they may be."""
        return self.counts.holds

    def confidence(self, found: Found, stop: int | None = None) -> float | None:
        """How often such an answer was exactly right in drills; None where no drill says.

        stop: the first window after the recording, for incidents that go on.
        """
        part = self.standing if found.wrong else self.afterwards
        return None if part is None else part.counted(clarity(found, found.dates.last + 1 if stop is None else stop))

    def quiet_share(self, windows: int) -> float | None:
        """The share of drilled faults that were found: what windows without an alarm are worth."""
        return self.counts.found_share if windows > 0 else None

    def header(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in _PARTS}
        return {"counts": self.counts.header()} | {
            name: None if part is None else part.header() for name, part in parts.items()
        }


def drill_history(model: Model, windows: Windows, **options: Any) -> Drilled:
    """Drill faults in the windows of a history; the options are those of `drill_trials`."""
    return drill_trials(model, windows, **options)[0]


def drill_trials(
    model: Model,
    windows: Windows,
    *,
    runs: int = RUNS,
    seed: int = 0,
    every: float | None = None,
    alpha: float = ALPHA,
    unseen: bool = False,
    progress: Progress = lambda done: None,  # noqa: ARG005
) -> tuple[Drilled, list[Trial]]:
    """Drill faults in quiet windows, and return what was counted and the single trials.

    windows: of the history, as `calibrate_with_windows` gives them: each half is judged by a fit to the other. unseen:
    they are others than those of the history, and are judged by the model itself. runs: faults. every: windows to a
    false alarm, what the history can carry if not given. progress: is called with the number of faults that are done.
    """
    from eccaht.plants.incident.investigate import usual_rate  # which needs this module

    check_alpha(alpha)
    as_count(runs, "runs", least=1)
    if runs > MOST:
        raise ValueError(f"{runs} drills are more than anything needs: ask for at most {MOST}")
    if len(windows.values) < FEWEST_WINDOWS:
        raise ValueError(
            f"drills need at least {FEWEST_WINDOWS} windows, and there are {len(windows.values)}: give a longer history"
        )
    every = usual_rate(model.n_windows, None if model.clock.counted else model.seconds) if every is None else every
    values, missing = np.ascontiguousarray(windows.values), gaps_before(windows)
    gaps = model.summary.gaps * model.n_windows
    itself = [Judge(compare(model, windows)[0], values, missing, gaps)] if unseen else []
    judges = itself or halves_of(values, missing, gaps)
    quiet = quiet_of(judges, every)
    trials = run_trials(judges, every, runs, seed, progress)
    return Drilled.of(trials, quiet, every, alpha), trials


def keeping(model: Model, drilled: Drilled) -> Model:
    return replace(model, drilled=Counted(drilled.header()))


def kept(model: Model) -> Drilled | None:
    """What drills of a model counted, None if there were none; checked, since the file may come from anywhere."""
    if model.drilled is None:
        return None
    header = model.drilled.header()
    check_keys(header, {"counts", *_PARTS}, "drills")
    parts = {name: DrilledConfidence.build(header[name]) for name in _PARTS}
    return Drilled(Counts.build(header["counts"]), **parts)


def _fitted(trials: Sequence[Trial]) -> dict[str, DrilledConfidence | None]:
    """How often sets are right by their clarity."""
    answers = [each for trial in trials for each in trial.answers]
    alarms = [trial.at_alarm for trial in trials if trial.at_alarm is not None and not trial.at_alarm.standing]
    outcomes = {
        "afterwards": [each for each in answers if not each.standing],
        "standing": [each for each in answers if each.standing],
        "at_alarm": alarms,
    }
    return {
        name: DrilledConfidence.of([(each.clarity, each.right) for each in found]) for name, found in outcomes.items()
    }


def _confidence(parts: dict[str, DrilledConfidence | None], given: DrilledAnswer) -> float | None:
    part = parts["standing" if given.standing else "afterwards"]
    return None if part is None else part.counted(given.clarity)
