"""The last windows as sums since candidate onsets, and what they say of shifts of some streams.

All in units of the streams' standard deviations. With b and M the sums of Q (x - mean) and of Q since the onset, and
shifts N(m, (0.3 m)^2) of the members of a set, the shifts are integrated out in closed form, as in
`posterior.likelihood.UnknownShifts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.shifts import integrated_gain
from eccaht.streams.watch.assumption import Extent
from eccaht.streams.watch.detector import LONGEST, Pattern, Scores, window_lengths

RELATIVE = 0.3  # standard deviation of a shift in units of m
_LEAST = 1e-9  # information in units of a window: below it none
_STANDS_OUT = 5.0  # nats that a stream says on its own


class Members(NamedTuple):
    """A set and the m of each of its members."""

    streams: tuple[int, ...]
    means: tuple[float, ...]

    def without(self, place: int) -> Members:
        streams, means = self
        return Members(streams[:place] + streams[place + 1 :], means[:place] + means[place + 1 :])

    def put(self, stream: int, mean: float) -> Members:
        return Members((*self.streams, stream), (*self.means, mean))


class _ConditionedSums(NamedTuple):
    """What is left for a further stream once the members' shifts are integrated out.

    field, curvature: of the log likelihood of its shift, (K,) each. shifts, variances: of the members, posterior means
    and variances, (n,) each. through: the covariance of the members' shifts times their rows of M, (n, K).
    """

    field: Array
    curvature: Array
    shifts: Array
    variances: Array
    through: Array

    def and_without_each(self) -> tuple[Array, Array]:
        """Field and curvature given all members, then given all but each in turn, whose shift is 0: (n + 1, K) each."""
        weights = self.through / self.variances[:, None]
        field, curvature = np.empty((2, len(weights) + 1, weights.shape[1]))
        field[0], curvature[0] = self.field, self.curvature
        np.add(self.field, self.shifts[:, None] * weights, out=field[1:])
        np.add(self.curvature, self.through * weights, out=curvature[1:])
        return field, curvature


@dataclass(frozen=True, eq=False)
class Sums:
    """b, (K,), and M, (K, K), of the windows since an onset."""

    b: Array
    M: Array

    def given(self, members: Members) -> _ConditionedSums:
        A, mean = list(members.streams), np.array(members.means)
        rows = self.M[A]
        inner = rows[:, A]
        residual = self.b[A] - inner @ mean
        covariance: Array = np.asarray(np.linalg.inv(inner + np.diag((RELATIVE * mean) ** -2.0)), dtype=float)
        shifts, through = mean + covariance @ residual, covariance @ rows
        curvature = self.M.diagonal() - np.einsum("nk,nk->k", rows, through)
        field = self.b - shifts @ rows
        variances: Array = covariance.diagonal()
        return _ConditionedSums(field, np.maximum(curvature, 0.0), shifts, variances, through)


class RecentSums:
    """The last windows of one plant, each taken once; memory and time a window are constant.

    covariance: of all streams, (K, K). precision: its inverse.
    """

    def __init__(self, covariance: Array, precision: Array, *, longest: int = LONGEST) -> None:
        self.units = np.sqrt(covariance.diagonal())
        self._scores = Scores(precision)
        self._scale = self._scores.root * self.units
        self._full = precision * np.outer(self.units, self.units)
        self._rows = np.zeros((longest, len(precision)))  # Q (x - mean), the last one before `_next`
        self._patterns: list[Pattern | None] = [None] * longest  # of silent streams
        self._next = self._held = 0
        self._complete = 0  # windows without silent streams, since the last one that had some

    def __len__(self) -> int:
        """How many windows it holds."""
        return self._held

    def take(self, deviations: Array) -> None:
        """Take x - mean of a window, (K,), NaN where a stream is silent."""
        scores, information = self._scores.of(deviations[None])
        self._rows[self._next] = scores[0] * self._scale
        self._patterns[self._next] = None if information is None else self._scores.pattern(np.isnan(deviations))
        self._complete = self._complete + 1 if information is None else 0
        self._next = (self._next + 1) % len(self._rows)
        self._held = min(self._held + 1, len(self._rows))

    def refill(self, deviations: Array) -> None:
        """Take all of these windows, (L, K)."""
        for row in deviations:
            self.take(row)

    def extent(self, deviations: Array) -> Extent:
        """How far windows, (L, K), are from the mean."""
        scores, information = self._scores.of(deviations)
        spoke = ~np.isnan(deviations)
        distances = (scores * self._scores.root * np.where(spoke, deviations, 0.0)).sum(axis=1)
        if information is not None:
            scores = scores / np.sqrt(np.maximum(information, _LEAST))
        return Extent(distances, np.abs(scores).max(axis=1), spoke.sum(axis=1))

    def last(self, count: int) -> Sums:
        """b and M of so many windows."""
        places = self._places(count)
        M = count * self._full
        if silent := self._silent(places):
            taken = np.concatenate([pattern.through for _, pattern in silent]) * self._scale
            M -= taken.T @ taken
        return Sums(self._rows[places].sum(axis=0), M)

    def evidence(self, members: Members, count: int) -> Array:
        """The log ratio of marginal likelihoods of a set, by onset in so many windows, (count,)."""
        A, mean = list(members.streams), np.array(members.means)
        places, spread = self._places(count), np.abs(mean) * RELATIVE
        b, full = _from_the_end(self._rows[places[:, None], A]), self._full[np.ix_(A, A)]
        ages = np.arange(count, 0.0, -1.0)[:, None]
        moved = ages * (full @ mean)
        values, vectors = np.linalg.eigh(spread[:, None] * full * spread)
        if silent := self._silent(places):  # M is no multiple of Q
            taken = _from_the_end(self._taken(A, silent, count))
            moved -= taken @ mean
            inner = ages[:, :, None] * full - taken
            values, vectors = np.linalg.eigh(spread[:, None] * inner * spread)
            turned = np.einsum("ln,lnm->lm", spread * (b - moved), vectors)
        else:
            values, turned = ages * values, (spread * (b - moved)) @ vectors
        values = 1.0 + np.maximum(values, 0.0)
        return np.asarray((b - 0.5 * moved) @ mean + integrated_gain(turned, values).sum(axis=1))

    def first_onset(self, count: int) -> int:
        """The onset in so many windows that speaks most for some streams, each on its own."""
        lengths = np.array(window_lengths(count))[::-1]
        onsets, places = count - lengths, self._places(count)
        z = _from_the_end(np.add.reduceat(self._rows[places], onsets, axis=0)) / self._scale
        known = lengths[:, None].astype(float)
        if silent := self._silent(places):
            lost = np.array([1.0 - pattern.information for _, pattern in silent])
            known = known - (np.array([window for window, _ in silent]) >= onsets[:, None]) @ lost
            z[known < _LEAST] = 0.0
        z *= z
        z /= np.maximum(known, _LEAST)
        return int(onsets[np.maximum(z - 2.0 * _STANDS_OUT, 0.0).sum(axis=1).argmax()])

    def _taken(self, A: list[int], silent: list[tuple[int, Pattern]], count: int) -> Array:
        """What silent streams take from Q of the members, by window, (L, n, n)."""
        taken = np.zeros((count, len(A), len(A)))
        for window, pattern in silent:
            through = pattern.through[:, A] * self._scale[A]
            taken[window] = through.T @ through
        return taken

    def _silent(self, places: Index) -> list[tuple[int, Pattern]]:
        if self._complete >= len(places):
            return []
        patterns = self._patterns
        return [(w, pattern) for w, place in enumerate(places.tolist()) if (pattern := patterns[place]) is not None]

    def _places(self, count: int) -> Index:
        """Where the last windows are, in the order of time."""
        return np.arange(self._next - count, self._next) % len(self._rows)


def _from_the_end(values: Array) -> Array:
    return np.cumsum(values[::-1], axis=0)[::-1]
