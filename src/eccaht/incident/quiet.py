"""What quiet stretches of the history show in the three views: the yardstick for evidence.

Windows have more memory and heavier tails than any model of them, so evidence is measured against what stretches of
the same length showed while nothing was wrong, in windows that the fit had not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from eccaht.arrays import Array, Index, frozen
from eccaht.incident.seen import Seen
from eccaht.incident.views import Evidence, Stretch
from eccaht.model.normal import FEWEST_BEFORE, Normal

LENGTHS = (1, 2, 5, 10, 20, 40, 80, 160)
STRETCHES = 100  # of each length in a block of time, spread evenly
FEWEST_STRETCHES = 20
PASSES = (0.1, 0.05, 0.02, 0.01)  # shares of quiet stretches in which a sound sensor passes a bar: those that are kept
FALSELY = 0.1  # share of the named sensors that may be sound (Benjamini and Hochberg), where many are named
REFERENCE = 0.95  # quantile of a sensor's own past, in units of which the alarm counts
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)  # quantiles that are kept
_SPARSITY = 0.1  # share of sensors that an incident moves, in the mixture of Xie and Siegmund
_SELDOM = 3.0  # how much rarer what the others say must be, if nothing else is unusual
_MOST = 25.0  # of the evidence of one sensor in that mixture
LONGER = 2.0  # a sensor is stuck once it repeats a value for LONGER times its longest repetition in the history,
FEWEST_STILL = 4.0  # and for more than so many windows
_LEAST = 1e-9
_RARITIES = -np.log(1.0 - np.array(LEVELS))
_PASSES_RARE = -np.log(PASSES)


@dataclass(frozen=True)
class Yardstick:
    """What is usual in stretches of one length, `length` windows.

    bars: by view, (3, 4): evidence that a sound sensor passes in the shares PASSES of the stretches. tails: how far
    beyond it evidence must go to be e times as rare, (3,). power, largest: 95 % quantiles of each sensor's own past,
    (K,). usual: its 90 % quantile of the evidence by its own past, (K,). curves: quantiles of the parts of the alarm
    statistic at LEVELS, (2, 6). alarms: quantiles of the statistic itself, (6,). inflation: see Evidence, (K,).
    """

    length: float
    bars: Array
    tails: Array
    power: Array
    largest: Array
    usual: Array
    curves: Array
    alarms: Array
    inflation: Array

    def parts(self, seen: Seen) -> Array:
        """The parts of the alarm statistic: many sensors by their own past, the strongest by the others, (n, 2)."""
        ratio = np.where(seen.judged, np.maximum(seen.power / self.power, seen.largest / self.largest), 0.0)
        many = np.log1p(_SPARSITY * np.expm1(np.minimum(2.0 * ratio, _MOST))).sum(axis=1)
        chance = 0.5 * seen.length
        gains = np.stack([(seen.free + chance) / seen.ease - chance, seen.step(self.inflation) / seen.ease])
        net = (gains - self.bars[1:, -1, None, None]) / self.tails[1:, None, None]
        strongest = np.where(seen.judged, net.max(axis=0), -np.inf).max(axis=1)
        return np.column_stack([many, np.where(seen.judged.any(axis=1), strongest, 0.0)])

    @property
    def usual_per_window(self) -> Array:
        """The evidence that a sound sensor reaches at most in a window, by its own past and by the others, (2,)."""
        return np.maximum(self.bars[:2, -1] / self.length + 0.5, 0.5)

    def share(self, number: int) -> float:
        """The share of quiet stretches in which a sound sensor passes the bar of the `number`-th one, in each view."""
        return min(max(FALSELY * number / len(self.power), PASSES[-1]), PASSES[0])

    def bar(self, number: int) -> Array:
        """What the sensor that joins as the `number`-th must pass, by view, (3,): less where many are unusual.

        With one sensor in K expected to be wrong, a ratio of marginal likelihoods must pass K for a sensor to be rather
        wrong than sound, however little quiet stretches show. That of one shift is one; that by a sensor's own past is
        the largest over sizes, worth half a log L less.
        """
        place = float(np.interp(-np.log(self.share(number)), _PASSES_RARE, np.arange(len(PASSES))))
        low = min(int(place), len(PASSES) - 2)
        bars = self.bars[:, low] + (place - low) * (self.bars[:, low + 1] - self.bars[:, low])
        odds = np.log(len(self.power))
        return np.maximum(bars, [odds + 0.5 * np.log(self.length), -np.inf, odds])

    def statistic(self, seen: Seen) -> Array:
        """How unusual stretches are: -log of the share of quiet ones in which a part of it is as large, (n,)."""
        return _statistic(self.parts(seen), self.curves)

    def threshold(self, alpha: float) -> float:
        """What the statistic passes in a share alpha of the quiet stretches; beyond those counted, its tail goes on."""
        if 1.0 - alpha <= LEVELS[-1]:
            return float(np.interp(1.0 - alpha, LEVELS, self.alarms))
        return float(self.alarms[-1] + np.log((1.0 - LEVELS[-1]) / max(alpha, 1e-12)))


def _statistic(parts: Array, curves: Array) -> Array:
    """The rarest of three, in -log, (n,): by own past, by the others, and both (Fisher's product of two shares).

    What the others say alone must be _SELDOM times as rare, since most incidents show in a sensor's own past.
    """
    own, others = map(_rarity, parts.T, curves)
    both = own + others
    return np.asarray(np.maximum(np.maximum(own, others - np.log(_SELDOM)), both - np.log1p(both)))


def _rarity(values: Array, curve: Array) -> Array:
    """-log of the share of quiet stretches beyond values, given quantiles at LEVELS; beyond them a Pareto tail."""
    slope = max(curve[-1] - curve[-3], _LEAST) / (_RARITIES[-1] - _RARITIES[-3])  # from 95 % to 99 %
    inside = np.interp(values, curve, _RARITIES, left=0.0)
    return np.asarray(inside + np.log1p(np.maximum(values - curve[-1], 0.0) / slope))


@dataclass(frozen=True)
class Quiet:
    """Yardsticks for several lengths: arrays whose first axis is the length.

    still: for how many windows each sensor may repeat one value, (K,).
    """

    lengths: Array
    bars: Array
    tails: Array
    power: Array
    largest: Array
    usual: Array
    curves: Array
    alarms: Array
    inflation: Array
    still: Array

    def __post_init__(self) -> None:
        J = len(self.lengths)
        size = self.power.shape[1] if self.power.ndim == 2 else 0
        shapes = {
            "lengths": (),
            "bars": (3, len(PASSES)),
            "tails": (3,),
            "curves": (2, len(LEVELS)),
            "alarms": (len(LEVELS),),
        }
        for field in fields(self):
            array = np.array(getattr(self, field.name), dtype=np.float64)
            shape = (size,) if field.name == "still" else (J, *shapes.get(field.name, (size,)))
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"the {field.name} of quiet stretches must be finite, of shape {shape}")
            if field.name not in ("bars", "curves") and (array <= 0).any():
                raise ValueError(f"the {field.name} of quiet stretches must be positive")
            object.__setattr__(self, field.name, frozen(array))
        if (
            not J
            or (np.diff(self.lengths) <= 0).any()
            or (np.diff(self.curves) < 0).any()
            or (np.diff(self.alarms) < 0).any()
        ):
            raise ValueError("the lengths and quantiles of quiet stretches must increase")

    @property
    def size(self) -> int:
        """The number of sensors."""
        return int(self.power.shape[1])

    def arrays(self) -> dict[str, Array]:
        """All of it, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def of(self, chosen: Index) -> Quiet:
        """The same for some of the sensors; alarms are those of all of them."""
        parts = {name: getattr(self, name)[..., chosen] for name in ("power", "largest", "usual", "inflation", "still")}
        return Quiet(**{**self.arrays(), **parts})

    def yardstick(self, length: int) -> Yardstick:
        """What is usual in stretches of this length: between the lengths that were counted, by their logarithms."""
        place = float(np.interp(np.log(length), np.log(self.lengths), np.arange(len(self.lengths))))
        low = int(place)
        high, share = min(low + 1, len(self.lengths) - 1), place - low
        beyond = max(1.0, length / self.lengths[-1])  # sums grow with the length

        def between(array: Array) -> Array:
            return np.asarray((1.0 - share) * array[low] + share * array[high])

        return Yardstick(
            length=float(length),
            bars=between(self.bars) * beyond,
            tails=between(self.tails) * beyond,
            power=between(self.power) * beyond,
            largest=between(self.largest),
            usual=between(self.usual) * beyond,
            curves=between(self.curves),
            alarms=between(self.alarms),
            inflation=between(self.inflation) * beyond,
        )


Sample = dict[int, Seen]  # quiet stretches, by their length


def sample_quiet(normal: Normal, values: Array, moments: Array, *, correlation: bool = True) -> Sample:
    """Look at stretches of quiet windows, (T, K), that the fit has not seen; lengths with too few are left out."""
    starts = {length: _starts(normal, len(values), length).tolist() for length in LENGTHS}
    scores = normal.scores(values - normal.profile[0]) if normal.level == "fixed" else None

    def look(start: int, length: int) -> Evidence:
        stretch = Stretch(values, moments, start, start + length)
        return Evidence.of(normal, stretch, correlation=correlation, scores=scores)

    return {
        length: Seen.of([look(start, length) for start in begins])
        for length, begins in starts.items()
        if len(begins) >= FEWEST_STRETCHES
    }


def longest_repeats(values: Array) -> Array:
    """For how many windows each sensor repeated one value at most, (K,)."""
    T, K = values.shape
    longest = np.ones(K)
    for k in range(K):
        changes = np.flatnonzero(np.diff(values[:, k]) != 0)  # NaN differs from everything
        longest[k] = np.diff(changes, prepend=-1, append=T - 1).max()
    return longest


def quiet_of(samples: Sequence[Sample], repeats: Array) -> Quiet:
    """The yardsticks of the stretches of these blocks of time together; repeats: `longest_repeats` of the history.

    Alarms are counted in each block by the yardstick of the others: what is usual changes from block to block.
    """
    lengths = [length for length in LENGTHS if all(length in sample for sample in samples)]
    if not lengths:
        raise ValueError("there are too few quiet windows to measure: give a longer history or shorter windows")
    rows = [_across([sample[length] for sample in samples]) for length in lengths]
    arrays = {field.name: np.stack([getattr(row, field.name) for row in rows]) for field in fields(Yardstick)}
    del arrays["length"]
    still = np.maximum(LONGER * repeats, FEWEST_STILL)
    return Quiet(lengths=np.array(lengths, dtype=np.float64), **arrays, still=still)


def _across(blocks: Sequence[Seen]) -> Yardstick:
    """What stretches of one length, by block of time, say is usual."""
    whole = _measured(Seen.together(blocks))
    parts = [half for block in blocks for half in block.halves()]
    statistics = []
    for part in parts:
        others = _measured(Seen.together([other for other in parts if other is not part]))
        statistics.append(others.statistic(part))
    return replace(whole, alarms=np.maximum(np.quantile(np.concatenate(statistics), LEVELS), whole.alarms))


def _starts(normal: Normal, T: int, length: int) -> NDArray[np.intp]:
    """Where stretches of a length begin: evenly spread, after enough windows to know the level from."""
    first = normal.width if normal.level == "local" else FEWEST_BEFORE
    if T - length <= first:
        return np.zeros(0, dtype=np.intp)
    return np.unique(np.linspace(first, T - length, STRETCHES).astype(np.intp))


def by_chance(length: int) -> Array:
    """What a sound sensor gains by a free course of so many windows in the shares PASSES, if R is right, (4,).

    Where R is too wide, quiet stretches show less. But once a sensor is set free, what is left may be just as R says.

    >>> by_chance(10).round(1)
    array([3. , 4.2, 5.6, 6.6])
    """
    return np.asarray(0.5 * (chdtri(length, PASSES) - length))


def _measured(seen: Seen) -> Yardstick:
    """What stretches of one length say is usual."""
    inflation = seen.inflation()
    gains = np.stack([seen.own, seen.free, seen.step(inflation)])  # (3, n, K)
    bars = np.quantile(gains, 1.0 - np.array(PASSES), axis=(1, 2)).T
    bars[1] = np.maximum(bars[1], by_chance(seen.length))
    tails = (bars[:, -1] - bars[:, 0]) / np.log(PASSES[0] / PASSES[-1])
    draft = Yardstick(
        length=float(seen.length),
        bars=bars,
        tails=np.maximum(tails, 1.0),  # never surer than the model itself
        power=np.maximum(np.quantile(seen.power, REFERENCE, axis=0), _LEAST),
        largest=np.maximum(np.quantile(seen.largest, REFERENCE, axis=0), _LEAST),
        usual=np.maximum(np.quantile(seen.own, 1.0 - PASSES[0], axis=0), _LEAST),
        curves=np.tile(np.arange(float(len(LEVELS))), (2, 1)),
        alarms=_RARITIES,
        inflation=inflation,
    )
    parts = draft.parts(seen)
    curves = np.quantile(parts, LEVELS, axis=0).T
    alarms = np.maximum(np.quantile(_statistic(parts, curves), LEVELS), _LEAST)
    return replace(draft, curves=curves, alarms=alarms)
