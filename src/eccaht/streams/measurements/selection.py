"""Few streams at once, at most one a group: which to use, by relaxation, rounding and exchange.

For given streams the weights are solved for exactly (convex.py). Streams are chosen from two starts, the strongest of
the convex relaxation and the best one by one, and then added and exchanged while that raises information. Where weights
are free all exchanges are judged at once, elsewhere the best candidates are solved for. The relaxation bounds what any
choice could reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from eccaht.base.arrays import Array, Index, Mask
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.budget import product
from eccaht.streams.measurements.convex import Direction, best_direction, block
from eccaht.streams.measurements.region import Region, Solution

_GAIN = 1e-9  # relative: a change that gains less is rounding
_TRIED = 4  # candidates solved for in each exchange
_FEW = 12  # starts from single streams, of few streams
_ROUNDED, _CROWD = 512, 48  # streams of the relaxation that are looked at; more streams than that are one start
_MANY = 8  # members up to which each is exchanged
_ROUNDS = 40
# of the climb that judges all exchanges at once:
_CLIMBS = 1000
_LARGE = 16  # streams from which exchanges are only looked at where no addition helps
_HUGE, _EXCHANGES = 64, 50  # so many exchanges at most among more streams than that
_LEAST = 1e-12  # share of a stream's variance below which the others explain all of it


def select(region: Region, covariance: Covariance, D: Array) -> Solution | None:
    """Choose streams and their weights for a contrast; None if no choice shows it."""
    whole = region.relaxed()
    relaxed = best_direction(whole, covariance, D)
    if relaxed is None:
        return None
    search = _Search(region, whole, covariance, D)
    best, highest = search.best(relaxed.weights)
    if best is None:
        return None
    found = search.solved(best)
    assert found is not None
    return Solution(region.scaled(found.weights), True, found.residual, max(relaxed.value, highest))


class _Search:
    """A climb over sets of streams; what was solved for is remembered."""

    def __init__(self, region: Region, whole: Region, covariance: Covariance, D: Array) -> None:
        self.region, self.whole, self.covariance, self.D = region, whole, covariance, D
        self.usable = np.flatnonzero(region.usable)
        self.variances = covariance.diagonal()
        self.known: dict[tuple[int, ...], Direction | None] = {}
        self.linear = whole.signs_free and not whole.noise  # weights are free: all exchanges are judged at once
        self.column = cache(covariance.column)

    def best(self, relaxed: Array) -> tuple[tuple[int, ...] | None, float]:
        """The best streams from all starts, and what they reach."""
        best, highest, expected = None, 0.0, 0.0
        starts = list(self.starts(relaxed))
        if self.linear:
            quick = _Exchange(self.region, self.column, self.variances, self.D)
            for streams, value in map(quick.climb, starts):
                reached = self.value(streams) if value > expected * (1.0 + _GAIN) else 0.0
                expected = max(expected, value)
                if reached > highest * (1.0 + _GAIN):
                    best, highest = streams, reached
            if highest >= expected * (1.0 - 1e-6):  # else the limit per unit of contrast binds
                return best, highest
        for streams, value in map(self.climb, starts if best is None else [*starts, best]):
            if value > highest * (1.0 + _GAIN):
                best, highest = streams, value
        return best, highest

    def solved(self, streams: tuple[int, ...]) -> Direction | None:
        if streams not in self.known:
            among = np.array(streams, dtype=np.intp)
            self.known[streams] = best_direction(self.whole, self.covariance, self.D, among) if streams else None
        return self.known[streams]

    def value(self, streams: tuple[int, ...]) -> float:
        """Information, twice, in nats: 0 where these streams do not show the contrast."""
        found = self.solved(streams)
        return 0.0 if found is None else found.value

    def starts(self, relaxed: Array) -> Iterator[tuple[int, ...]]:
        """The strongest streams of the relaxation, nothing, which leads to the best stream, and the next best ones."""
        order = np.argsort(-np.abs(relaxed) * np.sqrt(self.variances), kind="stable")
        rounded: tuple[int, ...] = ()
        for k in order[: min(4 * self.region.most + 16, _ROUNDED)].tolist():
            if relaxed[k] != 0.0 and self._fits((*rounded, k)):
                rounded = (*rounded, k)
        yield tuple(sorted(rounded))
        if len(rounded) > _CROWD:
            return
        yield ()
        single = np.where(self.region.usable, self.D**2 / self.variances, 0.0)
        for k in np.argsort(-single, kind="stable")[1 : _FEW if single.size <= _FEW and self.linear else 3].tolist():
            if single[k] > 0.0:
                yield (k,)

    def _fits(self, streams: tuple[int, ...]) -> bool:
        return self.region.few_enough(np.array(streams, dtype=np.intp))

    def climb(self, streams: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """Change one stream at a time while it pays."""
        value = self.value(streams)
        for _ in range(_ROUNDS):
            best, highest = streams, value
            for other in self._neighbours(streams):
                reached = self.value(other)
                if reached > highest * (1.0 + _GAIN) + 1e-300:
                    best, highest = other, reached
            if best == streams:
                break
            streams, value = best, highest
        return streams, value

    def _neighbours(self, streams: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        yield from self._joined(streams)
        for k in self._weakest(streams):
            rest = tuple(i for i in streams if i != k)
            yield from self._joined(rest, without=k)

    def _weakest(self, streams: tuple[int, ...]) -> tuple[int, ...]:
        """Of many streams only those of little weight are exchanged."""
        found = self.solved(streams)
        if len(streams) <= _MANY or found is None:
            return streams
        places = np.array(streams)
        strength = np.abs(found.weights[places]) * np.sqrt(self.variances[places])
        return tuple(places[np.argsort(strength, kind="stable")[:_MANY]].tolist())

    def _joined(self, streams: tuple[int, ...], without: int = -1) -> Iterator[tuple[int, ...]]:
        """One more stream, those of the largest estimated gain first."""
        if len(streams) >= self.region.most:
            return
        others = np.setdiff1d(self.usable, (*streams, without))
        order = others[np.argsort(-self._gains(streams, others), kind="stable")]
        taken = 0
        for k in order.tolist():
            joined = tuple(sorted((*streams, k)))
            if taken < _TRIED and self._fits(joined):
                taken += 1
                yield joined

    def _gains(self, streams: tuple[int, ...], others: Index) -> Array:
        """What a stream would add if only it and the present ones were free: its pull over its remaining noise."""
        found = self.solved(streams)
        pull = self.D - product(self.covariance, found.weights) if found is not None else self.D
        left = self.variances[others]
        if streams:
            kept = np.array(streams, dtype=np.intp)
            cross = np.stack([self.column(k)[others] for k in streams])
            left = left - (cross * np.linalg.solve(block(self.covariance, kept), cross)).sum(axis=0)
        return np.asarray(pull[others] ** 2 / np.maximum(left, _LEAST * self.variances[others]))


class _Exchange:
    """A climb over sets of streams whose weights are free: all additions and exchanges are judged at once.

    For streams T the best ratio is D_T'P D_T with P = S_TT^-1, and w = P D_T. Leaving out i costs w_i^2 / P_ii; a
    stream k brings (its pull)^2 / (its noise that T does not explain). Both follow from P and the columns of T, so that
    one round costs O(K |T|) numbers for all exchanges.
    """

    def __init__(self, region: Region, column: Callable[[int], Array], variances: Array, D: Array) -> None:
        self.region, self.column, self.variances, self.D = region, column, variances, D
        self.usable = region.usable

    def climb(self, start: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """Change one stream at a time, the best change first, while it pays."""
        streams, score = list(start), self._score(np.array(start, dtype=np.intp))
        exchanged = 0
        for _ in range(_CLIMBS):
            T = np.array(streams, dtype=np.intp)
            best = self._best_change(T, score)
            if best is None or exchanged > _EXCHANGES:
                break
            gone, come, score = best
            exchanged += gone >= 0 and T.size > _HUGE
            streams = [*(k for k in streams if k != gone), come]
        return tuple(sorted(streams)), score

    def _score(self, T: Index) -> float:
        if not T.size:
            return 0.0
        S = np.array([self.column(int(k))[T] for k in T])
        return float(self.D[T] @ np.linalg.solve(S, self.D[T]))  # eq. 2 at its largest

    def _best_change(self, T: Index, score: float) -> tuple[int, int, float] | None:
        """The stream that goes, -1 for none, the one that comes, and what is reached; None at the top."""
        cross = np.array([self.column(int(k)) for k in T]).reshape(T.size, self.D.size)
        P = np.linalg.inv(cross[:, T]) if T.size else np.empty((0, 0))
        w = P @ self.D[T]
        value = float(self.D[T] @ w)
        G = cross.T @ P  # (K, T)
        pull, left = self.D - cross.T @ w, self.variances - (G * cross.T).sum(axis=1)
        outside = self.usable.copy()
        outside[T] = False
        added = np.where(outside & self._open(T), self._reached(value, pull, left), -1.0)
        options = [(added, -1)]
        if T.size >= _LARGE and added.max() > score * (1.0 + _GAIN):
            return -1, int(added.argmax()), float(added.max())
        for place, i in enumerate(T.tolist()):
            spare = P[place, place]
            fallen = value - w[place] ** 2 / spare
            swapped = self._reached(fallen, pull + G[:, place] * (w[place] / spare), left + G[:, place] ** 2 / spare)
            options.append((np.where(outside & self._open(np.delete(T, place)), swapped, -1.0), i))
        scores, gone = max(options, key=lambda option: float(option[0].max()))
        come = int(scores.argmax())
        if not scores[come] > score * (1.0 + _GAIN):
            return None
        return gone, come, float(scores[come])

    def _reached(self, value: float, pull: Array, left: Array) -> Array:
        return value + pull**2 / np.maximum(left, _LEAST * self.variances)

    def _open(self, T: Index) -> Mask:
        if T.size >= self.region.most:
            return np.zeros(self.D.size, dtype=bool)
        good = np.ones(self.D.size, dtype=bool)
        for labels in self.region.groups:
            taken = np.zeros(int(labels.max()) + 2, dtype=bool)
            taken[labels[T]] = True
            taken[-1] = False  # of no group
            good &= ~taken[labels]
        return good
