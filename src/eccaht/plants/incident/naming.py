"""The incidents of a recording: alarms, dated at both ends, and which sensors are wrong in each.

Sensors are named one by one, each judged given those that remain: the one with the most evidence (`model.local`) is
named and set free, that is eliminated from the precisions, now and in the window before, and the others are judged
again without it. So three replayed sensors do not hide behind each other. Sensors are named as long as the next one is
rarer than SHARE of the quiet stretches allow any of K sensors to be. One that is stuck, silent or out of range is wrong
by itself and takes no part.

The alarms are those that a watch of the same windows raises. With hindsight each is dated by the likelihood of its
beginning and end, and its sensors are named by all windows in between. Alarms whose incidents overlap and share their
most suspect sensors are one incident, and so is the alarm of a recovery, right where an incident ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, frozen, runs
from eccaht.base.files import check_keys
from eccaht.plants.incident.alarms import EARLIER, HOLD, USUAL, Dates, Run, date, gain
from eccaht.plants.model.local import Before, Local, System, evidence_of, without
from eccaht.plants.model.residuals import LONG, Normal

SHARE = 0.05  # of quiet stretches in which any sound sensor may be named
MOST_GROWN = 20  # sensors beyond are ranked by what they would add
LONGEST = 300  # windows of a stretch that are looked at
LONGEST_DRILL = 96  # windows that a drilled fault lasts: more make a set no clearer
_CLEAREST = 20.0  # log-odds: more makes a set no clearer
_LEAST_CHANCE = 1e-12
_MOST = 500.0  # nats that an exponential can take
Mask = NDArray[np.bool_]
STANDING = ("stuck", "silent", "range")


@dataclass(frozen=True, eq=False)
class Naming:
    """The sensors of a stretch.

    order: all of them, the most suspect first. named: those that are wrong, in that order. evidence: in nats, and
    rarity: how rare as much of it is in quiet stretches, given the sensors named before, (K,). needed: the rarity from
    which on a sensor is named. systems: by which each shows most, 0 own, 1 others, 2 both, (K,).
    beliefs: the probability of each to be wrong, given that one of them is, (K,).
    """

    order: tuple[int, ...]
    named: tuple[int, ...]
    evidence: Array
    rarity: Array
    needed: float
    systems: Index
    beliefs: Array


def name_sensors(
    local: Local, before: Before, rows: Array, *, wrong: Sequence[int] = (), number: int | None = None
) -> Naming:
    """Name the sensors that are wrong in windows `rows`, (L, K), in robust units, after those `before`.

    wrong: sensors that are known to be; number: how many are wrong in all, if that is known.
    """
    rows = rows[:LONGEST]
    K = rows.shape[1]
    systems: tuple[System, ...] = local.systems(before, rows)
    for k in wrong:
        systems = without(systems, k)
    order = list(wrong)
    evidence, strongest, rarity = np.zeros(K), np.zeros(K, dtype=np.intp), np.zeros(K)
    needed = float(np.log(K / SHARE))
    named = list(wrong)
    growing = True
    while True:
        rest = np.setdiff1d(np.arange(K), order)
        by_system = evidence_of(systems)
        evidence[rest], strongest[rest] = by_system.max(axis=0)[rest], by_system.argmax(axis=0)[rest]
        rarity[rest] = local.rarity(evidence, len(rows))[rest]
        if not rest.size or len(order) >= min(len(wrong) + MOST_GROWN, K - 1):
            break
        k = int(rest[evidence[rest].argmax()])
        growing = growing and (len(named) < number if number is not None else rarity[k] > needed)
        if growing or (not named and number is None):
            named.append(k)  # something is wrong: the most suspect one, if no other
        order.append(k)
        systems = without(systems, k)
    order += rest[np.argsort(-evidence[rest], kind="stable")].tolist()
    beliefs = _beliefs(rarity, K, wrong, named)
    return Naming(tuple(order), tuple(named), evidence, rarity, needed, strongest, beliefs)


def unnamed(naming: Naming) -> Naming:
    """The same where it is not given that a sensor is wrong: none is named."""
    odds = _odds(naming.rarity)
    return replace(naming, named=(), beliefs=odds / (1.0 + odds))


def _odds(rarity: Array) -> Array:
    """The odds of each sensor to be wrong, by a chance of one in K before the stretch was seen.

    A rarity e is a p-value exp(-e); the likelihood ratio that it is worth is at most exp(e - 1) / e (Sellke, Bayarri
    and Berger 2001), which passes K about where a sensor is named.
    """
    e = np.minimum(rarity, _MOST)
    return np.asarray(np.exp(np.maximum(e - 1.0, 0.0)) / np.maximum(e, 1.0) / len(e))


def _beliefs(rarity: Array, K: int, wrong: Sequence[int], named: Sequence[int]) -> Array:
    """The beliefs, given that at least one sensor is wrong."""
    odds = _odds(rarity)
    beliefs = odds / (1.0 + odds)
    if not wrong and named:
        first = named[0]
        beliefs[first] = max(float(beliefs[first]), float(odds[first] / odds.sum()), 0.5)
    beliefs[list(wrong)] = 1.0 - 1.0 / K
    return np.asarray(beliefs)


# -- the incidents of a recording ----------------------------------------------------------------------


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


def incidents_of(normal: Normal, run: Run) -> list[Found]:
    later = [begun for begun, _, _ in run.alarms[1:]]
    found = []
    for alarm, latest in zip(run.alarms, [*later, len(run.values)], strict=False):
        found.append(_of_alarm(normal, run, alarm, latest))
        _set_aside(run, found[-1])
    return _with_standing(normal, run, _joined(normal, run, found))


def stretch_of(normal: Normal, run: Run, first: int, last: int, number: int | None = None) -> Found:
    """Windows [first, last) as one incident, whatever they show; number: of sensors that are wrong, if known."""
    dates = Dates(first, first, first, last)
    return _named(normal, run, dates, changed=False, number=number)


def _set_aside(run: Run, found: Found) -> None:
    """The sensors of an incident say nothing about the level of those that come after it."""
    run.usual[found.dates.onset : _end(run, found), list(found.naming.named)] = np.nan


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
        for start, stop in runs(mask[:, k])
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


def _overlap(run: Run, incident: Found, start: int, stop: int) -> bool:
    return incident.dates.onset < stop and start < _end(run, incident)


# -- how clear a set is, and what that is worth --------------------------------------------------------


def set_belief(beliefs: Array, named: Sequence[int], standing: Collection[int] = (), windows: int = 1) -> float:
    """How clear it is that exactly these sensors are wrong, from 0 on.

    With a the least log-odds of a named sensor to be wrong, b the least of another to be sound, both at least 0, and L
    the number of windows: log(1 + a) + log(1 + b) + log(L) / 5. standing: sensors that are stuck, silent or out of
    range, which are wrong by themselves. The form and its fifth were chosen on simulated plants by how many drills with
    other seeds could be answered with confidence.

    >>> round(set_belief(np.array([0.99, 0.1, 0.01]), [0]), 2)
    2.88
    """
    chances = np.clip(beliefs, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
    odds = np.log(chances) - np.log1p(-chances)
    wrong = [float(odds[k]) for k in named if k not in standing]
    sound = np.delete(-odds, list(named))
    least = min([_CLEAREST, *wrong]), min([_CLEAREST, *sound.tolist()])
    length = np.log(min(max(windows, 1), LONGEST_DRILL))
    return float(np.log1p(np.maximum(least, 0.0)).sum() + length / 5.0)


def clarity(found: Found, stop: int) -> float:
    """How clear the set of an incident is; stop: the first window after the recording."""
    naming, dates = found.naming, found.dates
    windows = (stop if dates.end is None else dates.end) - dates.onset
    return set_belief(naming.beliefs, naming.named, found.wrong, windows)


@dataclass(frozen=True, eq=False)
class DrilledConfidence:
    """The share of right sets by their clarity: steps at `edges`, increasing, with `shares`, (n,) each."""

    edges: Array
    shares: Array

    def __post_init__(self) -> None:
        for name in ("edges", "shares"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name), dtype=np.float64)))
        good = self.edges.ndim == 1 and self.edges.shape == self.shares.shape and self.edges.size > 0
        good = good and bool(np.isfinite(self.edges).all() and (np.diff(self.edges) >= 0).all())
        if not good or not ((self.shares >= 0) & (self.shares <= 1)).all() or (np.diff(self.shares) < 0).any():
            raise ValueError("its confidence is damaged")

    def counted(self, clarity: float) -> float:
        """The share of right sets among drills that were as clear."""
        place = int(np.searchsorted(self.edges, clarity, side="right")) - 1
        return float(self.shares[max(place, 0)])

    def header(self) -> dict[str, Any]:
        return {"edges": self.edges.tolist(), "shares": self.shares.tolist()}

    @staticmethod
    def build(header: Any) -> DrilledConfidence | None:
        """From what `header` gave; whatever is no confidence is refused."""
        if header is None:
            return None
        check_keys(header, {"edges", "shares"}, "confidence")
        for numbers in header.values():
            if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
                raise ValueError("its confidence is damaged")
        return DrilledConfidence(header["edges"], header["shares"])
