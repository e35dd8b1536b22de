"""How rare values of a statistic are in a history, and beyond what it has seen.

*Rarity* of each component at each length: minus the logarithm of the share of windows in which it is as large. Beyond
the last counted quantile tails are generalised Pareto, their scale by component and length, their shape by component:
few windows lie out there, and what makes tails heavy is the same at all lengths.

*Passes* of the largest rarity: clusters of windows that pass a level are counted; beyond what was counted their rate
falls exponentially. That of an ideal rarity falls nearly as exp(-b), which counts as some clusters do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.watch.streams import LENGTHS

FEWEST = 15  # stretches of a length, one after the other, that a history must hold for it to be looked at
_FEW = 16.0  # windows beyond the last quantile of a rarity, in units of those that are worth one
_HEAVIEST = 0.5  # shape of a tail
_UNKNOWN = 0.15  # added to a shape: a scale known from n clusters makes an exponential tail a Pareto one of shape 1 / n
_SHARED = 0.5  # of the shape of a component is that of all, and of its scale at a length that of all lengths
_HALVES = 24  # quantiles of a rarity at most: shares of 1/2, 1/4, ...
_STEP = np.log(2.0)  # what one more half adds to a rarity
_LEVELS = 60  # of the statistic at which it is counted
_FEWEST_PASSED = 5  # clusters that a counted level needs
_SELDOM = 100  # windows between the clusters that say how fast the rate falls: more frequent ones run together
_PRIOR, _FALL = 10.0, 0.85  # clusters for which an ideal statistic counts, and how fast its rate falls
_APART = 10  # windows below the level that end a cluster
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Rarity:
    """How rare values of each of C components are at each length: quantiles at shares 1/2, 1/4, ... of the windows.

    quantiles: (C, J, Q), infinite beyond what was counted. last, at: the last one counted and minus the logarithm of
    its share, (C, J). scale, shape: of the tail beyond it, (C, J) and (C,).
    """

    quantiles: Array
    last: Array
    at: Array
    scale: Array
    shape: Array

    @staticmethod
    def of(values: Array, lengths: NDArray[np.intp]) -> Rarity:
        """Count the values of windows, (C, T, J); a length with too few stretches gets no quantile at all."""
        n, _, J = values.shape
        quantiles = np.full((n, J, _HALVES), np.inf)
        last, at = np.full((n, J), np.inf), np.zeros((n, J))
        mean, weighted = np.ones((n, J)), np.full((n, J), 0.25)
        for j in range(J):
            rows = values[:, lengths[:, j] > 0, j]
            T = rows.shape[1]
            if FEWEST * LENGTHS[j] > T:
                continue
            worth = T / np.sqrt(LENGTHS[j])  # neighbouring stretches share windows
            halves = int(np.clip(np.log2(worth / _FEW), 1, _HALVES))
            quantiles[:, j, :halves] = np.quantile(rows, 1.0 - 0.5 ** np.arange(1, halves + 1), axis=1).T
            last[:, j], at[:, j] = quantiles[:, j, halves - 1], halves * np.log(2.0)
            mean[:, j], weighted[:, j] = _moments(rows, last[:, j])
        counted = np.isfinite(last[0])
        shape = _shapes(mean[:, counted], weighted[:, counted])
        scale = _pooled(mean * (1.0 - np.maximum(shape[:, None] - _UNKNOWN, 0.0)), counted)
        floor = 0.01 * np.maximum(np.abs(np.where(counted, last, 0.0)), 1.0)
        return Rarity(quantiles, last, at, np.maximum(scale, floor), shape)

    @cached_property
    def _pieces(self) -> list[tuple[Array, Array, Array, NDArray[np.bool_]]]:
        """The pieces of a broken line through the quantiles: the upper end, the lower end, the width, whether it rises.

        Those of each component and length, (C, 1, J).
        """
        found = []
        for i in range(_HALVES):
            q = self.quantiles[:, None, :, i]
            if not np.isfinite(q).any():
                break
            lower = self.quantiles[:, None, :, i - 1] if i else q
            rises = np.isfinite(q) & (q > lower)
            found.append((q, lower, np.subtract(q, lower, out=np.ones_like(q), where=rises), rises))
        return found

    def by_length(self, values: Array) -> Array:
        """The rarity of values, (C, J) or (C, T, J), in nats: 0 below the median."""
        many = values.ndim == 3
        v = values if many else values[:, None]
        found = np.zeros(v.shape)
        for q, lower, width, rises in self._pieces:
            share = np.where(rises, np.minimum(np.maximum((v - lower) / width, 0.0), 1.0), v >= q)
            found += _STEP * share
        last = self.last[:, None]
        excess = np.where(np.isfinite(last), np.maximum(v - np.where(np.isfinite(last), last, 0.0), 0.0), 0.0)
        shape = np.maximum(self.shape, _LEAST)[:, None, None]
        found += np.log1p(shape * excess / self.scale[:, None]) / shape
        return found if many else found[:, 0]


def _moments(rows: Array, last: Array) -> tuple[Array, Array]:
    """Of what lies beyond `last`, (C,): the mean excess, and the mean of excess times the share beyond it."""
    found = np.empty((2, len(rows)))
    for c, row in enumerate(rows):
        excess = np.sort(row[row > last[c]] - last[c])[::-1]
        n = len(excess)
        found[:, c] = (excess.mean(), (excess * (np.arange(n) + 0.5)).mean() / n) if n > 1 else (1.0, 0.25)
    return found[0], found[1]


def _shapes(mean: Array, weighted: Array) -> Array:
    """Shapes of generalised Pareto tails by probability weighted moments (Hosking and Wallis 1987), (C,), 0 or more."""
    each = 2.0 - mean / np.maximum(mean - 2.0 * weighted, _LEAST * mean)
    by_component = np.clip(each, -_HEAVIEST, _HEAVIEST).mean(axis=1)
    return np.clip((1.0 - _SHARED) * by_component + _SHARED * by_component.mean(), 0.0, _HEAVIEST) + _UNKNOWN


def _pooled(scales: Array, counted: NDArray[np.bool_]) -> Array:
    """Scales, (C, J), each drawn to the mean of the same component at other lengths."""
    logs = np.log(np.maximum(scales, _LEAST))
    mean = logs[:, counted].mean(axis=1, keepdims=True)
    return np.exp(np.where(counted, (1.0 - _SHARED) * logs + _SHARED * mean, 0.0))


@dataclass(frozen=True, eq=False)
class Passes:
    """How often the statistic passed levels in so many windows, clusters of windows counted once.

    levels: ascending, (n,). counts: clusters beyond them, not increasing. slope: beyond the last level the rate falls
    as exp(-slope b), known as from `number` clusters.
    A value that c clusters pass comes once in windows / (c + sqrt(c)) windows: a standard error on the side of fewer
    false alarms. Beyond, the rate is the mean over what slopes the clusters leave possible, which falls more slowly:
    (1 + slope b / number)^-number.
    """

    levels: Array
    counts: Array
    slope: float
    number: float
    windows: int

    @staticmethod
    def of(statistics: Sequence[Array]) -> Passes:
        """Count in blocks of windows; a level that fewer than five clusters pass is not counted but extrapolated."""
        every = np.concatenate(statistics)
        levels = np.unique(np.quantile(every, 1.0 - np.geomspace(0.3, 1.0 / len(every), _LEVELS)))
        peaks = [np.concatenate([_peaks(values, level) for values in statistics]) for level in levels]
        counts = np.maximum.accumulate([len(each) for each in peaks[::-1]])[::-1]
        last = int(np.flatnonzero(counts >= min(_FEWEST_PASSED, counts.max()))[-1])
        wanted = max(len(every) / _SELDOM, _FEWEST_PASSED)
        place = int(np.flatnonzero(counts >= min(wanted, counts.max()))[-1])
        excesses = peaks[place] - levels[place]
        number = _PRIOR + len(excesses)
        slope = min(float(number / (_PRIOR / _FALL + excesses.sum())), 1.0)
        return Passes(levels[: last + 1], counts[: last + 1], slope, number, len(every))

    def log_time(self, value: float) -> float:
        """The logarithm of the mean time, in windows, between values as large as this."""
        times = np.log(self.windows / (self.counts + np.sqrt(self.counts)))
        beyond = self.slope * max(value - self.levels[-1], 0.0)
        return float(np.interp(value, self.levels, times) + self.number * np.log1p(beyond / self.number))

    def threshold(self, every: float) -> float:
        """The value from which on the mean time is at least so many windows."""
        lacking = np.log(every) - self.log_time(self.levels[-1])
        if lacking > 0.0:
            return float(self.levels[-1] + self.number * np.expm1(lacking / self.number) / self.slope)
        return float(next(level for level in self.levels if self.log_time(level) >= np.log(every)))


def _peaks(values: Array, level: float) -> Array:
    """The largest value of each cluster of windows that pass the level."""
    passing = np.flatnonzero(values > level)
    if not passing.size:
        return np.zeros(0)
    clusters = np.split(passing, np.flatnonzero(np.diff(passing) > _APART) + 1)
    return np.array([values[cluster].max() for cluster in clusters])
