"""Which streams moved, since when and how far, once there is an alarm.

A member of the set has moved by N(m, (0.3 m)^2), the same in all windows from the onset on, m one of a grid of sizes of
either sign in units of the stream's own standard deviation: small near 0, so that sets end. Members tend to move alike:
one size is common to the set, and each member has it with probability 0.6. With b and M the sums of Q (x - mean) and of
Q since the onset, the shifts are integrated out in closed form, as in `posterior.likelihood.UnknownShifts`. All numbers
of members are equally likely before, and all sets of a number, so that one more than n of K streams must gain
log((K - n) / (n + 1)). A set is grown stream by stream and improved by exchanges; onset, set and common size take
turns until all stay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eccaht.arrays import Array, Index
from eccaht.incident.others import Free
from eccaht.watch.detector import window_lengths

COVERED = 0.9  # probability of the onset's interval
SIZES = 0.5 * 2.0 ** (0.5 * np.arange(15))  # m, in standard deviations of the stream
_RELATIVE = 0.3  # standard deviation of a shift in units of m
_COMMON = 0.6  # probability that a member has the common size
_TURNS = 4  # of onset, set and common size
_ROUNDS = 20  # of growing and exchanging


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
    """

    members: Index
    sizes: Array
    beliefs: Array
    onset: Onset
    common: float


class Members(NamedTuple):
    """A set and the m of each of its members."""

    streams: tuple[int, ...]
    means: tuple[float, ...]

    def without(self, place: int) -> Members:
        """All but one."""
        streams, means = self
        return Members(streams[:place] + streams[place + 1 :], means[:place] + means[place + 1 :])

    def put(self, stream: int, mean: float) -> Members:
        """One more."""
        return Members((*self.streams, stream), (*self.means, mean))


@dataclass(frozen=True, eq=False)
class Sums:
    """b, (K,), and M, (K, K), of the windows since an onset, in units of the streams' standard deviations."""

    b: Array
    M: Array

    def given(self, members: Members) -> tuple[Array, Array]:
        """Field and curvature of the other streams once the members' shifts are integrated out, (K,) each."""
        if not members.streams:
            return self.b, self.M.diagonal()
        A, mean = list(members.streams), np.array(members.means)
        rows, lower = self.M[A], self._lower(members)
        through = np.linalg.solve(lower, np.abs(mean)[:, None] * _RELATIVE * rows)
        pull = np.linalg.solve(lower, np.abs(mean) * _RELATIVE * (self.b[A] - rows[:, A] @ mean))
        return self.b - mean @ rows - pull @ through, np.maximum(self.M.diagonal() - (through**2).sum(axis=0), 0.0)

    def shifts(self, members: Members) -> Array:
        """Posterior means of the members' shifts, (n,)."""
        A, mean = list(members.streams), np.array(members.means)
        spread, lower = np.abs(mean) * _RELATIVE, self._lower(members)
        residual = self.b[A] - self.M[np.ix_(A, A)] @ mean
        return np.asarray(mean + spread * np.linalg.solve(lower.T, np.linalg.solve(lower, spread * residual)))

    def _lower(self, members: Members) -> Array:
        A, spread = list(members.streams), np.abs(members.means) * _RELATIVE
        return np.asarray(np.linalg.cholesky(np.eye(len(A)) + spread[:, None] * self.M[np.ix_(A, A)] * spread))


class Windows:
    """Windows of x - mean, (L, K), NaN where a stream is silent, the last one at the end.

    covariance: of all streams, (K, K). precision: its inverse.
    """

    def __init__(self, deviations: Array, covariance: Array, precision: Array) -> None:
        self.units = np.sqrt(covariance.diagonal())
        self._free = Free.of(deviations / self.units, precision * np.outer(self.units, self.units))
        self._sums = _from_the_end(self._free.G)

    def __len__(self) -> int:
        return len(self._sums)

    def since(self, onset: int) -> Sums:
        """What the windows from an onset on say of shifts."""
        counts = np.bincount(self._free.which[onset:], minlength=len(self._free.Q))
        return Sums(self._sums[onset], np.tensordot(counts, self._free.Q, axes=1))

    def evidence(self, members: Members) -> Array:
        """The log ratio of marginal likelihoods of a set, by onset, (L,)."""
        A, mean = list(members.streams), np.array(members.means)
        blocks = self._free.Q[np.ix_(range(len(self._free.Q)), A, A)]
        M, b, spread = _from_the_end(blocks[self._free.which]), self._sums[:, A], np.abs(mean) * _RELATIVE
        lower = np.linalg.cholesky(np.eye(len(A)) + spread[:, None] * M * spread)
        residual = spread * (b - M @ mean)
        solved = np.linalg.solve(lower, residual[:, :, None])[:, :, 0]
        log_roots = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(b @ mean - 0.5 * (M @ mean) @ mean + 0.5 * (solved**2).sum(axis=1) - log_roots)

    def first_onset(self) -> int:
        """The onset that speaks most for some streams, each on its own."""
        onsets = len(self) - np.array(window_lengths(len(self)))
        own = _from_the_end(np.einsum("pkk->pk", self._free.Q)[self._free.which])[onsets]
        gains, _ = best_gains(self._sums[onsets], np.maximum(own, 0.0), None)
        return int(onsets[np.logaddexp(0.0, gains - bar(0, gains.shape[1])).sum(axis=1).argmax()])


def bar(count: int, size: int) -> float:
    """What a stream must gain to join a set of `count` among `size`.

    >>> round(bar(0, 100), 2), round(bar(2, 100), 2)
    (4.61, 3.49)
    """
    return math.log(max(size - count, 1) / (count + 1))


def best_gains(field: Array, curvature: Array, common: float | None) -> tuple[Array, Array]:
    """What each stream gains by a shift of the m that suits it best, and that m, which has the sign of its field.

    common: the common size, None where it is not known.
    """
    m = SIZES.reshape(-1, *([1] * field.ndim))
    strength, spread = np.abs(field), (_RELATIVE * m) ** 2
    factor = 1.0 + spread * curvature
    gains = m * (strength - 0.5 * m * curvature) + 0.5 * spread * (strength - m * curvature) ** 2 / factor
    gains += _log_weights(common).reshape(m.shape) - 0.5 * np.log(factor)
    best = gains.argmax(axis=0)
    return np.take_along_axis(gains, best[None], axis=0)[0], np.copysign(SIZES[best], field)


def name_streams(windows: Windows, *, onset: int | None = None, start: Named | None = None, recent: int = 0) -> Named:
    """Find onset and set together.

    onset: where it is known. start: what was found a window before. recent: if not 0, the set is that of the last
    windows only, at most so many.
    """
    begin = windows.first_onset() if onset is None else onset
    common = None if start is None else start.common
    members = Members((), ())
    for _ in range(_TURNS):
        before = members.streams, begin, common
        sums = windows.since(max(begin, len(windows) - recent) if recent else begin)
        members = best_set(sums, common, members)
        common = _nearest_size(float(np.median(np.abs(members.means))))
        by_onset = windows.evidence(members)
        begin = int(by_onset.argmax()) if onset is None else onset
        if (members.streams, begin, common) == before:
            break
    order = np.argsort(members.streams)
    streams = np.array(members.streams, dtype=np.intp)[order]
    return Named(
        streams,
        sums.shifts(members)[order] * windows.units[streams],
        _beliefs(sums, common, members),
        _interval(by_onset) if onset is None else Onset(onset, onset, onset),
        _nearest_size(float(np.median(np.abs(members.means)))),
    )


def best_set(sums: Sums, common: float | None, start: Members) -> Members:
    """Grow a set, exchange and drop members until no single change improves it; it holds at least one stream."""
    members = start
    for _ in range(_ROUNDS):
        grown = _grow(sums, common, members)
        improved = _improve(sums, common, grown)
        if improved == members:
            break
        members = improved
    return members


def _grow(sums: Sums, common: float | None, members: Members) -> Members:
    size = len(sums.b)
    while len(members.streams) < size:
        gains, means = best_gains(*sums.given(members), common)
        gains[list(members.streams)] = -np.inf
        k = int(gains.argmax())
        if members.streams and gains[k] <= bar(len(members.streams), size):
            break
        members = members.put(k, float(means[k]))
    return members


def _improve(sums: Sums, common: float | None, members: Members) -> Members:
    """Take out each member in turn and put in what is best in its place: itself, another stream, or none."""
    size = len(sums.b)
    for k in members.streams:
        rest = members.without(members.streams.index(k))
        gains, means = best_gains(*sums.given(rest), common)
        gains[list(rest.streams)] = -np.inf
        best = int(gains.argmax())
        best = k if gains[k] == gains[best] else best
        keeps = not rest.streams or gains[best] > bar(len(rest.streams), size)
        members = rest.put(best, float(means[best])) if keeps else rest
    return members


def _beliefs(sums: Sums, common: float | None, members: Members) -> Array:
    """How probable each stream is as a member, given that the others are in or out as they are, (K,)."""
    size = len(sums.b)
    odds = best_gains(*sums.given(members), common)[0] - bar(len(members.streams), size)
    for place, k in enumerate(members.streams):
        rest = members.without(place)
        odds[k] = best_gains(*sums.given(rest), common)[0][k] - bar(len(rest.streams), size)
    return np.asarray(np.exp(-np.logaddexp(0.0, -odds)))


def _log_weights(common: float | None) -> Array:
    """The logarithm of the prior probability of each size with one of its signs."""
    if common is None:
        return np.full(len(SIZES), -math.log(2.0 * len(SIZES)))
    others = (1.0 - _COMMON) / (len(SIZES) - 1)
    return np.log(0.5 * np.where(common == SIZES, _COMMON, others))


def _nearest_size(size: float) -> float:
    return float(SIZES[np.abs(np.log(SIZES / size)).argmin()])


def _from_the_end(values: Array) -> Array:
    """Sums from each window to the last."""
    return np.cumsum(values[::-1], axis=0)[::-1]


def _interval(by_onset: Array) -> Onset:
    weights = np.exp(by_onset - by_onset.max())
    reached = np.cumsum(weights) / weights.sum()
    first, last = np.searchsorted(reached, [0.5 - 0.5 * COVERED, 0.5 + 0.5 * COVERED])
    best = int(by_onset.argmax())
    return Onset(best, min(int(first), best), min(max(int(last), best), len(by_onset) - 1))
