"""How well alarms find incidents: methods that watch recordings, all with thresholds by one rule from the history.

A task is a history, a false-alarm rate that is the same for all methods, and recordings whose incidents are known;
nothing of it but these comes from labels. `DETECTORS` is where a method is plugged in: it is given the history, the
rate per row and a seed, and returns what watches new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from eccaht.base.arrays import Array, Index, runs
from eccaht.plants import Windows, calibrate_with_windows, investigate_incident
from eccaht.plants.incident.alarms import run_engine
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.investigate import compare
from eccaht.research.datasets.labelled import (
    LABELS,
    CaseReadings,
    Entity,
    Kind,
    read_attacks,
    read_entity,
    read_sheet,
    stem,
)
from eccaht.research.experiments.detection_outcomes import Outcome, nab_points
from eccaht.research.experiments.incidents_cases import OURS
from eccaht.research.experiments.rivals import CHARTS, Chart, Flags, held_on, held_out, threshold

ROWS_A_DAY = {"asd": 288}  # server collections, which have no times, by the beginning of their names
_MINUTES = 1440  # rows a day of all other servers
_MONTH = 720  # hours: BATADAL's one false alarm
_LENGTHS = 3  # of the history, with one false alarm: SKAB and TEP, where it is short
_LEARNT = 400  # rows of a file of SKAB, by its protocol
_FAULT = 160  # rows of TEP before the fault
_DECIMALS = 9  # the most that are looked for
_DAY = 86_400.0  # seconds


@dataclass(frozen=True)
class Labelled:
    """A recording, its incidents as rows (start, stop), stop not included, and its change points if it has labels.

    altered: the sensors that were altered in each incident, if that is known.
    """

    name: str
    readings: CaseReadings
    incidents: tuple[tuple[int, int], ...]
    changes: tuple[int, ...] | None = None
    altered: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True)
class Task:
    """What is learnt from, and what is watched then; `rate` is of false alarms, per row.

    delivered: the history as it was before it was rounded to the decimals of the recordings, if it was.
    """

    kind: Kind
    history: CaseReadings
    rate: float
    rows_a_day: float
    recordings: tuple[Labelled, ...]
    delivered: CaseReadings | None = None


def load_task(entity: Entity) -> Task:
    return {"servers": _servers, "batadal": _batadal, "skab": _skab, "tep": _tep}[entity.kind](entity)


def _servers(entity: Entity) -> Task:
    train, test = read_entity(entity)
    segments = tuple((segment.start, segment.stop) for segment in entity.segments)
    rows = next((many for name, many in ROWS_A_DAY.items() if entity.collection.startswith(name)), _MINUTES)
    return Task("servers", train, 1.0 / rows, rows, (Labelled(entity.name, test, segments),))


def _batadal(testbed: Entity) -> Task:
    """Attacks in a water network.

    The history has nine decimals and the attacks two. It is rounded to those of the recording before anything is
    learnt: else sensors that hardly move are beyond it by their resolution alone.
    """
    (path,), truth = testbed.recordings, testbed.truth
    delivered = read_sheet(testbed.history)
    readings = read_sheet(path, delivered.names)
    assert truth is not None
    assert readings.times is not None
    incidents, altered = [], []
    for first, last, sensors in read_attacks(truth):
        inside = np.flatnonzero((readings.times >= first) & (readings.times <= last))
        if inside.size:
            incidents.append((int(inside[0]), int(inside[-1]) + 1))
            altered.append(sensors)
    if not incidents:
        raise ValueError(f"none of the attacks of {truth} lies in {path}")
    recording = Labelled(stem(path), readings, tuple(incidents), altered=tuple(altered))
    learnt = replace(delivered, rows=delivered.rows.round(decimals(readings.rows)))
    return Task("batadal", learnt, 1.0 / _MONTH, rows_a_day(delivered), (recording,), delivered)


def _skab(testbed: Entity) -> Task:
    sheet = read_sheet(testbed.history)
    anomaly, change = (sheet.of([label]).rows[_LEARNT:, 0] > 0 for label in LABELS)
    if not anomaly.size:
        raise ValueError(f"{testbed.history} has {len(sheet.rows)} rows: the first {_LEARNT} are only learnt from")
    whole = sheet.of([name for name in sheet.names if name not in LABELS])
    changes = tuple(np.flatnonzero(change).tolist())
    recording = Labelled(testbed.name, whole.after(_LEARNT), runs(anomaly), changes)
    return Task("skab", whole.first(_LEARNT), 1.0 / (_LENGTHS * _LEARNT), rows_a_day(sheet), (recording,))


def _tep(testbed: Entity) -> Task:
    history = read_sheet(testbed.history)
    recordings = []
    for path in testbed.recordings:
        readings = read_sheet(path, history.names)
        faults = ((_FAULT, len(readings.rows)),) if stem(path).startswith("fault") else ()
        if faults and len(readings.rows) <= _FAULT:
            raise ValueError(f"{path} has {len(readings.rows)} rows: its fault would begin with row {_FAULT + 1}")
        recordings.append(Labelled(stem(path), readings, faults))
    rate = 1.0 / (_LENGTHS * len(history.rows))
    return Task("tep", history, rate, rows_a_day(history), tuple(recordings))


def decimals(rows: Array) -> int:
    """The decimal places that readings have.

    >>> decimals(np.array([[1.0, 0.25], [3.5, 0.1]]))
    2
    """
    return next((d for d in range(_DECIMALS) if np.allclose(rows, rows.round(d), rtol=0.0, atol=1e-12)), _DECIMALS)


def rows_a_day(readings: CaseReadings) -> float:
    """By the usual time between rows."""
    assert readings.times is not None
    return _DAY / float(np.median(np.diff(readings.times)) / np.timedelta64(1, "s"))


# -- methods -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alarms:
    """What a method makes of a recording: is an alarm on, by row, and the rows in which alarms begin."""

    on: Flags
    begins: Index

    @classmethod
    def where(cls, on: Flags) -> Alarms:
        return cls(on, np.array([start for start, _ in runs(on)], dtype=np.intp))

    @property
    def changes(self) -> Index:
        """The rows in which alarms begin or have just ended."""
        ends = np.array([stop for _, stop in runs(self.on) if stop < len(self.on)], dtype=np.intp)
        return np.union1d(self.begins, ends)


Watcher = Callable[[CaseReadings], Alarms]
Detector = Callable[[CaseReadings, float, int], Watcher]  # history, false alarms per row, seed


class Ours:
    """Our engine with default options, as `watch` runs it; beside its alarms it dates and ranks, as `identify` does."""

    def __init__(self, history: CaseReadings, rate: float, seed: int) -> None:  # noqa: ARG002
        self.model, _ = calibrate_with_windows(history.source())
        rows = max(self.model.usual_rows, 1.0)  # of a window
        self.every = max(1.0 / (rate * rows), 1.0)

    def __call__(self, new: CaseReadings) -> Alarms:
        windows = self._prepared(new)
        normal, _ = compare(self.model, windows)
        gaps = self.model.longest_gaps
        run = run_engine(normal, windows.values, self.every, gaps=gaps, missing=gaps_before(windows))
        first = _first_rows(windows, new)
        on = np.zeros(len(new.rows), dtype=bool)
        for begun, over, _ in run.alarms:
            on[first[begun] : None if over is None else first[over]] = True
        return Alarms(on, np.array([first[begun] for begun, _, _ in run.alarms], dtype=np.intp))

    def onset(self, new: CaseReadings) -> int | None:
        """The row with which the largest incident of a recording begins; None if nothing is found in it."""
        windows = self._prepared(new)
        answer = investigate_incident(self.model, windows, every=self.every)
        if answer.onset is None:
            return None
        return int(_first_rows(windows, new)[int(np.searchsorted(windows.starts, answer.onset))])

    def ranked(self, new: CaseReadings, start: int, stop: int) -> list[str]:
        """The sensors of rows [start, stop), the most suspect first."""
        windows = self._prepared(new)
        first = _first_rows(windows, new)
        place, end = (int(np.searchsorted(first, row)) for row in (start, stop))
        answer = investigate_incident(self.model, windows, place, end, locate=False, every=self.every)
        return [suspect.sensor for suspect in answer.sensors]

    def _prepared(self, new: CaseReadings) -> Windows:
        return self.model.prepare(new.source())


def _first_rows(windows: Windows, readings: CaseReadings) -> Index:
    if readings.times is None:
        step = len(readings.rows) / len(windows.values)
        return np.floor(np.arange(len(windows.values)) * step).astype(np.intp)
    return np.searchsorted(readings.times, windows.starts).astype(np.intp)


def charted(chart: Chart, history: CaseReadings, rate: float, seed: int) -> Watcher:
    """A chart with its threshold; an alarm stays on for ten rows after the last value beyond it."""
    level = threshold(held_out(chart, history.rows, seed), rate)
    statistic = chart(history.rows, seed)
    return lambda new: Alarms.where(held_on(statistic(new.rows) > level))


DELIVERED = f"{OURS}, unrounded"  # with the history as it was delivered, not rounded to the recording's decimals
DETECTORS: dict[str, Detector] = {OURS: Ours} | {name: partial(charted, chart) for name, chart in CHARTS.items()}


# -- outcomes ------------------------------------------------------------------------------------------


def watch(entity: Entity, seed: int) -> list[Outcome]:
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


def outcome_of(entity: Entity, task: Task, recording: Labelled, method: str, alarms: Alarms) -> Outcome:
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
