"""How well alarms find incidents: methods that watch recordings, all with thresholds by one rule from the history.

`DETECTORS` is where a method is plugged in: it is given a history, a false-alarm rate per row and a seed, and returns
what watches new rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from eccaht.arrays import Index
from eccaht.datasets.labelled import Entity
from eccaht.datasets.testbeds import Testbed
from eccaht.experiments.charts import CHARTS, Chart, Flags, held_on, held_out, threshold
from eccaht.experiments.detection_cases import Labelled, Task, load_task, runs
from eccaht.experiments.detection_outcomes import Outcome
from eccaht.experiments.incidents_cases import Readings
from eccaht.experiments.nab import nab_points


@dataclass(frozen=True)
class Alarms:
    """What a method makes of a recording: is an alarm on, by row, and the rows in which alarms begin."""

    on: Flags
    begins: Index

    @classmethod
    def where(cls, on: Flags) -> Alarms:
        """One alarm for each run of rows."""
        return cls(on, np.array([start for start, _ in runs(on)], dtype=np.intp))

    @property
    def changes(self) -> Index:
        """The rows in which alarms begin or have just ended."""
        ends = np.array([stop for _, stop in runs(self.on) if stop < len(self.on)], dtype=np.intp)
        return np.union1d(self.begins, ends)


Watcher = Callable[[Readings], Alarms]
Detector = Callable[[Readings, float, int], Watcher]  # history, false alarms per row, seed


def charted(chart: Chart, history: Readings, rate: float, seed: int) -> Watcher:
    """A chart with its threshold; an alarm stays on for ten rows after the last value beyond it."""
    level = threshold(held_out(chart, history.rows, seed), rate)
    statistic = chart(history.rows, seed)
    return lambda new: Alarms.where(held_on(statistic(new.rows) > level))


DETECTORS: dict[str, Detector] = {name: partial(charted, chart) for name, chart in CHARTS.items()}


def watch(entity: Entity | Testbed, seed: int) -> list[Outcome]:
    """Let all methods watch all recordings of a server or a testbed."""
    task, outcomes = load_task(entity), []
    for name, detector in DETECTORS.items():
        watcher = detector(task.history, task.rate, seed)
        for recording in task.recordings:
            alarms = watcher(recording.readings)
            if alarms.on.shape != (len(recording.readings.rows),):
                raise ValueError(f"{name} must say of each row whether an alarm is on")
            outcomes.append(outcome_of(entity, task, recording, name, alarms))
    return outcomes


def outcome_of(entity: Entity | Testbed, task: Task, recording: Labelled, method: str, alarms: Alarms) -> Outcome:
    """Compare alarms with the truth."""
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


def _seconds(readings: Readings) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of each row since the first; rows without times are a second apart."""
    if readings.times is None:
        return np.arange(len(readings.rows), dtype=np.float64)
    return (readings.times - readings.times[0]) / np.timedelta64(1, "s")
