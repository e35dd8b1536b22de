"""How rare what the streams of a plant show is in normal operation, counted on its history.

The history is cut into blocks of time. Each block is watched with normal operation fitted to the others, so that
nothing counted has been seen. Four steps, each by the blocks other than the one it is applied to:

1. *Scales*, by length and sensor: windows have memory, so that sums vary more than if they were independent, by a
   factor that is measured; evidence of courses and powers counts beyond what nine in ten windows show, in units in
   which it is e times as rare.
2. *Components* of each length: one sensor, several that move alike, several, in each view; and the distance of all.
3. *Rarity* of each component at each length: minus the logarithm of the share of windows in which it is as large. The
   statistic is the rarest of all.
4. *Passes* of the statistic: clusters of windows that pass a level are counted; beyond what was counted their rate
   falls exponentially.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.windows import Windows
from eccaht.incident.drill import fitted_without, kept, moments_of
from eccaht.incident.quiet import Quiet, longest_repeats, quiet_of, sample_quiet
from eccaht.model.model import Model
from eccaht.model.normal import Normal, history_deviations, knots_of
from eccaht.watch.detector import components
from eccaht.watch.streams import LENGTHS, Look, Streams

BLOCKS, MORE_BLOCKS = 3, 6  # of a history, and of a short one
SHORT = 2000  # windows
FEWEST = 30  # stretches of a length, one after the other, that a history must hold for it to be looked at
NAMES = (
    *(f"{view} {what}" for view in ("shift", "own") for what in ("one", "alike", "several")),
    *(f"{view} {what}" for view in ("power", "free") for what in ("one", "several")),
    "dense",
)
_MOST = 1_000_000  # windows times sensors of a history that are looked at
_LEAST_INFLATION = 0.25
_PRIOR = 20.0  # stretches that the mean of all sensors counts for in the inflation of one
_LEAST_SPREAD = 0.1  # of the evidence of a window, in nats
_FEW = 8.0  # windows beyond the last quantile of a rarity, in units of those that are worth one
_HEAVY = 0.1  # shape of tails beyond what was counted (generalised Pareto)
_HALVES = 24  # quantiles of a rarity at most: shares of 1/2, 1/4, ...
_LEVELS = 60  # of the statistic at which it is counted
_FEWEST_PASSED, _ENOUGH = 5, 12  # clusters that a counted level needs, and those that say how fast the rate falls
_APART = 10  # windows below the level that end a cluster


def law_of(normal: Normal, values: Array, moments: Array) -> Normal:
    """Normal operation whose `scores` are those of innovations, by the ranks of those of a history, (T, K)."""
    deviations = history_deviations(values, moments, normal.level, normal.profile, normal.width)
    innovations = normal.innovations(np.full(normal.size, np.nan), deviations)[1:]
    knots, scores = knots_of(innovations, np.ones(normal.size))
    return replace(normal, knots=knots, knot_scores=scores)


def looks_of(normal: Normal, law: Normal, values: Array, moments: Array, before: int = 0) -> Look:
    """What all windows of values, (T, K), but the first `before`, show, each part with a first axis of T windows."""
    streams = Streams(normal, law)
    for x in values[:before]:
        streams.follow(x)
    looks = []
    for x, moment in zip(values[before:], moments[before:], strict=True):
        if streams.ready:
            looks.append(streams.update(x, float(moment)))
        else:
            streams.follow(x)
    lengths, *parts = zip(*looks, strict=True)
    return Look(np.array(lengths), *(np.array(part, dtype=np.float32) for part in parts))


def together(looks: Sequence[Look]) -> Look:
    """The windows of several blocks."""
    return Look(*(np.concatenate(parts) for parts in zip(*looks, strict=True)))


@dataclass(frozen=True, eq=False)
class Scales:
    """What makes sums comparable over sensors.

    shift, own, power, free: roots of the inflations by memory, by length and sensor, (J, K). power_usual, free_usual:
    mean and standard deviation of a window, (2, K).
    """

    shift: Array
    own: Array
    power: Array
    free: Array
    power_usual: Array
    free_usual: Array

    @staticmethod
    def of(looks: Look) -> Scales:
        """Measure them on windows."""
        known = looks.lengths > 0
        power, free = _usual(looks.power[:, 0]), _usual(looks.free[:, 0])
        return Scales(
            _inflation(looks.shift, known),
            _inflation(looks.own, known),
            _inflation(_standardised(looks.power, looks.lengths, power), known),
            _inflation(_standardised(looks.free, looks.lengths, free), known),
            power,
            free,
        )

    def components(self, look: Look) -> Array:
        """The components of a look, (11, J), or of many, (11, T, J); 0 where there are not so many windows."""
        shift, own = components(look.shift / self.shift), components(look.own / self.own)
        power = _standardised(look.power, look.lengths, self.power_usual) / self.power
        free = _standardised(look.free, look.lengths, self.free_usual) / self.free
        wide = [components(np.maximum(z, 0.0))[[0, 2]] for z in (power, free)]
        found = np.concatenate([shift, own, *wide, look.dense[None]])
        return np.where(look.lengths > 0, found, 0.0)


def _usual(windows: Array) -> Array:
    """Mean and standard deviation of each sensor, (2, K)."""
    rows = windows.astype(np.float64)
    return np.stack([rows.mean(axis=0), np.maximum(rows.std(axis=0), _LEAST_SPREAD)])


def _standardised(means: Array, lengths: NDArray[np.intp], usual: Array) -> Array:
    """Means over stretches in units of the standard deviation that they would have if windows were independent."""
    return np.asarray((means - usual[0]) * np.sqrt(lengths)[..., None] / usual[1])


def _inflation(z: Array, known: NDArray[np.bool_]) -> Array:
    """Roots of the mean squares, (J, K): those of one sensor drawn to the mean of all the more, the fewer stretches."""
    found = np.empty(z.shape[1:])
    for j, length in enumerate(LENGTHS[: z.shape[1]]):
        squares = np.square(z[known[:, j], j], dtype=np.float64)
        each = squares.mean(axis=0) if len(squares) else np.ones(z.shape[2])
        worth = len(squares) / length
        found[j] = (worth * each + _PRIOR * each.mean()) / (worth + _PRIOR)
    return np.sqrt(np.maximum(found, _LEAST_INFLATION))


@dataclass(frozen=True, eq=False)
class Rarity:
    """How rare values of each component are at each length: quantiles at shares 1/2, 1/4, ... of the windows beyond.

    quantiles: (11, J, Q), infinite beyond what was counted. last, at, slope: the last one counted, minus the logarithm
    of its share, and the mean excess beyond it, (11, J).
    """

    quantiles: Array
    last: Array
    at: Array
    slope: Array

    @staticmethod
    def of(values: Array, lengths: NDArray[np.intp]) -> Rarity:
        """Count the values of windows, (11, T, J); a length with too few stretches gets no quantile at all."""
        n, _, J = values.shape
        quantiles = np.full((n, J, _HALVES), np.inf)
        last, at, slope = np.zeros((n, J)), np.zeros((n, J)), np.ones((n, J))
        for j in range(J):
            rows = values[:, lengths[:, j] > 0, j]
            T = rows.shape[1]
            if FEWEST * LENGTHS[j] > T:
                last[:, j] = np.inf
                continue
            worth = T / np.sqrt(LENGTHS[j])  # neighbouring stretches share windows
            halves = int(np.clip(np.log2(worth / _FEW), 1, _HALVES))
            quantiles[:, j, :halves] = np.quantile(rows, 1.0 - 0.5 ** np.arange(1, halves + 1), axis=1).T
            last[:, j], at[:, j] = quantiles[:, j, halves - 1], halves * np.log(2.0)
            excess = rows - last[:, j, None]
            beyond = excess > 0
            slope[:, j] = np.where(beyond, excess, 0.0).sum(axis=1) / np.maximum(beyond.sum(axis=1), 1)
        floor = 0.1 * np.maximum(np.abs(np.where(np.isfinite(last), last, 0.0)), 1.0)
        return Rarity(quantiles, last, at, np.maximum(slope, 0.1 * floor))

    def by_length(self, values: Array) -> Array:
        """The rarity of values, (11, J) or (11, T, J), in nats: 0 below the median."""
        many = values.ndim == 3
        v = values if many else values[:, None]
        found = np.zeros(v.shape)
        steps = np.log(2.0)
        for i in range(_HALVES):  # a broken line through the quantiles
            q = self.quantiles[:, None, :, i]
            if not np.isfinite(q).any():
                break
            lower = self.quantiles[:, None, :, i - 1] if i else q
            rises = np.isfinite(q) & (q > lower)
            width = np.subtract(q, lower, out=np.ones_like(q), where=rises)
            share = np.where(rises, np.clip((v - lower) / width, 0.0, 1.0), v >= q)
            found += steps * share
        last = self.last[:, None]
        excess = np.where(np.isfinite(last), np.maximum(v - np.where(np.isfinite(last), last, 0.0), 0.0), 0.0)
        found += np.log1p(_HEAVY * excess / self.slope[:, None]) / _HEAVY
        return found if many else found[:, 0]


@dataclass(frozen=True, eq=False)
class Passes:
    """How often the statistic passed levels in so many windows, clusters of windows counted once.

    levels: ascending, (n,). counts: clusters beyond them, not increasing. slope: beyond the last level the rate falls
    as exp(-slope b). largest: the largest value.
    A value that c clusters pass comes once in windows / (c + sqrt(c)) windows: a standard error on the side of fewer
    false alarms.
    """

    levels: Array
    counts: Array
    slope: float
    largest: float
    windows: int

    @staticmethod
    def of(statistics: Sequence[Array]) -> Passes:
        """Count in blocks of windows; a level that fewer than five clusters pass is not counted but extrapolated."""
        every = np.concatenate(statistics)
        levels = np.unique(np.quantile(every, 1.0 - np.geomspace(0.3, 1.0 / len(every), _LEVELS)))
        peaks = [np.concatenate([_peaks(values, level) for values in statistics]) for level in levels]
        counts = np.maximum.accumulate([len(each) for each in peaks[::-1]])[::-1]
        last = int(np.flatnonzero(counts >= min(_FEWEST_PASSED, counts.max()))[-1])
        excesses = peaks[int(np.flatnonzero(counts >= min(_ENOUGH, counts.max()))[-1])]
        mean = float((excesses - excesses.min()).mean()) if len(excesses) > 1 else 1.0
        return Passes(levels[: last + 1], counts[: last + 1], min(1.0 / max(mean, 1e-9), 1.0), every.max(), len(every))

    def log_time(self, value: float) -> float:
        """The logarithm of the mean time, in windows, between values as large as this."""
        times = np.log(self.windows / (self.counts + np.sqrt(self.counts)))
        return float(np.interp(value, self.levels, times) + self.slope * max(value - self.levels[-1], 0.0))

    def threshold(self, every: float) -> float:
        """The value from which on the mean time is at least so many windows."""
        lacking = np.log(every) - self.log_time(self.levels[-1])
        if lacking > 0.0:
            return float(self.levels[-1] + lacking / self.slope)
        return float(next(level for level in self.levels if self.log_time(level) >= np.log(every)))


@dataclass(frozen=True, eq=False)
class Rule:
    """All that says how unusual a look is.

    passes: of the statistic. calm: what the statistic of short stretches stays below in nine of ten windows.
    law: of the innovations, see `law_of`. quiet: the yardstick by which sensors are named.
    """

    scales: Scales
    rarity: Rarity
    passes: Passes
    calm: float
    law: Normal
    quiet: Quiet

    def statistic(self, look: Look) -> Array:
        """The rarity of each component at each length, (11, J) or (11, T, J)."""
        return self.rarity.by_length(self.scales.components(look))

    def basis(self, every: float) -> Literal["counted", "extrapolated"]:
        """Whether so rare a value was counted in the history, or is extrapolated from what was."""
        return "counted" if self.passes.threshold(every) <= self.passes.largest else "extrapolated"


CALM_LENGTHS = 8  # the first of LENGTHS, up to 27 windows, say whether all is normal again


def rule_of_history(model: Model, windows: Windows) -> Rule:
    """Count on the windows that a model was calibrated on, without gaps."""
    if model.normal is None or windows.names != model.names:
        raise ValueError("a plant is watched by a model of normal operation and the windows it was calibrated on")
    values, moments, drilled = windows.values, moments_of(windows), kept(model)
    blocks = BLOCKS if len(values) >= SHORT else MORE_BLOCKS
    edges = np.linspace(0, len(values), blocks + 1).astype(int).tolist()
    most = max(_MOST // values.shape[1] // blocks, 500)
    looks, samples, repeats = [], [], []
    for first, last in pairwise(edges):
        rest = np.r_[0:first, last : len(values)]
        normal = fitted_without(model, values, moments, slice(first, last))
        begin, stop = max(first - normal.width, 0), min(last, first + most)
        law = law_of(normal, values[rest], moments[rest])
        looks.append(looks_of(normal, law, values[begin:stop], moments[begin:stop], before=first - begin))
        repeats.append(longest_repeats(values[first:last]))
        if drilled is None and len(looks) % (blocks // BLOCKS) == 0:
            samples.append(sample_quiet(normal, values[first:last], moments[first:last]))
    found = []
    for b, look in enumerate(looks):
        others = together([other for c, other in enumerate(looks) if c != b])
        found.append(Scales.of(others).components(look))
    quiet = quiet_of(samples, longest_repeats(values)) if drilled is None else drilled.quiet
    quiet = replace(quiet, still=quiet.still * _unsteady(np.array(repeats)))
    return _rule(looks, found, law_of(model.normal, values, moments), quiet)


def _unsteady(repeats: Array) -> Array:
    """By how much the longest repetition of a sensor in a block exceeds those in the others, at most, (K,).

    repeats: by block and sensor. Where this is much, the longest one of the history says little of those to come.
    """
    ordered = np.sort(repeats, axis=0)
    return np.asarray(ordered[-1] / ordered[-2])


def _rule(looks: Sequence[Look], found: Sequence[Array], law: Normal, quiet: Quiet) -> Rule:
    """The rule of all blocks; found: the components of each by the scales of the others.

    The peaks are of blocks whose rarities are those of the others.
    """
    statistics = []
    for b, values in enumerate(found):
        others = [c for c in range(len(found)) if c != b]
        lengths = np.concatenate([looks[c].lengths for c in others])
        rarity = Rarity.of(np.concatenate([found[c] for c in others], axis=1), lengths)
        statistics.append(rarity.by_length(values))
    largest = [statistic.max(axis=(0, 2)) for statistic in statistics]
    short = np.concatenate([statistic[:, :, :CALM_LENGTHS].max(axis=(0, 2)) for statistic in statistics])
    every = together(looks)
    return Rule(
        scales=Scales.of(every),
        rarity=Rarity.of(np.concatenate(found, axis=1), every.lengths),
        passes=Passes.of(largest),
        calm=float(np.quantile(short, 0.9)),
        law=law,
        quiet=quiet,
    )


def _peaks(values: Array, level: float) -> Array:
    """The largest value of each cluster of windows that pass the level."""
    passing = np.flatnonzero(values > level)
    if not passing.size:
        return np.zeros(0)
    clusters = np.split(passing, np.flatnonzero(np.diff(passing) > _APART) + 1)
    return np.array([values[cluster].max() for cluster in clusters])
