"""Drills on the history of a model: faults injected, what was made of them, and how often answers are right.

The counts and the confidence that they give (`confidence`) are kept in the model: one table for `identify` and `watch`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eccaht.base.arrays import as_count, check_alpha
from eccaht.base.codec import state_of
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.confidence import DrilledConfidence, fitted
from eccaht.plants.incident.counts import BANDS, MOST, Cell, Counts, Drilled, Quiet
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.faults import KINDS, LARGEST, SIZED
from eccaht.plants.incident.investigate import compare
from eccaht.plants.incident.trials import (
    FEWEST_WINDOWS,
    DrilledAnswer,
    Judge,
    Trial,
    halves_of,
    quiet_of,
    run_trials,
)
from eccaht.plants.model.model import Model

RUNS = 1000
_DATED = ("onset within 2", "end within 5")
HEADINGS = ("fault", "size", "drills", "found", "delay", "right set", *_DATED, "confident", "wrong")
AT_ALARM = "right set at alarm"  # heading of a further column for a watch
NEAR_ONSET, NEAR_END = 2, 5  # windows
ALPHA = 0.05  # 1 less the confidence from which on an answer is confident
Progress = Callable[[int], object]


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
    check_alpha(alpha)
    as_count(runs, "runs", least=1)
    if runs > MOST:
        raise ValueError(f"{runs} drills are more than anything needs: ask for at most {MOST}")
    if len(windows.values) < FEWEST_WINDOWS:
        raise ValueError(
            f"drills need at least {FEWEST_WINDOWS} windows, and there are {len(windows.values)}: give a longer history"
        )
    every = model.usual_rate if every is None else every
    values, missing = np.ascontiguousarray(windows.values), gaps_before(windows)
    gaps = model.longest_gaps
    itself = [Judge(compare(model, windows)[0], values, missing, gaps)] if unseen else []
    judges = itself or halves_of(values, missing, gaps)
    quiet = quiet_of(judges, every)
    trials = run_trials(judges, every, runs, seed, progress)
    return drilled_of(trials, quiet, every, alpha), trials


def keeping(model: Model, drilled: Drilled) -> Model:
    return replace(model, drilled=state_of(drilled))


def _fitted(trials: Sequence[Trial]) -> dict[str, DrilledConfidence | None]:
    """How often sets are right by their clues."""
    answers = [each for trial in trials for each in trial.answers]
    groups = {
        "afterwards": [each for each in answers if not each.standing],
        "standing": [each for each in answers if each.standing],
        "at_alarm": [trial.at_alarm for trial in trials if trial.at_alarm is not None],
    }
    return {name: fitted([each.clues for each in of], [each.right for each in of]) for name, of in groups.items()}


def _confidence(parts: dict[str, DrilledConfidence | None], given: DrilledAnswer) -> float | None:
    part = parts["standing" if given.standing else "afterwards"]
    return None if part is None else part.counted(given.clues)


def drilled_of(trials: Sequence[Trial], quiet: Quiet, every: float, alpha: float) -> Drilled:
    """What trials show. Each half of them is counted by the confidence that the other half shows."""
    halves = [_fitted(trials[1::2]), _fitted(trials[::2])]
    confidences = [[_confidence(halves[k % 2], each) for each in trial.answers] for k, trial in enumerate(trials)]
    return Drilled(count(trials, quiet, every, alpha, confidences), **_fitted(trials))


def count(
    trials: Sequence[Trial],
    quiet: Quiet,
    every: float,
    alpha: float,
    confidences: Sequence[Sequence[float | None]] = (),
) -> Counts:
    """Count trials; confidences: of the answers of each, None where there is none."""
    given = confidences or [()] * len(trials)
    cells = []
    for kind in KINDS:
        for low, high in BANDS if kind in SIZED else ((0.0, 0.0),):
            inside = [k for k, trial in enumerate(trials) if trial.kind == kind and _between(trial.size, low, high)]
            if inside:
                cells.append(_cell((kind, low, high), [trials[k] for k in inside], [given[k] for k in inside], alpha))
    return Counts(tuple(cells), quiet, every, alpha)


def rows(counts: Counts, *, at_alarm: bool = False) -> Iterator[tuple[str, ...]]:
    """The table below HEADINGS, a row a cell; at_alarm: with a column more."""
    for cell in counts.cells:
        size = "" if cell.high == 0.0 else f"{cell.low:g}-{cell.high:g}"
        delay = "" if not cell.found else f"{cell.delay:g}"
        shares = [_percent(number, cell.found) for number in (cell.right, cell.onset, cell.end)]
        start = (cell.kind, size, str(cell.drills), _percent(cell.found, cell.drills), delay)
        end = (_percent(cell.at_alarm, cell.found),) if at_alarm else ()
        yield (*start, *shares, str(cell.confident), str(cell.wrong), *end)


def _between(size: float, low: float, high: float) -> bool:
    return high == 0.0 or low <= size < high or size == high == LARGEST


def _cell(
    place: tuple[str, float, float],
    trials: Sequence[Trial],
    confidences: Sequence[Sequence[float | None]],
    alpha: float,
) -> Cell:
    found = [trial for trial in trials if trial.found]
    confident = [
        answer
        for trial, given in zip(trials, confidences, strict=True)
        for answer, confidence in zip(trial.answers, given, strict=False)
        if confidence is not None and confidence >= 1.0 - alpha
    ]
    delays = [trial.delay for trial in found if trial.delay is not None]
    return Cell(
        *place,
        drills=len(trials),
        found=len(found),
        right=sum(trial.right for trial in found),
        at_alarm=sum(trial.right_at_alarm for trial in found),
        onset=sum(_near(trial.onset_error, NEAR_ONSET) for trial in found),
        end=sum(_near(trial.end_error, NEAR_END) for trial in found),
        sensors=sum(len(trial.truth) for trial in trials),
        named=sum(len(set(trial.named) & set(trial.truth)) for trial in found),
        confident=len(confident),
        wrong=sum(not answer.right for answer in confident),
        delay=float(np.median(delays)) if delays else 0.0,
    )


def _near(error: int | None, windows: int) -> bool:
    return error is not None and abs(error) <= windows


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.0f} %" if of else ""
