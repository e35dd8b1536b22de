"""What a method is asked to watch: a history, a false-alarm rate, and recordings whose incidents are known.

The rate is the same for all methods of a collection, and nothing of it comes from labels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eccaht.base.arrays import Array
from eccaht.research.datasets.labelled import Entity, metric_names, read_entity
from eccaht.research.datasets.testbeds import LABELS, Kind, Sheet, Testbed, read_attacks, read_sheet, stem
from eccaht.research.experiments.charts import Flags
from eccaht.research.experiments.incidents_cases import CaseReadings

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


def load_task(entity: Entity | Testbed) -> Task:
    """Read the files of a server or a testbed."""
    if isinstance(entity, Entity):
        return _servers(entity)
    return {"batadal": _batadal, "skab": _skab, "tep": _tep}[entity.kind](entity)


def _servers(entity: Entity) -> Task:
    train, test = read_entity(entity)
    names = metric_names(train.shape[1])
    segments = tuple((segment.start, segment.stop) for segment in entity.segments)
    rows = next((many for name, many in ROWS_A_DAY.items() if entity.collection.startswith(name)), _MINUTES)
    recording = Labelled(entity.name, CaseReadings(test, names), segments)
    return Task("servers", CaseReadings(train, names), 1.0 / rows, rows, (recording,))


def _batadal(testbed: Testbed) -> Task:
    """Attacks in a water network.

    The history has nine decimals and the attacks two. It is rounded to those of the recording before anything is
    learnt: else sensors that hardly move are beyond it by their resolution alone.
    """
    (path,), truth = testbed.recordings, testbed.truth
    assert truth is not None
    history, attacks = read_sheet(testbed.history), read_sheet(path)
    rows = attacks.of(history.names)
    learnt = CaseReadings(history.rows.round(decimals(rows)), history.names, history.times)
    spans = [np.flatnonzero((attacks.times >= first) & (attacks.times <= last)) for first, last in read_attacks(truth)]
    incidents = tuple((int(span[0]), int(span[-1]) + 1) for span in spans if span.size)
    altered = tuple(names for names, span in zip(_altered(truth), spans, strict=True) if span.size)
    if not incidents:
        raise ValueError(f"none of the attacks of {truth} lies in {path}")
    recording = Labelled(stem(path), CaseReadings(rows, history.names, attacks.times), incidents, altered=altered)
    delivered = CaseReadings(history.rows, history.names, history.times)
    return Task("batadal", learnt, 1.0 / _MONTH, rows_a_day(history), (recording,), delivered)


def _altered(truth: Path) -> list[tuple[str, ...]]:
    """The sensors of each attack; none where the file does not list them."""
    attacks = json.loads(truth.read_text(encoding="utf-8"))["attacks"]
    return [tuple(map(str, attack.get("altered", ()))) for attack in attacks]


def _skab(testbed: Testbed) -> Task:
    sheet = read_sheet(testbed.history)
    names = tuple(name for name in sheet.names if name not in LABELS)
    anomaly, change = (sheet.of([label])[_LEARNT:, 0] > 0 for label in LABELS)
    if not anomaly.size:
        raise ValueError(f"{sheet.path} has {len(sheet.rows)} rows: the first {_LEARNT} are only learnt from")
    whole = CaseReadings(sheet.of(names), names, sheet.times)
    changes = tuple(np.flatnonzero(change).tolist())
    recording = Labelled(testbed.name, whole.after(_LEARNT), runs(anomaly), changes)
    return Task("skab", whole.first(_LEARNT), 1.0 / (_LENGTHS * _LEARNT), rows_a_day(sheet), (recording,))


def _tep(testbed: Testbed) -> Task:
    history = read_sheet(testbed.history)
    recordings = []
    for path in testbed.recordings:
        sheet = read_sheet(path)
        readings = CaseReadings(sheet.of(history.names), history.names, sheet.times)
        faults = ((_FAULT, len(sheet.rows)),) if stem(path).startswith("fault") else ()
        if faults and len(sheet.rows) <= _FAULT:
            raise ValueError(f"{path} has {len(sheet.rows)} rows: its fault would begin with row {_FAULT + 1}")
        recordings.append(Labelled(stem(path), readings, faults))
    learnt = CaseReadings(history.rows, history.names, history.times)
    rate = 1.0 / (_LENGTHS * len(history.rows))
    return Task("tep", learnt, rate, rows_a_day(history), tuple(recordings))


def decimals(rows: Array) -> int:
    """The decimal places that readings have.

    >>> decimals(np.array([[1.0, 0.25], [3.5, 0.1]]))
    2
    """
    return next((d for d in range(_DECIMALS) if np.allclose(rows, rows.round(d), rtol=0.0, atol=1e-12)), _DECIMALS)


def rows_a_day(sheet: Sheet) -> float:
    """By the usual time between rows."""
    return _DAY / float(np.median(np.diff(sheet.times)) / np.timedelta64(1, "s"))


def runs(flags: Flags) -> tuple[tuple[int, int], ...]:
    """First row, and the row after the last, of each run.

    >>> runs(np.array([0, 1, 1, 0, 1], dtype=bool))
    ((1, 3), (4, 5))
    """
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False].astype(int)))
    return tuple((int(start), int(stop)) for start, stop in edges.reshape(-1, 2))
