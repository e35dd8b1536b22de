"""How well alarms find incidents: methods that watch recordings, all with thresholds by one rule from the history.

A task is a history, a false-alarm rate that is the same for all methods, and recordings whose incidents are known;
nothing of it but these comes from labels. `DETECTORS` is where a method is plugged in: it is given the history and the
rate per row, and returns what watches new rows.

Methods that keep the given rate badly have more or fewer false alarms than others, and find more or fewer incidents for
it. So charts are judged twice: with the threshold for the given rate, and with the one at which they have as many false
alarms in the quiet rows of the collection as our engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index, runs
from eccaht.plants import Answer, Windows, calibrate_with_windows, investigate_incident
from eccaht.plants.incident.alarms import run_engine
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.investigate import compare
from eccaht.research.datasets.labelled import (
    LABELS,
    CaseReadings,
    Entity,
    Kind,
    read_entity,
    read_sheet,
    read_spans,
    stem,
)
from eccaht.research.experiments.detection_outcomes import WITHIN, Outcome, nab_points
from eccaht.research.experiments.incidents_cases import OURS
from eccaht.research.experiments.rivals import CHARTS, Chart, Flags, held, held_out, threshold

_ROWS_OF_ASD, _ROWS_OF_SERVERS = 288, 1440  # a day, of collections that have no times
_MONTH = 720  # hours: BATADAL's one false alarm
_LENGTHS = 3  # of the history, with one false alarm: where it is short
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
    """What is learnt from, and what is watched then; `rate` is of false alarms, per row."""

    kind: Kind
    history: CaseReadings
    rate: float
    rows_a_day: float
    recordings: tuple[Labelled, ...]


def load_task(entity: Entity) -> Task:
    return {"servers": _servers, "skab": _skab, "tep": _tep}.get(entity.kind, _timed)(entity)


def _servers(entity: Entity) -> Task:
    train, test = read_entity(entity)
    segments = tuple((segment.start, segment.stop) for segment in entity.segments)
    rows = _ROWS_OF_ASD if entity.collection.startswith("asd") else _ROWS_OF_SERVERS
    return Task("servers", train, 1.0 / rows, rows, (Labelled(entity.name, test, segments),))


def _timed(testbed: Entity) -> Task:
    """A testbed whose truth has times: BATADAL, Sock Shop, the air handler.

    The history of BATADAL has nine decimals and the attacks two. It is rounded to those of the recording before
    anything is learnt: else sensors that hardly move are beyond it by their resolution alone.
    """
    (path,), history = testbed.recordings, read_sheet(testbed.history)
    readings = read_sheet(path, history.names)
    assert readings.times is not None
    incidents, altered = [], []
    for first, last, sensors in read_spans(testbed):
        inside = np.flatnonzero((readings.times >= first) & (readings.times <= last))
        if inside.size:
            incidents.append((int(inside[0]), int(inside[-1]) + 1))
            altered.append(sensors)
    if not incidents:
        raise ValueError(f"none of the incidents of {testbed.truth} lies in {path}")
    recording = Labelled(stem(path), readings, tuple(incidents), altered=tuple(altered))
    rate = 1.0 / (_LENGTHS * len(history.rows))
    if testbed.kind == "batadal":
        rate, history = 1.0 / _MONTH, replace(history, rows=history.rows.round(decimals(readings.rows)))
    return Task(testbed.kind, history, rate, rows_a_day(history), (recording,))


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


@dataclass(frozen=True)
class Alarms:
    """What a method makes of a recording, by row; begins: the rows in which alarms begin.

    on: is an alarm on? flagged: is one on, or does what it began last as a change? height: of charts, where an alarm is
    on above 0, in units in which chance is e times as rare.
    """

    on: Flags
    flagged: Flags
    begins: Index
    height: Array | None = None

    @classmethod
    def where(cls, on: Flags, height: Array | None = None) -> Alarms:
        return cls(on, on, np.array([start for start, _ in runs(on)], dtype=np.intp), height)

    @property
    def changes(self) -> Index:
        """The rows in which alarms begin, or incidents have just ended."""
        ends = np.array([stop for _, stop in runs(self.flagged) if stop < len(self.flagged)], dtype=np.intp)
        return np.union1d(self.begins, ends)


Watcher = Callable[[CaseReadings], Alarms]
Detector = Callable[[CaseReadings, float], Watcher]  # history, false alarms per row


class Ours:
    """Our engine with default options, as `watch` runs it; it also answers as `identify` does."""

    def __init__(self, history: CaseReadings, rate: float) -> None:
        self.model, _ = calibrate_with_windows(history.source())
        rows = max(self.model.usual_rows, 1.0)  # of a window
        self.every = max(1.0 / (rate * rows), 1.0)

    def __call__(self, new: CaseReadings) -> Alarms:
        windows = self.model.prepare(new.source())
        normal, _ = compare(self.model, windows)
        gaps = self.model.longest_gaps
        run = run_engine(normal, windows.values, self.every, gaps=gaps, missing=gaps_before(windows))
        first = first_rows(windows, new)
        on = np.zeros(len(new.rows), dtype=bool)
        for begun, over, _ in run.alarms:
            on[first[begun] : None if over is None else first[over]] = True
        flagged = on.copy()
        for begun, over in runs(run.lasts):
            flagged[first[begun] : None if over == len(first) else first[over]] = True
        return Alarms(on, flagged, np.array([first[begun] for begun, _, _ in run.alarms], dtype=np.intp))

    def identify(self, new: CaseReadings) -> tuple[Answer, int | None]:
        """What is said of a recording, and the row with which its largest incident begins; None if it has none."""
        windows = self.model.prepare(new.source())
        answer = investigate_incident(self.model, windows, every=self.every, moved=windows.moved())
        if answer.onset is None:
            return answer, None
        window = int(np.searchsorted(windows.starts, answer.onset, side="right")) - 1
        return answer, int(first_rows(windows, new)[max(window, 0)])

    def ranked(self, new: CaseReadings, start: int, stop: int) -> list[str]:
        """The sensors of rows [start, stop), the most suspect first."""
        windows = self.model.prepare(new.source())
        first = first_rows(windows, new)
        place, end = (int(np.searchsorted(first, row)) for row in (start, stop))
        answer = investigate_incident(self.model, windows, place, end, locate=False, every=self.every)
        return [suspect.sensor for suspect in answer.sensors]


def first_rows(windows: Windows, readings: CaseReadings) -> Index:
    if readings.times is None:
        step = len(readings.rows) / len(windows.values)
        return np.floor(np.arange(len(windows.values)) * step).astype(np.intp)
    return np.searchsorted(readings.times, windows.starts).astype(np.intp)


def charted(chart: Chart, history: CaseReadings, rate: float) -> Watcher:
    """A chart with its threshold; an alarm stays on for ten rows after the last value beyond it."""
    level, excess = threshold(held_out(chart, history.rows), rate)
    statistic = chart(history.rows)

    def watcher(new: CaseReadings) -> Alarms:
        height = (held(statistic(new.rows)) - level) / excess
        return Alarms.where(height > 0.0, height)

    return watcher


DETECTORS: dict[str, Detector] = {OURS: Ours} | {name: partial(charted, chart) for name, chart in CHARTS.items()}


class Watched(NamedTuple):
    """What a method made of a recording, and what is needed to judge it with another threshold.

    recording: without its sensors.
    """

    outcome: Outcome
    recording: Labelled
    alarms: Alarms


def watch(entity: Entity) -> list[Watched]:
    task, found = load_task(entity), []
    for name, detector in DETECTORS.items():
        watcher = detector(task.history, task.rate)
        for recording in task.recordings:
            alarms = watcher(recording.readings)
            if alarms.on.shape != (len(recording.readings.rows),):
                raise ValueError(f"{name} must say of each row whether an alarm is on")
            outcome = outcome_of(entity, task, recording, name, alarms)
            if isinstance(watcher, Ours):
                outcome = _with_answers(outcome, recording, watcher)
            found.append(Watched(outcome, replace(recording, readings=recording.readings.of(())), alarms))
    return found


def outcomes_of(watched: Sequence[Watched]) -> list[Outcome]:
    """All outcomes at the given rate and, of charts beside our engine, those at its measured rate."""
    together: dict[tuple[str, str], list[Watched]] = {}
    for each in watched:
        together.setdefault((each.outcome.collection, each.outcome.method), []).append(each)
    found = [each.outcome for each in watched]
    for (collection, _), some in together.items():
        heights = [(each.alarms.height, _inside(each.recording)) for each in some if each.alarms.height is not None]
        if (ours := together.get((collection, OURS))) and heights:
            level = level_of(heights, sum(each.outcome.false_alarms for each in ours))
            for (height, _), each in zip(heights, some, strict=True):
                counted = _counted(each.recording, Alarms.where(height > level))
                found.append(replace(each.outcome, at="measured", **counted))
    return found


def level_of(recordings: Iterable[tuple[Array, Flags]], most: int) -> float:
    """The lowest height above which no level has more than `most` alarms that begin outside of incidents.

    recordings: heights, and the rows that are inside of incidents. An alarm begins in row t at all levels from the
    height of the row before up to, not including, that of t. If no level has more, it is one with as many as there are.
    """
    ends = []
    for height, inside in recordings:
        before = np.append(-np.inf, height[:-1])
        ends.append(np.stack([before, height])[:, ~inside & (height > before)])
    low, high = np.sort(np.concatenate(ends, axis=1), axis=1)
    levels = np.unique([low, high])
    if not levels.size:
        return 0.0  # nothing is quiet
    begun = np.searchsorted(low, levels, side="right") - np.searchsorted(high, levels, side="right")
    too_many = np.flatnonzero(begun > most)
    return float(levels[too_many[-1] + 1] if too_many.size else levels[begun == begun.max()][-1])


def _with_answers(outcome: Outcome, recording: Labelled, ours: Ours) -> Outcome:
    """The same with what `identify` says.

    Of a single incident the date, and of Sock Shop what is said of the metric that was at fault, with nothing given; of
    attacks on known sensors the ranking of these, given when they were.
    """
    readings, spans = recording.readings, recording.incidents
    if outcome.kind in WITHIN and len(spans) == 1:
        (answer, onset), times = ours.identify(readings), _seconds(readings)
        (start, stop), last = spans[0], len(times) - 1
        off = None if onset is None else tuple(float(times[onset] - times[min(row, last)]) for row in (start, stop))
        outcome = replace(outcome, dated=off)
        if recording.altered:
            (root,) = recording.altered[0]
            order = [suspect.sensor for suspect in answer.sensors]
            place = order.index(root) + 1 if root in order else None
            outcome = replace(outcome, places=(place,), headline=root in answer.named)
        return outcome
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
    return Outcome(
        collection=entity.collection,
        kind=task.kind,
        entity=entity.name,
        recording=recording.name,
        method=method,
        at="given",
        rate=task.rate,
        rows_a_day=task.rows_a_day,
        **_counted(recording, alarms),
    )


def _counted(recording: Labelled, alarms: Alarms) -> dict[str, Any]:
    flagged, begins, inside = alarms.flagged, alarms.begins, _inside(recording)
    delays, begun = [], []
    for start, stop in recording.incidents:
        delays.append(int(flagged[start:stop].argmax()) if flagged[start:stop].any() else None)
        begun.append(bool(np.any((begins >= start) & (begins < stop))))
    changes, times = recording.changes, _seconds(recording.readings)
    return {
        "rows": len(flagged),
        "incident_rows": int(inside.sum()),
        "on_in_incidents": int((flagged & inside).sum()),
        "on_in_quiet": int((flagged & ~inside).sum()),
        "alarm_in_quiet": int((alarms.on & ~inside).sum()),
        "alarms": len(begins),
        "false_alarms": int((~inside[begins]).sum()),
        "lengths": tuple(stop - start for start, stop in recording.incidents),
        "delays": tuple(delays),
        "begun": tuple(begun),
        "changes": len(changes or ()),
        "nab_points": 0.0 if changes is None else nab_points(times[alarms.changes], times[list(changes)]),
    }


def _inside(recording: Labelled) -> Flags:
    inside = np.zeros(len(recording.readings.rows), dtype=bool)
    for start, stop in recording.incidents:
        inside[start:stop] = True
    return inside


def _seconds(readings: CaseReadings) -> Array:
    """Of each row since the first; rows without times are a second apart."""
    if readings.times is None:
        return np.arange(len(readings.rows), dtype=np.float64)
    return np.asarray((readings.times - readings.times[0]) / np.timedelta64(1, "s"))
