"""Few streams at once, at most one a group, streams that cost: which to use, by relaxation, rounding and exchange.

For given streams the weights are solved for exactly (convex.py). Streams are chosen from two starts, the strongest of
the convex relaxation and the best one by one, and then added, dropped and exchanged while that raises information
per cost. Where weights are free all exchanges are judged at once (exchange.py), elsewhere the best candidates are
solved for. The relaxation bounds what any choice could reach.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index, support_of
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.budget import product
from eccaht.streams.measurements.convex import Direction, best_direction, block
from eccaht.streams.measurements.exchange import Exchange
from eccaht.streams.measurements.region import Region

_GAIN = 1e-9  # relative: a change that gains less is rounding
_TRIED = 4  # candidates solved for in each exchange
_FEW = 12  # starts from single streams where they cost little
_ROUNDED, _CROWD = 512, 48  # streams of the relaxation that are looked at; more streams than that are one start
_MANY = 8  # members up to which each is exchanged
_ROUNDS = 40


class Selected(NamedTuple):
    """Weights up to their scale, (c'D)^2 / (c'S c + r^2) of them, and the most per cost that any choice could reach."""

    direction: Direction
    ceiling: float


def select(region: Region, covariance: Covariance, D: Array) -> Selected | None:
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
    ceiling = relaxed.value / region.least_cost(np.flatnonzero((D != 0.0) & region.usable))
    return Selected(found, max(ceiling, highest))


class _Search:
    """A climb over sets of streams; what was solved for is remembered."""

    def __init__(self, region: Region, whole: Region, covariance: Covariance, D: Array) -> None:
        self.region, self.whole, self.covariance, self.D = region, whole, covariance, D
        self.usable = np.flatnonzero(region.usable)
        self.variances = covariance.diagonal()
        self.known: dict[tuple[int, ...], Direction | None] = {}
        free = bool((whole.low[self.usable] < 0.0).all() and (whole.high[self.usable] > 0.0).all())
        self.linear = free and not whole.noise  # weights are free: all exchanges are judged at once
        self.column = cache(covariance.column)
        ends = np.concatenate([whole.low[self.usable], whole.high[self.usable]])
        boxed = bool(whole.noise) and math.isfinite(whole.norm) and bool((np.isfinite(ends) & (ends != 0.0)).any())
        low, high = np.where(whole.low < 0.0, -np.inf, 0.0), np.where(whole.high > 0.0, np.inf, 0.0)
        self.open = replace(whole, low=low, high=high, per_contrast=math.inf) if boxed else None
        self.bounds: dict[tuple[int, ...], float] = {}

    def best(self, relaxed: Array) -> tuple[tuple[int, ...] | None, float]:
        """The best streams from all starts, and what they reach per cost."""
        best, highest, expected = None, 0.0, 0.0
        starts = list(self.starts(relaxed))
        if self.linear:
            quick = Exchange(self.region, self.column, self.variances, self.D)
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
        """Information per cost, twice, in nats: 0 where these streams do not show the contrast."""
        found = self.solved(streams)
        if found is None:
            return 0.0
        return found.value / self.region.cost(support_of(found.weights))

    def _bound(self, streams: tuple[int, ...]) -> float:
        """What these streams could reach at most: without a box, which costs little to solve."""
        if self.open is None:
            return self.value(streams)
        if streams not in self.bounds:
            found = best_direction(self.open, self.covariance, self.D, np.array(streams, dtype=np.intp))
            cheapest = self.region.cost(np.array(streams, dtype=np.intp)) if self.region.per_stream is None else None
            value = 0.0 if found is None else found.value
            self.bounds[streams] = value / (cheapest or self._least_cost(streams)) * (1.0 + 1e-9)
        return self.bounds[streams]

    def _least_cost(self, streams: tuple[int, ...]) -> float:
        """Of any of these streams alone: some may end without weight."""
        return self.region.least_cost(np.array([k for k in streams if self.D[k]], dtype=np.intp))

    def starts(self, relaxed: Array) -> Iterator[tuple[int, ...]]:
        """The strongest streams of the relaxation, nothing, which leads to the best stream, and the next best ones."""
        order = np.argsort(-np.abs(relaxed) * np.sqrt(self.variances), kind="stable")
        rounded: tuple[int, ...] = ()
        for k in order[: min(4 * self.region.most + 16, _ROUNDED)].tolist():
            if relaxed[k] != 0.0 and self._fits((*rounded, k)):
                rounded = (*rounded, k)
        crowded, priced = len(rounded) > _CROWD, self.region.per_stream is not None
        if self.linear or not (crowded and priced):
            yield tuple(sorted(rounded))
        if priced or not crowded:
            yield ()
        if crowded:
            return
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
            for other in sorted(self._neighbours(streams), key=self._bound, reverse=True):
                if self._bound(other) <= highest:
                    break
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
            if rest and self.region.per_stream is not None:
                yield rest
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
        gains = self._gains(streams, others)
        order = others[np.argsort(-gains, kind="stable")]
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
        gain = pull[others] ** 2 / np.maximum(left, 1e-12 * self.variances[others])
        if self.region.per_stream is None:
            return gain
        base = found.value if found is not None else 0.0
        return (base + gain) / (self.region.cost(np.array(streams, dtype=np.intp)) + self.region.per_stream[others])
