"""Which streams to use where their weights are free: all additions, drops and exchanges judged at once.

For streams T the best ratio is D_T'P D_T with P = S_TT^-1, and w = P D_T. Leaving out i costs w_i^2 / P_ii; a stream k
brings (its pull)^2 / (its noise that T does not explain). Both follow from P and the columns of T, so that one round
costs O(K |T|) numbers for all exchanges.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.measurements.region import Mask, Region

_GAIN = 1e-9  # relative: a change that gains less is rounding
_ROUNDS = 1000
_MANY = 16  # streams from which exchanges are only looked at where no addition helps
_CROWD, _EXCHANGES = 64, 50  # so many exchanges at most among more streams than that
_LEAST = 1e-12  # share of a stream's variance below which the others explain all of it


class Exchange:
    """Climb over sets of streams by information per cost."""

    def __init__(self, region: Region, column: Callable[[int], Array], variances: Array, D: Array) -> None:
        self.region, self.column, self.variances, self.D = region, column, variances, D
        self.usable = region.usable
        self.price = np.zeros(D.size) if region.per_stream is None else region.per_stream

    def climb(self, start: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """Change one stream at a time, the best change first, while it pays."""
        streams, score = list(start), self._score(np.array(start, dtype=np.intp))
        exchanged = 0
        for _ in range(_ROUNDS):
            T = np.array(streams, dtype=np.intp)
            thinner = self._thinned(T, score)
            if thinner is not None:
                streams, score = thinner
                continue
            best = self._best_change(T, score)
            if best is None or exchanged > _EXCHANGES:
                break
            gone, come, score = best
            exchanged += gone >= 0 and come >= 0 and T.size > _CROWD
            streams = [k for k in streams if k != gone]
            if come >= 0:
                streams.append(come)
        return tuple(sorted(streams)), score

    def _score(self, T: Index) -> float:
        if not T.size:
            return 0.0
        S = np.array([self.column(int(k))[T] for k in T])
        value = float(self.D[T] @ np.linalg.solve(S, self.D[T]))
        return value / (self.region.per_measurement + float(self.price[T].sum()))

    def _thinned(self, T: Index, score: float) -> tuple[list[int], float] | None:
        """Of many streams that cost more than they bring, half leave at once, if that pays."""
        if T.size < _MANY or self.region.per_stream is None:
            return None
        P = np.linalg.inv(np.array([self.column(int(k))[T] for k in T]))
        brings = (P @ self.D[T]) ** 2 / P.diagonal() - score * self.price[T]
        leaving = np.argsort(brings, kind="stable")[: (int((brings < 0.0).sum()) + 1) // 2]
        if not leaving.size:
            return None
        rest = np.delete(T, leaving)
        reached = self._score(rest)
        return (rest.tolist(), reached) if reached > score * (1.0 + _GAIN) else None

    def _best_change(self, T: Index, score: float) -> tuple[int, int, float] | None:
        """The stream that goes and the one that comes, -1 for none, and what is reached; None at the top."""
        cross = np.array([self.column(int(k)) for k in T]).reshape(T.size, self.D.size)
        P = np.linalg.inv(cross[:, T]) if T.size else np.empty((0, 0))
        w = P @ self.D[T]
        value, cost = float(self.D[T] @ w), self.region.per_measurement + float(self.price[T].sum())
        G = cross.T @ P  # (K, T)
        pull, left = self.D - cross.T @ w, self.variances - (G * cross.T).sum(axis=1)
        outside = self.usable.copy()
        outside[T] = False
        single = self._reached(value, pull, left) / (cost + self.price)
        added = np.where(outside & self._open(T), single, -1.0)
        options = [(added, -1)]
        if T.size >= _MANY and added.max() > score * (1.0 + _GAIN):
            return -1, int(added.argmax()), float(added.max())
        for place, i in enumerate(T.tolist()):
            spare = P[place, place]
            fallen, cheaper = value - w[place] ** 2 / spare, cost - self.price[i]
            swapped = self._reached(fallen, pull + G[:, place] * (w[place] / spare), left + G[:, place] ** 2 / spare)
            scores = np.where(outside & self._open(np.delete(T, place)), swapped / (cheaper + self.price), -1.0)
            if T.size > 1 and self.region.per_stream is not None:
                scores[i] = fallen / cheaper  # to leave it out
            options.append((scores, i))
        scores, gone = max(options, key=lambda option: float(option[0].max()))
        come = int(scores.argmax())
        if not scores[come] > score * (1.0 + _GAIN):
            return None
        return gone, -1 if come == gone else come, float(scores[come])

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
