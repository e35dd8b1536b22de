"""Which streams moved, since when and how far, once there is an alarm.

A member of the set has moved by N(m, (0.3 m)^2), the same in all windows from the onset on, m one of a grid of sizes of
either sign in units of the stream's own standard deviation: small near 0, so that sets end. Members tend to move alike:
one size and sign is common to the set, and each member has it with probability 0.6. All numbers of members are equally
likely before, and all sets of a number, so that one more than n of K streams must gain log((K - n) / (n + 1)). A set is
grown stream by stream from a first guess of the onset, up to eight in a window, and improved by one change; then the
onset is that of the set. Each window after the alarm goes on from onset, set and common size of the window before, so
that the time for a window is bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, Part
from eccaht.streams.watch.detector import LONGEST
from eccaht.streams.watch.sums import RELATIVE, Members, RecentSums, Sums

COVERED = 0.9  # probability of the onset's interval
SIZES = 0.5 * 2.0 ** (0.5 * np.arange(15))  # m, in standard deviations of the stream
_COMMON = 0.6  # probability that a member has the common size
_CHANGES = 1  # of a set in a window; the next window goes on
_RIVALS = 8  # streams that are looked at in a place: those that gain most by a shift of the very best size
_WORTH = 0.1  # nats: what a change must gain, so that sets do not waver
_NEAR = 0.6  # of the common size
_CAUTION = 2.5  # power; with it no share of right sets that was counted is significantly below the confidence
_LARGE = 700.0  # nats, beyond which exp overflows

# A shift N(m, (0.3 m)^2) gains (f + q)^2 / (2 (c + p)) - log(c + p) / 2 + constant by a field f and a curvature c: the
# sum of `UnknownShifts.gains` with everything that belongs to m worked out before, since all sizes are tried at once.
_P = (RELATIVE * SIZES[:, None]) ** -2.0
_Q = SIZES[:, None] * _P
_CONSTANT = 0.5 * np.log(_P) - 0.5 / RELATIVE**2
_OTHERS = math.log(2.0 * len(SIZES) * (1.0 - _COMMON) / (2.0 * len(SIZES) - 1.0))
_LIKE_ALL = math.log(_COMMON / (1.0 - _COMMON) * (2.0 * len(SIZES) - 1.0))


class Onset(NamedTuple):
    """The most likely first window of the fault, and the first and the last one of an interval of 90 %."""

    best: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Named:
    """The streams that moved.

    members: in ascending order, (n,). sizes: posterior means of their shifts, (n,). beliefs: the probability that each
    stream is a member, given the others, (K,). common: the size that members tend to have, in standard deviations.
    confidence: the probability that this is the set, on the safe side.
    """

    FIELDS = (
        Field("members", ("n",), int, high="K-1"),
        Field("sizes", ("n",)),
        Field("beliefs", ("K",), low=0.0, high=1.0),
        Part("onset", Onset, fields=tuple(Field(name, (), int, low=-LONGEST) for name in Onset._fields)),
        Field("common", among=SIZES.tolist()),
        Field("confidence", low=0.0, high=1.0, optional=True),
    )
    members: Index
    sizes: Array
    beliefs: Array
    onset: Onset
    common: float
    confidence: float | None = None


def bar(count: int, size: int) -> float:
    """What a stream must gain to join a set of `count` among `size`.

    >>> round(bar(0, 100), 2), round(bar(2, 100), 2)
    (4.61, 3.49)
    """
    return math.log(max(size - count, 1) / (count + 1))


def gains(field: Array, curvature: Array, common: float) -> Array:
    """What streams, (N,), gain by a shift of each of the SIZES with the sign of their field, (sizes, N).

    common: the common size with its sign; 0 where it is not known.
    """
    precision = curvature + _P
    gained = np.abs(field) + _Q
    gained *= gained
    gained /= precision
    gained -= np.log(precision)
    gained *= 0.5
    gained += _CONSTANT
    gained -= math.log(2.0 * len(SIZES))
    if common:
        place = int(np.searchsorted(SIZES, abs(common)))
        gained += _OTHERS
        gained[place] += np.where((field > 0) == (common > 0), _LIKE_ALL, 0.0)
    return gained


def name_streams(
    windows: RecentSums, count: int, *, begin: int | None = None, settled: bool = False, start: Named | None = None,
    recent: int = 0,
) -> Named:  # fmt: skip
    """Find onset and set together in the last `count` windows.

    begin: the onset to start from, the first guess of `windows` by default, which stays if it is settled. start: what
    was found a window before. recent: if not 0, the set is that of the last windows only, at most so many.
    """
    onset = windows.first_onset(count) if begin is None else begin
    common, members = (0.0, Members((), ())) if start is None else _resumed(start, windows)
    sums = windows.last(min(count - onset, recent or count))
    look = best_set(sums, common, members)
    members = look.members
    interval = Onset(onset, onset, onset) if settled else _interval(windows.evidence(members, count))
    order = np.argsort(members.streams)
    streams = np.array(members.streams, dtype=np.intp)[order]
    beliefs, sizes = look.beliefs(), look.given.shifts[order] * windows.units[streams]
    return Named(streams, sizes, beliefs, interval, abs(_common(members)), look.confidence(beliefs))


def _resumed(start: Named, windows: RecentSums) -> tuple[float, Members]:
    """The common size and the set of the window before; who is near the common size has it."""
    scaled = (start.sizes / windows.units[start.members]).tolist()
    common = math.copysign(start.common, sum(math.copysign(1.0, size) for size in scaled) or 1.0)
    means = (common if _NEAR < size / common < 1.0 / _NEAR else _nearest_size(size) for size in scaled)
    return common, Members(tuple(start.members.tolist()), tuple(means))


class Look:
    """A set, and what each single change of it gains: one more stream, one less, one in the place of another.

    rivals: the streams of largest gain of those that are not in the set, given all members, and then given all but
    each of them, this one at the end, (n + 1, R + 1). gained, means: what they gain, and by which m, of the same shape.
    own: what each member gains by the m that it has, (n,).
    """

    def __init__(self, sums: Sums, common: float, members: Members) -> None:
        self.sums, self.members, self.common, self.given = sums, members, common, sums.given(members)
        A, means = np.array(members.streams), np.array(members.means)
        n, few = len(A), min(_RIVALS, len(sums.b) - len(A))
        field, curvature = self.given.and_without_each()
        rivals = _strongest(field, curvature, few, A)
        self.rivals = np.concatenate([rivals, np.append(A[:1], A)[:, None]], axis=1)
        rows = np.arange(n + 1)[:, None]
        field, curvature = field[rows, self.rivals], curvature[rows, self.rivals]
        gained = gains(field.ravel(), curvature.ravel(), common).reshape(len(SIZES), n + 1, few + 1)
        best = gained.argmax(axis=0)
        self.gained, self.means = gained.max(axis=0), np.copysign(SIZES[best], field)
        self.gained[0, few] = -np.inf
        own = gained[np.searchsorted(SIZES, np.abs(means)), rows[1:, 0], few]
        self.own = np.where(means * field[1:, few] < 0, -np.inf, own)
        self._joins, self._stays = bar(n, len(sums.b)), bar(n - 1, len(sums.b))

    def beliefs(self) -> Array:
        """How probable each stream is as a member, given that the others are in or out as they are, (K,)."""
        odds = gains(self.given.field, self.given.curvature, self.common).max(axis=0) - self._joins
        odds[list(self.members.streams)] = self.gained[1:, -1] - self._stays
        return np.asarray(1.0 / (1.0 + np.exp(-np.maximum(odds, -_LARGE))))

    def confidence(self, beliefs: Array) -> float:
        """How probable the set is, on the safe side.

        As if what is in each of its places did not depend on the others: its member, a rival or none; a stream of no
        place is out, or one more. Taken to a power, because members too weak to be seen are more than that allows for.
        """
        instead = np.exp(self.gained[1:, :-1] - self.gained[1:, -1:]).sum(axis=1)
        if len(instead) > 1:
            instead += np.exp(self._stays - self.gained[1:, -1])
        others = np.minimum(beliefs, 1.0 - 1e-12)
        others[list(self.members.streams)] = 0.0
        return float(np.exp(_CAUTION * (np.log1p(-others).sum() - np.log1p(instead).sum())))

    def changed(self) -> Members | None:
        """The set after the change that gains most, None if none gains enough; further streams may join together."""
        change = self.gained.copy()
        change[0] -= self._joins
        change[1:] -= self.own[:, None]
        place, rival = divmod(int(change.argmax()), change.shape[1])
        worst, most = int(self.own.argmin()), max(float(change[place, rival]), _WORTH)
        if len(self.own) > 1 and self._stays - self.own[worst] > most:
            return self.members.without(worst)
        if change[place, rival] < most:
            return None
        if place:
            rest = self.members.without(place - 1)
            return rest.put(int(self.rivals[place, rival]), float(self.means[place, rival]))
        few, A = self.rivals[0, :-1], np.array(self.members.streams)
        inner = self.sums.M[np.ix_(few, few)] - self.sums.M[np.ix_(few, A)] @ self.given.through[:, few]
        return _grown(few, self.given.field[few], inner, self.members, len(self.sums.b))


def _strongest(field: Array, curvature: Array, few: int, members: Index) -> Index:
    """The streams that gain most by a shift of the very best size, members left out, (..., few)."""
    strength = field * field / (np.maximum(curvature, 0.0) + _P[-1])
    strength[..., members] = -1.0
    size = strength.shape[-1]
    return np.asarray(strength.argpartition(min(size - few, size - 1), axis=-1)[..., size - few :])


def best_set(sums: Sums, common: float, start: Members, changes: int = _CHANGES) -> Look:
    """Improve a set by some changes, as long as one gains enough; from none it is grown, to one stream at least.

    The common size is what the first members of a set that grows make it.
    """
    members, size = start, len(sums.b)
    if not start.streams:
        few = _strongest(sums.b, sums.M.diagonal(), min(_RIVALS, size), np.zeros(0, dtype=np.intp))
        members = _grown(few, sums.b[few], sums.M[np.ix_(few, few)], start, size)
    look = Look(sums, common or _common(members), members)
    for _ in range(changes):
        if (changed := look.changed()) is None:
            break
        look = Look(sums, look.common, changed)
    return look


def _grown(few: Index, field: Array, M: Array, members: Members, size: int) -> Members:
    """Put in the stream that gains most, again and again, of a few with their field and their M given the members."""
    joined: list[int] = []
    for n in range(len(members.streams), len(members.streams) + len(few)):
        gained = gains(field, np.maximum(M.diagonal(), 0.0), _common(members) if n else 0.0)
        gained[:, joined] = -np.inf
        best, place = divmod(int(gained.argmax()), len(few))
        if n and gained[best, place] <= bar(n, size):
            break
        mean = math.copysign(SIZES[best], field[place])
        members = members.put(int(few[place]), mean)
        joined.append(place)
        precision = M[place, place] + _P[best, 0]
        field = field - M[place] * ((field[place] + mean * _P[best, 0]) / precision)
        M = M - np.outer(M[place], M[place] / precision)
    return members


def _common(members: Members) -> float:
    """The size that members tend to have, with the sign of most."""
    means = sorted(members.means, key=abs)
    return math.copysign(means[(len(means) - 1) // 2], sum(math.copysign(1.0, mean) for mean in means) or 1.0)


def _nearest_size(size: float) -> float:
    place = round(2.0 * math.log2(2.0 * max(abs(size), SIZES[0])))
    return math.copysign(SIZES[min(place, len(SIZES) - 1)], size)


def _interval(by_onset: Array) -> Onset:
    weights = np.exp(by_onset - by_onset.max())
    reached = np.cumsum(weights) / weights.sum()
    first, last = np.searchsorted(reached, [0.5 - 0.5 * COVERED, 0.5 + 0.5 * COVERED])
    best = int(by_onset.argmax())
    return Onset(best, min(int(first), best), min(max(int(last), best), len(by_onset) - 1))
