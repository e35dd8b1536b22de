"""Few streams at once, at most one a group: which to use, by relaxation, rounding and exchange.

For given streams the weights are solved for exactly (convex.py). Streams are chosen from several starts, the strongest
of the convex relaxation and the best ones by themselves, and then added and exchanged while that raises information.
The relaxation bounds what any choice could reach.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

from eccaht.base.arrays import Array, Index, Mask
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.convex import Direction, best_direction
from eccaht.streams.measurements.region import Region, Solution

_GAIN = 1e-9  # relative: a change that gains less is rounding
_TRIED = 8  # changes that are solved for where weights are not free
_FEW = 12  # starts from single streams, of few streams
_ROUNDED, _CROWD = 512, 48  # streams of the relaxation that are looked at; more streams than that are one start
_CLIMBS = 1000
_LARGE = 16  # streams from which exchanges are only looked at where no addition helps
_HUGE, _EXCHANGES = 64, 50  # so many exchanges at most among more streams than that
_LEAST = 1e-12  # share of a stream's variance below which the others explain all of it

Streams = tuple[int, ...]


def select(region: Region, covariance: Covariance, D: Array) -> Solution | None:
    """Choose streams and their weights for a contrast; None if no choice shows it."""
    whole = region.relaxed()
    relaxed = best_direction(whole, covariance, D)
    if relaxed is None:
        return None
    search = _Search(region, whole, covariance, D)
    best, expected = search.best(relaxed.weights)
    if search.free and (best is None or best.value < expected * (1.0 - 1e-6)):  # the limit per unit of contrast binds
        search.free = False
        best, _ = search.best(relaxed.weights)
    if best is None:
        return None
    return Solution(region.scaled(best.weights), True, best.residual, max(relaxed.value, best.value))


class _Search:
    """A climb over sets of streams; what was solved for is remembered."""

    def __init__(self, region: Region, whole: Region, covariance: Covariance, D: Array) -> None:
        self.region, self.whole, self.covariance, self.D = region, whole, covariance, D
        self.usable = region.usable
        self.variances = covariance.diagonal()
        self.known: dict[Streams, Direction | None] = {}
        self.free = whole.signs_free and not whole.noise
        self.column = cache(covariance.column)

    def best(self, relaxed: Array) -> tuple[Direction | None, float]:
        """The best weights from all starts, and what they should reach."""
        best, highest = None, 0.0
        for streams, value in map(self.climb, self.starts(relaxed)):
            if value > highest * (1.0 + _GAIN):
                best, highest = self.solved(streams), value
        return best, highest

    def solved(self, streams: Streams) -> Direction | None:
        streams = tuple(sorted(streams))
        if streams not in self.known:
            among = np.array(streams, dtype=np.intp)
            self.known[streams] = best_direction(self.whole, self.covariance, self.D, among) if streams else None
        return self.known[streams]

    def value(self, streams: Streams) -> float:
        """Information, twice, in nats: 0 where these streams do not show the contrast."""
        if self.free and streams:
            T = np.array(streams, dtype=np.intp)
            S = np.array([self.column(k)[T] for k in streams])
            return float(self.D[T] @ np.linalg.solve(S, self.D[T]))  # eq. 2 at its largest
        found = self.solved(streams)
        return 0.0 if found is None else found.value

    def starts(self, relaxed: Array) -> Iterator[Streams]:
        """The strongest streams of the relaxation, nothing, which leads to the best stream, and the next best ones."""
        order = np.argsort(-np.abs(relaxed) * np.sqrt(self.variances), kind="stable")
        rounded: Streams = ()
        for k in order[: min(4 * self.region.most + 16, _ROUNDED)].tolist():
            if relaxed[k] != 0.0 and self.region.few_enough(np.array([*rounded, k])):
                rounded = (*rounded, k)
        yield tuple(sorted(rounded))
        if len(rounded) > _CROWD:
            return
        yield ()
        single = np.where(self.region.usable, self.D**2 / self.variances, 0.0)
        for k in np.argsort(-single, kind="stable")[1 : _FEW if single.size <= _FEW else 3].tolist():
            if single[k] > 0.0:
                yield (k,)

    def climb(self, start: Streams) -> tuple[Streams, float]:
        """Change one stream at a time, the most promising change first, while it pays."""
        streams, value, exchanged = start, self.value(start), 0
        for _ in range(_CLIMBS):
            best, highest = streams, value
            for expected, changed in self._changes(streams, value):
                reached = expected if self.free else self.value(changed)
                if reached > highest * (1.0 + _GAIN):
                    best, highest = changed, reached
            if best == streams or exchanged > _EXCHANGES:
                break
            exchanged += len(best) == len(streams) > _HUGE
            streams, value = best, highest
        return streams, value

    def _changes(self, streams: Streams, value: float) -> list[tuple[float, Streams]]:
        """The most promising additions and exchanges, with what they would reach if the weights were free.

        For streams T the best ratio is then D_T'P D_T with P = S_TT^-1, and w = P D_T. Leaving out i costs
        w_i^2 / P_ii; a stream k brings (its pull)^2 / (its noise that T does not explain). Both follow from P and the
        columns of T, so that one round costs O(K |T|) numbers for all changes. Streams that limits leave without weight
        count for nothing, and others may only be pulled where their sign is allowed.
        """
        D, able = self.D, self.usable.copy()
        if not self.free and (found := self.solved(streams)) is not None:
            D = D if D @ found.weights > 0.0 else -D  # the side that they show
            streams = tuple(k for k in streams if found.weights[k] != 0.0)
        T = np.array(streams, dtype=np.intp)
        cross = np.array([self.column(k) for k in streams]).reshape(T.size, self.D.size)
        P = np.linalg.inv(cross[:, T]) if T.size else np.empty((0, 0))
        w = P @ D[T]
        present = float(D[T] @ w)
        G = cross.T @ P  # (K, T)
        pull, left = D - cross.T @ w, self.variances - (G * cross.T).sum(axis=1)
        able[T] = False
        options = [(self._reached(present, pull, left, able & self._open(T), one=not T.size), streams)]
        if T.size < _LARGE or options[0][0].max() <= value * (1.0 + _GAIN):
            for place in range(T.size):
                spare = P[place, place]
                fallen, turned = present - w[place] ** 2 / spare, pull + G[:, place] * (w[place] / spare)
                rest = streams[:place] + streams[place + 1 :]
                room = able & self._open(np.delete(T, place))
                options.append(
                    (self._reached(fallen, turned, left + G[:, place] ** 2 / spare, room, one=not rest), rest)
                )
        changes = [(float(scores[k]), (*rest, k)) for scores, rest in options for k in _largest(scores)]
        return sorted(changes, key=lambda change: -change[0])[: 1 if self.free else _TRIED]

    def _reached(self, value: float, pull: Array, left: Array, able: Mask, *, one: bool) -> Array:
        """one: of a stream by itself, which may have either sign."""
        signed = one | np.where(pull > 0.0, self.whole.high > 0.0, self.whole.low < 0.0)
        return np.where(able & signed, value + pull**2 / np.maximum(left, _LEAST * self.variances), -1.0)

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


def _largest(scores: Array) -> list[int]:
    return [int(k) for k in np.argsort(-scores, kind="stable")[:_TRIED] if scores[k] >= 0.0]
