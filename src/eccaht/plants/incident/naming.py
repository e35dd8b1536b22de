"""The incidents of a recording: alarms, dated at both ends, and which sensors are wrong in each.

Sensors are named one by one, each judged given those that remain: the one with the most evidence (`model.local`) is
named and set free, that is eliminated from the precisions, now and in the window before, and the others are judged
again without it. So three replayed sensors do not hide behind each other. Sensors are named as long as the next one is
rarer than any of K sensors is in all but a few quiet stretches. One that is stuck, silent or out of range is wrong by
itself and takes no part.

The alarms are those that a watch of the same windows raises. With hindsight each is dated by the likelihood of its
beginning and end, and its sensors are named by all windows in between. Alarms whose incidents overlap and share their
most suspect sensors are one incident, and so is the alarm of a recovery, right where an incident ends.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, runs
from eccaht.plants.incident.alarms import STANDING, Dates, Record, Run, date, gain
from eccaht.plants.model.local import Before, Local, System, evidence_of, without
from eccaht.plants.model.residuals import Normal
from eccaht.plants.tuning import TUNING

LONGEST_DRILL = 96  # windows that a drilled fault lasts: more make a set no clearer
_LEAST_CHANCE = 1e-12
_WRONG_UNSEEN = 0.25  # odds that a sensor is wrong in a stretch that raised no alarm, before it was looked at
_MOST = 500.0  # nats that an exponential can take
_CONTRADICTED = 2.0  # deviations from what the others predict, 1 in normal operation, from which on they contradict
_SAME_END = 1e-6  # by how much an end of a range and the same reading differ: a watch keeps 32 bits
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Naming:
    """The sensors of a stretch.

    order: all of them: the named ones as they were named, then the others by evidence. named: those that are wrong.
    evidence: in nats, and rarity: how rare as much of it is in quiet stretches, (K,), given the sensors named before,
    those that are not named given all that are. needed: the rarity from which on a sensor is named.
    beliefs: the probability of each to be wrong, given that one of them is, (K,).
    """

    order: tuple[int, ...]
    named: tuple[int, ...]
    evidence: Array
    rarity: Array
    needed: float
    beliefs: Array


def name_sensors(
    local: Local,
    before: Before,
    rows: Array,
    *,
    wrong: Sequence[int] = (),
    number: int | None = None,
    among: Collection[int] | None = None,
) -> Naming:
    """Name the sensors that are wrong in windows `rows`, (L, K), in robust units, after those `before`.

    wrong: sensors that are known to be; number: how many are wrong in all, if that is known; among: those that may be.
    """
    rows = rows[: TUNING.longest_stretch_windows]
    K = rows.shape[1]
    systems: tuple[System, ...] = local.systems(before, rows)
    for k in wrong:
        systems = without(systems, k)
    evidence, rarity = np.zeros(K), np.zeros(K)
    needed = float(np.log(K / TUNING.named_by_chance))
    named = list(wrong)
    allowed = np.arange(K) if among is None else np.array(sorted(among), dtype=np.intp)
    most = min(len(wrong) + TUNING.most_named_apart, K - 1, len({*wrong, *allowed.tolist()}))
    while True:
        rest = np.setdiff1d(np.arange(K), named)
        evidence[rest] = evidence_of(systems).max(axis=0)[rest]
        rarity[rest] = local.rarity(evidence, len(rows))[rest]
        if len(named) >= (most if number is None else min(number, most)):
            break
        left = np.intersect1d(rest, allowed)
        k = int(left[evidence[left].argmax()])
        if named and number is None and rarity[k] <= needed:
            break  # something is wrong: the most suspect one, if no other
        named.append(k)
        systems = without(systems, k)
    others = rest[np.argsort(-evidence[rest], kind="stable")].tolist()
    return Naming((*named, *others), tuple(named), evidence, rarity, needed, _beliefs(rarity, K, wrong, named))


def unnamed(naming: Naming, share: float) -> Naming:
    """The same where it is not given that a sensor is wrong: none is named.

    share: of quiet stretches in which the detectors rise as high. The rarest of K sound sensors is that rare in as many
    of them, so that no sensor is believed to be rarer than K times as much.
    """
    highest = np.log(len(naming.rarity)) - np.log(max(share, _LEAST_CHANCE))
    odds = _WRONG_UNSEEN * _odds(np.minimum(naming.rarity, highest))
    return replace(naming, named=(), beliefs=odds / (1.0 + odds))


def likelihood_ratio(rarity: Array) -> Array:
    """A rarity e is a p-value exp(-e); the likelihood ratio that it is worth is at most exp(e - 1) / e (Sellke, Bayarri
    and Berger 2001), which passes K about where a sensor is named."""
    e = np.minimum(rarity, _MOST)
    return np.asarray(np.exp(np.maximum(e - 1.0, 0.0)) / np.maximum(e, 1.0))


def _odds(rarity: Array) -> Array:
    """The odds of each sensor to be wrong, by a chance of one in K before the stretch was seen."""
    return likelihood_ratio(rarity) / len(rarity)


def _beliefs(rarity: Array, K: int, wrong: Sequence[int], named: Sequence[int]) -> Array:
    """The beliefs, given that at least one sensor is wrong."""
    odds = _odds(rarity)
    beliefs = odds / (1.0 + odds)
    if not wrong and named:
        first = named[0]
        beliefs[first] = max(float(beliefs[first]), float(odds[first] / odds.sum()), 0.5)
    beliefs[list(wrong)] = 1.0 - 1.0 / K
    return np.asarray(beliefs)


@dataclass(frozen=True, eq=False)
class DatedIncident:
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

    @property
    def stands_still(self) -> bool:
        """Whether all of its sensors are wrong by themselves."""
        return self.sensors <= self.wrong.keys()


def incidents_of(normal: Normal, run: Run) -> list[DatedIncident]:
    _leave_at_rest(normal, run)
    later = [begun for begun, _, _ in run.alarms[1:]]
    found = []
    for (begun, over, changed), latest in zip(run.alarms, [*later, len(run.values)], strict=False):
        stop = over
        if changed and over is not None:  # its deviation goes on as long as the change lasts
            past = ~run.lasts[over:]
            stop = over + int(past.argmax()) if past.any() else None
        dates, naming = name_alarm(normal, run, begun, stop, partial(_standing, run), latest)
        wrong = _standing(run, dates.onset, _stop(run, dates))
        found.append(_weighed(run, dates, naming, wrong, changed=changed and dates.end is None))
        run.usual[dates.onset : _stop(run, dates), list(naming.named)] = np.nan
    return _with_standing(normal, run, _joined(normal, run, found))


def stretch_of(normal: Normal, run: Run, first: int, last: int, number: int | None = None) -> DatedIncident:
    """Windows [first, last) as one incident, whatever they show; number: of sensors that are wrong, if known."""
    _leave_at_rest(normal, run)
    dates = Dates(first, first, first, last)
    return _between(normal, run, dates, changed=False, number=number)


def name_alarm(
    normal: Normal,
    record: Record,
    begun: int,
    over: int | None,
    wrong: Callable[[int, int], Collection[int]],
    latest: int | None = None,
    lead: int = TUNING.alarm_hold_windows,
) -> tuple[Dates, Naming]:
    """Date the incident of an alarm and name its sensors: the one way for a recording, a watch and a drill.

    The windows of the alarm, and `lead` before them, say which sensors date it; all windows between its dates say which
    are named. begun, over, latest: as `date` takes them; a watch gives the windows so far. wrong: the sensors that are
    known to be wrong in windows [start, stop).
    """
    stop = len(record.values) if over is None else over
    start = max(0, begun - lead)
    draft = name_stretch(normal, record, start, stop, wrong(start, stop))
    dates = date(normal, record.r, record.e, begun, over, list(draft.named), latest)
    stop = _stop(record, dates)
    return dates, name_stretch(normal, record, dates.onset, stop, wrong(dates.onset, stop))


def name_stretch(
    normal: Normal, record: Record, start: int, stop: int, wrong: Collection[int], number: int | None = None
) -> Naming:
    """Name the sensors that are wrong in windows [start, stop), after those before.

    wrong: those that are known to be; the farthest from what the history had comes first.
    """
    assert normal.local is not None
    before, rows = normal.local.before(record.usual[:start]), record.values[start:stop]
    away = np.nan_to_num(np.abs(rows - normal.centre) / normal.scale).mean(axis=0)
    known = sorted(wrong, key=lambda k: -float(away[k]))
    return name_sensors(normal.local, before, rows, wrong=known, number=number)


def _between(
    normal: Normal,
    run: Run,
    dates: Dates,
    *,
    changed: bool,
    number: int | None = None,
) -> DatedIncident:
    """The incident between two dates."""
    stop = _stop(run, dates)
    wrong = _standing(run, dates.onset, stop)
    naming = name_stretch(normal, run, dates.onset, stop, wrong, number)
    return _weighed(run, dates, naming, wrong, changed=changed)


def _weighed(run: Run, dates: Dates, naming: Naming, wrong: dict[int, str], *, changed: bool) -> DatedIncident:
    """An incident with what its windows show of its sensors."""
    stop = _stop(run, dates)
    evidence = float(run.passed[dates.onset : stop].max())
    rarest = run.e[dates.onset : stop][:, list(naming.named) or slice(None)].max(axis=1)
    return DatedIncident(dates, naming, wrong, evidence, float((rarest - TUNING.usual_rarity).sum()), changed)


def _standing(run: Run, start: int, stop: int) -> dict[int, str]:
    """Sensors that stand still or are out of range in at least half of the windows [start, stop).

    One that did so long before the incident is no part of it.
    """
    share = run.standing[:, start:stop].mean(axis=1)
    earlier = run.standing[:, max(start - TUNING.earlier_windows, 0)] & (start >= TUNING.earlier_windows)
    found: dict[int, str] = {}
    for kind, shares, known in zip(STANDING, share, earlier, strict=True):
        found |= dict.fromkeys(np.flatnonzero((shares >= 0.5) & ~known).tolist(), kind)
    return found


def _leave_at_rest(normal: Normal, run: Run) -> None:
    """Take sensors that rest for those that are stuck no more."""
    stuck = run.standing[STANDING.index("stuck")]
    for k in np.flatnonzero(stuck.any(axis=0)).tolist():
        for noticed, stop in runs(stuck[:, k]):
            start = _since(run, k, "stuck", noticed)
            if rests(normal, k, run.usual[:start], run.values[start:stop]):
                stuck[noticed:stop, k] = False


def rests(normal: Normal, k: int, usual: Array, rows: Array) -> bool:
    """Whether sensor k, which repeats one value in windows `rows`, after those `usual`, may be switched off.

    At an end of its range it is stuck only if the others contradict it. Anywhere else it never stood still for so long.
    """
    local, value, rows = normal.local, rows[0, k], rows[: TUNING.longest_stretch_windows]
    assert local is not None
    if min(abs(value - normal.low[k]), abs(value - normal.high[k])) > _SAME_END * (1.0 + abs(value)):
        return False
    evidence = evidence_of(local.systems(local.before(usual), rows))[:, k].max()
    return bool(2.0 * evidence / len(rows) + 1.0 <= _CONTRADICTED**2)


def _joined(normal: Normal, run: Run, found: list[DatedIncident]) -> list[DatedIncident]:
    """Alarms that are one incident as one; that of a recovery ends nothing and begins nothing."""
    joined: list[DatedIncident] = []
    for each in sorted(found, key=lambda incident: incident.dates.onset):
        last = joined[-1] if joined else None
        if last is None or not _alike(last, each):
            joined.append(each)
            continue
        end, stop = _stop(run, last.dates), _stop(run, each.dates)
        recovers = -1 <= each.dates.onset - end <= TUNING.long_windows and each.weight <= last.weight
        if recovers and each.dates.end is not None and stop - end <= TUNING.long_windows + TUNING.alarm_hold_windows:
            continue
        if each.dates.onset <= end + TUNING.alarm_hold_windows or _is_one(normal, run, last, each):
            later = None if each.dates.end is None or last.dates.end is None else max(stop, end)
            dates = replace(last.dates, end=later)
            joined[-1] = _between(normal, run, dates, changed=last.changed and each.changed)
        else:
            joined.append(each)
    return joined


def _alike(first: DatedIncident, second: DatedIncident) -> bool:
    """Whether the most suspect sensor of each incident is named in the other."""
    return first.naming.named[0] in second.sensors and second.naming.named[0] in first.sensors


def _is_one(normal: Normal, run: Run, first: DatedIncident, second: DatedIncident) -> bool:
    """Whether two incidents of the same sensors are better explained as one that lasts from the first to the second."""
    sensors, ends = sorted(first.sensors & second.sensors), (_stop(run, first.dates), _stop(run, second.dates))
    spans = ((first.dates.onset, ends[0]), (second.dates.onset, ends[1]), (first.dates.onset, ends[1]))
    one, other, whole = (gain(normal, run.r, run.e, sensors, *span) for span in spans)
    return whole > one + other


def _stop(record: Record, dates: Dates) -> int:
    """The first window after an incident, or after the recording."""
    return len(record.values) if dates.end is None else dates.end


def _with_standing(normal: Normal, run: Run, found: list[DatedIncident]) -> list[DatedIncident]:
    """The same with sensors that stand still while no alarm names them; those that stop together are one incident."""
    together: list[tuple[int, int, dict[int, str]]] = []
    for onset, stop, k, kind in _standstills(run):
        if any(k in each.sensors and _overlap(run, each, onset, stop) for each in found):
            continue
        if together and onset - together[-1][0] <= TUNING.alarm_hold_windows:
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
        for start, stop in runs(mask[:, k])
    )


def _standing_alone(normal: Normal, run: Run, onset: int, stop: int, wrong: dict[int, str]) -> DatedIncident:
    """The incident of sensors that stand still, or are out of range while no alarm names them.

    What others do while a sensor stands still is another matter. One out of range is judged with the others: in a noisy
    incident it may be so in parts only.
    """
    dates = Dates(onset, onset, onset, None if stop == len(run.values) else stop)
    naming = name_stretch(normal, run, onset, stop, wrong)
    if "range" not in wrong.values():
        naming = replace(naming, named=tuple(k for k in naming.named if k in wrong))
    return _weighed(run, dates, naming, wrong, changed=False)


def _since(run: Run, k: int, kind: str, start: int) -> int:
    """The first window of a standstill that was noticed in window `start`."""
    column, onset = run.values[:, k], start
    if kind == "range":
        return start
    while onset > 0 and (np.isnan(column[onset - 1]) if kind == "silent" else column[onset - 1] == column[start]):
        onset -= 1
    return onset


def _overlap(run: Run, incident: DatedIncident, start: int, stop: int) -> bool:
    return incident.dates.onset < stop and start < _stop(run, incident.dates)
