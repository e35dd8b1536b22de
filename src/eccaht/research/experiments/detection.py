"""How well alarms find incidents: methods that watch recordings, all with thresholds by one rule from the history.

`DETECTORS` is where a method is plugged in: it is given a history, a false-alarm rate per row and a seed, and returns
what watches new rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.research.datasets.labelled import Entity
from eccaht.research.datasets.testbeds import Testbed
from eccaht.research.experiments.charts import CHARTS, Chart, held_on, held_out, threshold
from eccaht.research.experiments.detection_alarms import Alarms, Detector, Watcher
from eccaht.research.experiments.detection_cases import Labelled, Task, load_task
from eccaht.research.experiments.detection_ours import Ours
from eccaht.research.experiments.detection_outcomes import Outcome
from eccaht.research.experiments.incidents_cases import CaseReadings
from eccaht.research.experiments.nab import nab_points


def charted(chart: Chart, history: CaseReadings, rate: float, seed: int) -> Watcher:
    """A chart with its threshold; an alarm stays on for ten rows after the last value beyond it."""
    level = threshold(held_out(chart, history.rows, seed), rate)
    statistic = chart(history.rows, seed)
    return lambda new: Alarms.where(held_on(statistic(new.rows) > level))


OURS = "eccaht"
DELIVERED = f"{OURS}, unrounded"  # with the history as it was delivered, not rounded to the recording's decimals
DETECTORS: dict[str, Detector] = {OURS: Ours} | {name: partial(charted, chart) for name, chart in CHARTS.items()}


def watch(entity: Entity | Testbed, seed: int) -> list[Outcome]:
    """Let all methods watch all recordings of a server or a testbed."""
    task, outcomes = load_task(entity), []
    for name, detector, history in _methods(task):
        watcher = detector(history, task.rate, seed)
        for recording in task.recordings:
            alarms = watcher(recording.readings)
            if alarms.on.shape != (len(recording.readings.rows),):
                raise ValueError(f"{name} must say of each row whether an alarm is on")
            outcome = outcome_of(entity, task, recording, name, alarms)
            outcomes.append(_with_answers(outcome, recording, watcher) if isinstance(watcher, Ours) else outcome)
    return outcomes


def _methods(task: Task) -> Iterator[tuple[str, Detector, CaseReadings]]:
    for name, detector in DETECTORS.items():
        yield name, detector, task.history
        if name == OURS and task.delivered is not None:
            yield DELIVERED, detector, task.delivered


def _with_answers(outcome: Outcome, recording: Labelled, ours: Ours) -> Outcome:
    """The same with what `identify` says: the date of a single incident, and the sensors where they are labelled."""
    readings, spans = recording.readings, recording.incidents
    if recording.changes is not None and len(spans) == 1:
        onset, times = ours.onset(readings), _seconds(readings)
        (start, stop), last = spans[0], len(times) - 1
        off = None if onset is None else tuple(float(times[onset] - times[min(row, last)]) for row in (start, stop))
        outcome = replace(outcome, dated=off)
    known = set(ours.model.names)
    hits, places = [], []
    for (start, stop), altered in zip(spans, recording.altered or (), strict=False):
        truth = known.intersection(altered)
        if not truth:
            continue
        order = ours.ranked(readings, start, stop)
        hits.append(len(truth.intersection(order[: len(truth)])) / len(truth))
        places.append(1 + min(order.index(name) for name in truth))
    return replace(outcome, named=tuple(hits), places=tuple(places))


def outcome_of(entity: Entity | Testbed, task: Task, recording: Labelled, method: str, alarms: Alarms) -> Outcome:
    on, begins = alarms.on, alarms.begins
    inside = np.zeros(len(on), dtype=bool)
    delays, begun = [], []
    for start, stop in recording.incidents:
        inside[start:stop] = True
        delays.append(int(on[start:stop].argmax()) if on[start:stop].any() else None)
        begun.append(bool(np.any((begins >= start) & (begins < stop))))
    changes, times = recording.changes, _seconds(recording.readings)

    def points(detections: Index) -> float:
        return 0.0 if changes is None else nab_points(times[detections], times[list(changes)])

    return Outcome(
        collection=entity.collection,
        kind=task.kind,
        entity=entity.name,
        recording=recording.name,
        method=method,
        rate=task.rate,
        rows_a_day=task.rows_a_day,
        rows=len(on),
        incident_rows=int(inside.sum()),
        on_in_incidents=int((on & inside).sum()),
        on_in_quiet=int((on & ~inside).sum()),
        false_alarms=int((~inside[begins]).sum()),
        lengths=tuple(stop - start for start, stop in recording.incidents),
        delays=tuple(delays),
        begun=tuple(begun),
        changes=len(changes or ()),
        nab_points=points(alarms.changes),
        nab_points_begins=points(begins),
    )


def _seconds(readings: CaseReadings) -> Array:
    """Of each row since the first; rows without times are a second apart."""
    if readings.times is None:
        return np.arange(len(readings.rows), dtype=np.float64)
    return np.asarray((readings.times - readings.times[0]) / np.timedelta64(1, "s"))
