"""The methods that are compared on incidents: ours and the rivals.

Each learns from a history of normal operation and then judges cases, given where the incident starts and nothing else.
A rival only ranks; to name sensors it gets the threshold that its largest score passes in 5 % of the history's own
stretches, about as long as the incident.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.naming import unknown
from eccaht.plants.incident.drill import drill_history, keeping
from eccaht.plants.incident.investigate import investigate_incident
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.research.experiments.incidents_cases import CHANGED, LONGEST, QUIET, CaseReadings, LabelledCase, spread
from eccaht.research.experiments.rivals import BEFORE, RIVALS, Score, lacking

ALPHA = 0.05  # alarms in quiet stretches, and sure answers that are wrong
OURS = "eccaht"
METHODS = (OURS, *RIVALS)
_LENGTHS = (QUIET, CHANGED, LONGEST)  # of the stretches that thresholds are taken from
_STRETCHES = 60
_RECENT = 500  # rows before an incident that are handed over with it


@dataclass(frozen=True)
class Judgement:
    """All known sensors, the most suspect first, and those that are named.

    confidence, sure: of the answer that exactly those are wrong; None where the method gives none.
    """

    order: tuple[int, ...]
    named: frozenset[int]
    confidence: float | None = None
    sure: bool | None = None


Judge = Callable[[LabelledCase], Judgement]


def check_methods(names: Sequence[str] | None) -> tuple[tuple[str, ...], list[str]]:
    """The methods that run, and notes on those that do not because a package is not installed.

    A method that was asked for by name must run.
    """
    for name in names or ():
        if name not in METHODS:
            raise unknown(name, METHODS, "method")
        if (package := lacking(name)) is not None:
            raise ValueError(f"the method {name} needs {package}: pip install {package}")
    if names is not None and (not names or len(set(names)) < len(names)):
        raise ValueError("name each method once, and at least one")
    chosen = names or METHODS
    absent = {name: package for name in chosen if (package := lacking(name)) is not None}
    notes = [f"{name} is left out: it needs {package}, which is not installed" for name, package in absent.items()]
    return tuple(name for name in chosen if name not in absent), notes


def learn(names: Sequence[str], history: CaseReadings, known: Index, seed: int) -> dict[str, Judge]:
    """Let the methods learn from a history; `known` are the sensors that they rank."""
    rows = history.rows[:, known]
    judges = {OURS: our_judge(history, known, seed)} if OURS in names else {}
    return judges | {name: _rival(RIVALS[name](rows), rows, known) for name in names if name in RIVALS}


def our_judge(history: CaseReadings, known: Index, seed: int) -> Judge:
    """Ours with default options, and drills on the history.

    An incident is given, and its sensors are named. In a quiet stretch nothing is given: sensors are named if an
    incident that begins in it is found.
    """
    model, windows = calibrate_with_windows(history.source(), window=history.window)
    model = keeping(model, drill_history(model, windows, seed=seed))

    def judge(case: LabelledCase) -> Judgement:
        first = max(0, case.start - _RECENT)
        recording = model.prepare(case.readings.after(first).source())
        start, quiet = case.start - first, case.tier == "quiet"
        answer = investigate_incident(model, recording, start, locate=quiet)
        begun = [each for each in answer.incidents if not quiet or each.onset >= recording.starts[start]]
        largest = max(begun, key=lambda each: each.evidence, default=answer.looked_at)
        confidence, sure = (largest.confidence, largest.sure) if begun else (answer.confidence, answer.sure)
        ranked, named = [suspect.sensor for suspect in largest.sensors], largest.named if begun else ()
        return judgement_of(history.names, known, ranked, named, confidence, sure)

    return judge


def judgement_of(
    sensors: Sequence[str],
    known: Index,
    ranked: Sequence[str],
    named: Sequence[str],
    confidence: float | None,
    sure: bool,
) -> Judgement:
    """An answer in places of sensors; known ones that the model has dropped are the least suspect."""
    place = {name: k for k, name in enumerate(sensors)}
    rankable = set(known.tolist())
    order = [place[name] for name in ranked if place[name] in rankable]
    order += sorted(rankable.difference(order))
    return Judgement(tuple(order), frozenset(place[name] for name in named) & rankable, confidence, bool(sure))


def _rival(score: Score, history: Array, known: Index) -> Judge:
    level = cache(lambda length: alarm_level(score, history, length))

    def judge(case: LabelledCase) -> Judgement:
        readings = case.readings.rows[:, known]
        scores = score(readings[max(0, case.start - BEFORE) : case.start], readings[case.start :])
        order = known[np.argsort(-scores, kind="stable")]
        length = next(each for each in _LENGTHS if each >= case.length)
        return Judgement(tuple(order.tolist()), frozenset(known[scores > level(length)].tolist()))

    return judge


def alarm_level(score: Score, history: Array, length: int) -> float:
    """The threshold that the largest score of a stretch passes in 5 % of the stretches of the history."""
    starts = spread(BEFORE, len(history), length, _STRETCHES)
    largest = [score(history[start - BEFORE : start], history[start : start + length]).max() for start in starts]
    return float(np.quantile(largest, 1.0 - ALPHA))
