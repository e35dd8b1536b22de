"""The incidents of a recording: the engine run over it, its alarms dated at both ends and their sensors named.

The alarms are those that a watch of the same windows raises. With hindsight each is dated by the likelihood of its
beginning and end, and its sensors are named by all windows in between. Alarms whose incidents overlap and
share their most suspect sensors are one incident, and so is the alarm of a recovery, right where an incident ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants.incident.dating import EARLIER, USUAL, Dates, date, gain
from eccaht.plants.incident.engine import HOLD, Engine
from eccaht.plants.incident.naming import Naming, name_sensors
from eccaht.plants.model.detectors import LONG
from eccaht.plants.model.normal import Normal

Mask = NDArray[np.bool_]
STANDING = ("stuck", "silent", "range")


@dataclass
class Run:
    """What the engine said of T windows: residuals and rarities, (T, K), the detectors beyond their thresholds, (T,).

    standing: sensors that were stuck, silent or out of range, (3, T, K). alarms: the windows with which each began and
    was over, None if it goes on, and whether it lasts as a change. usual: the windows without those of sensors in
    earlier incidents, from which levels are taken, (T, K).
    """

    values: Array
    r: Array
    e: Array
    passed: Array
    standing: Mask
    alarms: list[tuple[int, int | None, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.usual = self.values.copy()

    def set_aside(self, found: Found) -> None:
        """The sensors of an incident say nothing about the level of those that come after it."""
        stop = len(self.values) if found.dates.end is None else found.dates.end
        self.usual[found.dates.onset : stop, list(found.naming.named)] = np.nan


@dataclass(frozen=True, eq=False)
class Found:
    """One incident: its dates and sensors; wrong: those that stand still or are out of range, by kind.

    evidence: the largest value of a detector beyond its threshold. weight: the rarities of its sensors over all of its
    windows, beyond what is usual: by which incidents are compared.
    """

    dates: Dates
    naming: Naming
    wrong: dict[int, str]
    evidence: float
    weight: float
    changed: bool

    @property
    def sensors(self) -> frozenset[int]:
        return frozenset(self.naming.named)


def run_engine(
    normal: Normal, values: Array, every: float, *, gaps: Array | None = None, missing: Sequence[int] | None = None
) -> Run:
    """Run the engine over windows, (T, K), in robust units; missing: windows that are not there before each, (T,)."""
    T, K = values.shape
    engine = Engine(normal, every, gaps=gaps)
    run = Run(values, np.zeros((T, K)), np.zeros((T, K)), np.full(T, -np.inf), np.zeros((3, T, K), dtype=bool))
    for t in range(T):
        if missing is not None and missing[t]:
            engine.gap(int(missing[t]))
        shown = engine.step(values[t : t + 1])
        run.r[t], run.e[t], run.passed[t] = shown.r[0], shown.e[0], shown.passed[0]
        run.standing[:, t] = engine.stuck[0], engine.gone[0], engine.ranged[0]
        if shown.ended[0]:
            begun, _, _ = run.alarms[-1]
            run.alarms[-1] = (begun, t, bool(shown.changed[0]))
        if shown.began[0]:
            run.alarms.append((t, None, False))
    return run


def incidents_of(normal: Normal, run: Run) -> list[Found]:
    later = [begun for begun, _, _ in run.alarms[1:]]
    found = []
    for alarm, latest in zip(run.alarms, [*later, len(run.values)], strict=False):
        found.append(_of_alarm(normal, run, alarm, latest))
        run.set_aside(found[-1])
    return _with_standing(normal, run, _joined(normal, run, found))


def stretch_of(normal: Normal, run: Run, first: int, last: int, number: int | None = None) -> Found:
    """Windows [first, last) as one incident, whatever they show; number: of sensors that are wrong, if known."""
    dates = Dates(first, first, first, last)
    return _named(normal, run, dates, changed=False, number=number)


def _of_alarm(normal: Normal, run: Run, alarm: tuple[int, int | None, bool], latest: int) -> Found:
    """An alarm, dated and named: first by the windows that raised it, then by all between its dates."""
    begun, over, changed = alarm
    stop = len(run.values) if over is None else over
    start = max(0, begun - LONG // 3)
    wrong = _standing(run, start, stop)
    draft = _name(normal, run, start, stop, wrong)
    dates = date(normal, run.r, run.e, begun, over, list(draft.named), latest)
    return _named(normal, run, dates, changed=changed)


def _named(
    normal: Normal,
    run: Run,
    dates: Dates,
    *,
    changed: bool,
    number: int | None = None,
    seen: Mapping[int, str] | None = None,
) -> Found:
    """The incident between two dates; seen: sensors that are known to stand still, by kind."""
    stop = len(run.values) if dates.end is None else dates.end
    wrong = _standing(run, dates.onset, stop) | dict(seen or {})
    naming = _name(normal, run, dates.onset, stop, wrong, number)
    evidence = float(run.passed[dates.onset : stop].max())
    rarest = run.e[dates.onset : stop][:, list(naming.named) or slice(None)].max(axis=1)
    return Found(dates, naming, wrong, evidence, float((rarest - USUAL).sum()), changed)


def _name(normal: Normal, run: Run, start: int, stop: int, wrong: dict[int, str], number: int | None = None) -> Naming:
    assert normal.local is not None
    before = normal.local.before(run.usual[:start])
    return name_sensors(normal.local, before, run.values[start:stop], wrong=tuple(wrong), number=number)


def _standing(run: Run, start: int, stop: int) -> dict[int, str]:
    """Sensors that stand still or are out of range in at least half of the windows [start, stop).

    One that did so long before the incident is no part of it.
    """
    share = run.standing[:, start:stop].mean(axis=1)
    earlier = run.standing[:, max(start - EARLIER, 0)] & (start >= EARLIER)
    found: dict[int, str] = {}
    for kind, shares, known in zip(STANDING, share, earlier, strict=True):
        found |= dict.fromkeys(np.flatnonzero((shares >= 0.5) & ~known).tolist(), kind)
    return found


def _joined(normal: Normal, run: Run, found: list[Found]) -> list[Found]:
    """Alarms that are one incident as one; that of a recovery ends nothing and begins nothing."""
    joined: list[Found] = []
    for each in sorted(found, key=lambda incident: incident.dates.onset):
        last = joined[-1] if joined else None
        if last is None or not _alike(last, each):
            joined.append(each)
            continue
        end, stop = _end(run, last), _end(run, each)
        recovers = -1 <= each.dates.onset - end <= LONG and each.weight <= last.weight
        if recovers and each.dates.end is not None and stop - end <= LONG + HOLD:
            continue
        if each.dates.onset <= end + HOLD or _is_one(normal, run, last, each):
            later = None if each.dates.end is None or last.dates.end is None else max(stop, end)
            dates = replace(last.dates, end=later)
            joined[-1] = _named(normal, run, dates, changed=last.changed and each.changed)
        else:
            joined.append(each)
    return joined


def _alike(first: Found, second: Found) -> bool:
    """Whether the most suspect sensor of each incident is named in the other."""
    return first.naming.named[0] in second.sensors and second.naming.named[0] in first.sensors


def _is_one(normal: Normal, run: Run, first: Found, second: Found) -> bool:
    """Whether two incidents of the same sensors are better explained as one that lasts from the first to the second."""
    sensors, ends = sorted(first.sensors & second.sensors), (_end(run, first), _end(run, second))
    spans = ((first.dates.onset, ends[0]), (second.dates.onset, ends[1]), (first.dates.onset, ends[1]))
    one, other, whole = (gain(normal, run.r, run.e, sensors, *span) for span in spans)
    return whole > one + other


def _end(run: Run, incident: Found) -> int:
    return len(run.values) if incident.dates.end is None else incident.dates.end


def _with_standing(normal: Normal, run: Run, found: list[Found]) -> list[Found]:
    """The same with sensors that stand still while no alarm names them; those that stop together are one incident."""
    together: list[tuple[int, int, dict[int, str]]] = []
    for onset, stop, k, kind in _standstills(run):
        if any(k in each.sensors and _overlap(run, each, onset, stop) for each in found):
            continue
        if together and onset - together[-1][0] <= HOLD:
            first, last, sensors = together[-1]
            together[-1] = (first, max(last, stop), sensors | {k: kind})
        else:
            together.append((onset, stop, {k: kind}))
    alone = [_standing_alone(normal, run, *each) for each in together]
    return sorted([*found, *alone], key=lambda incident: incident.dates.onset)


def _standstills(run: Run) -> list[tuple[int, int, int, str]]:
    """The first window, the one after the last, the sensor and the kind of each, in order of time."""
    return sorted(
        (_since(run, k, kind, start), stop, k, kind)
        for kind, mask in zip(STANDING, run.standing, strict=True)
        for k in np.flatnonzero(mask.any(axis=0)).tolist()
        for start, stop in _spans(mask[:, k])
    )


def _standing_alone(normal: Normal, run: Run, onset: int, stop: int, wrong: dict[int, str]) -> Found:
    end = None if stop == len(run.values) else stop
    seen = _named(normal, run, Dates(onset, onset, onset, end), changed=False, seen=wrong)
    return replace(seen, naming=replace(seen.naming, named=tuple(wrong)), wrong=wrong)


def _since(run: Run, k: int, kind: str, start: int) -> int:
    """The first window of a standstill that was noticed in window `start`."""
    column, onset = run.values[:, k], start
    if kind == "range":
        return start
    while onset > 0 and (np.isnan(column[onset - 1]) if kind == "silent" else column[onset - 1] == column[start]):
        onset -= 1
    return onset


def _spans(mask: Mask) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _overlap(run: Run, incident: Found, start: int, stop: int) -> bool:
    return incident.dates.onset < stop and start < _end(run, incident)
