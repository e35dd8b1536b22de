"""The detectors that raise alarms: one tuple, which fitting, thresholds, engine and files read.

A detector makes one number of each window, in three steps:

1. a quantity of the window, or its sum over some windows divided by the root of their number;
2. how rare as large a quantity is in the history (`Tails`), in nats; of several sensors the rarest counts;
3. the mean of this rarity over some windows.

The largest of the detectors, each in units of its own highest values, has one threshold: the level that its clusters
pass at the wanted rate in windows that no fit has seen (`Peaks`). To add a detector, add an entry to ALARM_DETECTORS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, settle
from eccaht.plants.tuning import TUNING

POINTS = 32  # of the counted part of tails, evenly spaced from 0 to the edge

_LEAST, _FARTHEST = 1e-9, 1e12  # of the edge of tails
_RAREST = 100.0  # nats at the edge of tails
_HIGHEST, _MOST_WINDOWS = 1e6, 1e12  # of peaks


class Residuals(NamedTuple):
    """What windows show, (T, K) each; all of it is linear in the window and the one before.

    r: residuals of each sensor. innovation: what the window before does not explain, whitened. departure: the window
    itself, whitened.
    """

    r: Array
    innovation: Array
    departure: Array

    @staticmethod
    def of(deviations: Array) -> Residuals:
        """From all three side by side, (T, 3K)."""
        return Residuals(*np.split(deviations, 3, axis=1))


@dataclass(frozen=True)
class Quantity:
    """A quantity of windows.

    value: of residuals, (T, K) if by_sensor, else (T, 1). windows: of which it is the sum, over the root of their
    number. least: deviations of a sensor below it, in its spreads, are too small to matter.
    """

    value: Callable[[Residuals], Array]
    by_sensor: bool
    windows: int = 1
    least: float = 0.0

    def width(self, sensors: int) -> int:
        return sensors if self.by_sensor else 1

    def of_history(self, shown: Residuals) -> Array:
        """The quantity of windows that follow each other, (T, K or 1); what lies before the first counts as 0."""
        value = self.value(shown)
        return value if self.windows == 1 else np.sqrt(self.windows) * running_mean(value, self.windows)

    def least_size(self, unit: Array) -> Array | float:
        """What the least deviation that matters makes of it, (K,); unit: of residuals, in spreads, (K,)."""
        return np.asarray(self.least / unit * np.sqrt(self.windows)) if self.by_sensor else 0.0


@dataclass(frozen=True)
class AlarmDetector:
    """The mean rarity of a quantity over some windows."""

    name: str
    quantity: Quantity
    mean_windows: int = 1

    @property
    def least_excess(self) -> float:
        """How much beyond a level is e times as rare, at least: a rarity is the -log of a share."""
        return 1.0 / self.mean_windows

    @property
    def apart(self) -> int:
        """The windows that two clusters are apart, at least: as many as it adds up."""
        return max(TUNING.cluster_gap_windows, self.quantity.windows)


def _residuals(shown: Residuals) -> Array:
    return shown.r


def _distances(shown: Residuals) -> Array:
    return _norm(shown.innovation)


def _departures(shown: Residuals) -> Array:
    return _norm(shown.departure)


def _norm(whitened: Array) -> Array:
    return np.sqrt(np.einsum("tk,tk->t", whitened, whitened))[:, None]


RESIDUAL = Quantity(_residuals, by_sensor=True, least=TUNING.negligible_deviation)
DRIFT = Quantity(_residuals, by_sensor=True, windows=TUNING.long_windows, least=TUNING.negligible_drift)
DISTANCE = Quantity(_distances, by_sensor=False)
DEPARTURE = Quantity(_departures, by_sensor=False)

ALARM_DETECTORS: tuple[AlarmDetector, ...] = (
    AlarmDetector("rarest", RESIDUAL),
    AlarmDetector("rarest of 4", RESIDUAL, mean_windows=TUNING.short_windows),
    AlarmDetector("drift", DRIFT),
    AlarmDetector("distance", DISTANCE),
    AlarmDetector("departure of 4", DEPARTURE, mean_windows=TUNING.short_windows),
)


def columns(sensors: int) -> dict[Quantity, slice]:
    """Where each quantity stands in `Normal.rarity`; residuals, by which sensors are shown, come first."""
    found: dict[Quantity, slice] = {}
    stop = 0
    for quantity in (RESIDUAL, *(detector.quantity for detector in ALARM_DETECTORS)):
        if quantity not in found:
            found[quantity] = slice(stop, stop + quantity.width(sensors))
            stop = found[quantity].stop
    return found


def columns_of(sensors: int, chosen: Index) -> Index:
    """The columns of some of the sensors, and those of quantities that are not by sensor."""
    nothing = np.zeros(1, dtype=np.intp)
    parts = [place.start + (chosen if each.by_sensor else nothing) for each, place in columns(sensors).items()]
    return np.concatenate(parts)


def counted(shown: Sequence[Residuals], unit: Array) -> tuple[Tails, Peaks]:
    """Count what is rare in parts of a history, each judged by a fit that has not seen it, and how high detectors rose.

    What is rare in a part is counted on the others: a window that counts among those that it is compared with can never
    be rarer than all of them, and new ones can. unit: of residuals, in spreads, (K,).
    """
    sizes = [{quantity: quantity.of_history(part) for quantity in columns(len(unit))} for part in shown]
    values = []
    for held, part in enumerate(sizes):
        tails = _tails([other for place, other in enumerate(sizes) if place != held], unit)
        values.append(values_of({quantity: tails[quantity](size) for quantity, size in part.items()}))
    return Tails.joined(list(_tails(sizes, unit).values())), Peaks.of(np.concatenate(values))


def _tails(parts: Sequence[Mapping[Quantity, Array]], unit: Array) -> dict[Quantity, Tails]:
    """How rare the quantities of some parts of a history are."""
    return {
        quantity: Tails.of(np.concatenate([part[quantity] for part in parts]), quantity.least_size(unit))
        for quantity in parts[0]
    }


def values_of(rarities: Mapping[Quantity, Array]) -> Array:
    """The values of the detectors, (T, D), in windows that follow each other; rarities: of quantities, (T, K or 1)."""
    values = []
    for detector in ALARM_DETECTORS:
        rarity = rarities[detector.quantity]
        mean = rarity if detector.mean_windows == 1 else running_mean(rarity, detector.mean_windows)
        values.append(mean.max(axis=1))
    return np.stack(values, axis=1)


def clusters(values: Array, apart: int) -> Array:
    """The highest values, each at least `apart` windows from the others, decreasing."""
    left, taken = np.ones(len(values), dtype=bool), []
    for t in np.argsort(-values, kind="stable").tolist():
        if left[t]:
            taken.append(float(values[t]))
            left[max(0, t - apart) : t + apart + 1] = False
            if len(taken) == TUNING.most_clusters:
                break
    return np.array(taken)


def running_mean(e: Array, length: int = TUNING.short_windows) -> Array:
    """The means of the last `length` rows, (T, K); what lies before the first counts as 0."""
    sums = np.cumsum(np.vstack([np.zeros((1, e.shape[1])), e]), axis=0)
    first = np.maximum(np.arange(1, len(e) + 1) - length, 0)
    return np.asarray((sums[1:] - sums[first]) / length)


@dataclass(frozen=True, eq=False)
class Tails:
    """How rare residuals of K sensors are, by their size: counted sensor by sensor on windows that no fit has seen.

    e = -log of the share of the history's residuals that are at least as large, in nats. Up to the largest hundredth it
    is counted; beyond, the share falls like a power of the residual, with the exponent that the largest hundredth shows
    (Hill's estimator), so that evidence grows without bound with the deviation. Sensors are counted by themselves: a
    pump that ran four hours in a year makes its own large residuals usual, and no other sensor's.

    edge: where counting ends, (K,). shape: the exponent beyond it, (K,). table: rarities of residuals of 0, 1/POINTS,
    ... of the edge, (K, POINTS + 1). base: the rarity at the edge.
    """

    edge: Array
    shape: Array
    table: Array
    base: float

    FIELDS = (
        Field("edge", ("columns",), low=_LEAST, high=_FARTHEST),
        Field("shape", ("columns",)),
        Field("table", ("columns", POINTS + 1), low=0.0, high=_RAREST + 1e-9),
        Field("base", low=0.0, high=_RAREST),
    )

    def __post_init__(self) -> None:
        settle(self)
        if not ((self.shape >= TUNING.heaviest_tail) & (self.shape <= TUNING.lightest_tail)).all():
            raise ValueError("the shapes of its tails are those of no history")
        if (np.diff(self.table, axis=1) < 0).any() or (self.table > self.base + 1e-9).any():
            raise ValueError("the rarities of its tails must increase")

    @staticmethod
    def of(residuals: Array, floor: Array | float = 0.0) -> Tails:
        """Count residuals, (n, K); floor: the least edge, below which a deviation is too small to matter."""
        sizes = np.sort(np.abs(residuals), axis=0)
        n, K = sizes.shape
        top = min(max(n // TUNING.tail_one_in, TUNING.least_tail_windows), n)
        edge = np.maximum(sizes[n - top], _LEAST)
        with np.errstate(divide="ignore"):
            excess = np.log(np.maximum(sizes[n - top :] / edge, 1.0)).mean(axis=0)
        # so few residuals say little about a sensor's tail: that of the median sensor counts as some of them
        common = np.maximum(excess, np.median(excess)) if K > 1 else excess
        excess = (top * excess + TUNING.common_tail_windows * common) / (top + TUNING.common_tail_windows)
        shape = np.clip(1.0 / np.maximum(excess, _LEAST), TUNING.heaviest_tail, TUNING.lightest_tail)
        edge, base = np.maximum(edge, floor), -np.log(top / n)
        grid = np.linspace(0.0, 1.0, POINTS + 1)
        smaller = np.stack([np.searchsorted(sizes[:, k], grid * edge[k]) for k in range(K)])
        table = np.minimum(-np.log((n - smaller + 0.5) / (n + 1.0)), base)
        return Tails(edge, shape, np.maximum(table, 0.0), float(base))

    @cached_property
    def _steps(self) -> tuple[Array, Array]:
        """The table and its steps, flat, with one more step of 0 for residuals at the edge."""
        steps = np.diff(self.table, axis=1, append=self.table[:, -1:])
        return np.ascontiguousarray(self.table.ravel()), np.ascontiguousarray(steps.ravel())

    @cached_property
    def _starts(self) -> Index:
        return np.arange(len(self.edge)) * (POINTS + 1)

    def __call__(self, residuals: Array) -> Array:
        ratio = np.abs(residuals) / self.edge
        place = np.minimum(ratio, 1.0) * POINTS
        low = place.astype(np.intp)
        table, steps = self._steps
        at = self._starts + low
        found = table[at] + (place - low) * steps[at]
        if (ratio > 1.0).any():
            found = np.where(ratio > 1.0, self.base + self.shape * np.log(np.maximum(ratio, 1.0)), found)
        return np.asarray(found)

    def widened(self, edge: Array) -> Tails:
        """The same with edges of at least these: up to them nothing is rarer than at the edge."""
        return Tails(np.maximum(self.edge, edge), self.shape, self.table, self.base)

    def of_columns(self, chosen: Index | slice) -> Tails:
        return Tails(self.edge[chosen], self.shape[chosen], self.table[chosen], self.base)

    @staticmethod
    def joined(parts: Sequence[Tails]) -> Tails:
        """The tails of several quantities of the same windows, side by side."""
        edge, shape = (np.concatenate([getattr(part, name) for part in parts]) for name in ("edge", "shape"))
        return Tails(edge, shape, np.concatenate([part.table for part in parts]), parts[0].base)

    @staticmethod
    def none(sensors: int) -> Tails:
        """The tails of all quantities before anything was counted."""
        size = sum(quantity.width(sensors) for quantity in columns(sensors))
        return Tails(np.ones(size), np.ones(size), np.zeros((size, POINTS + 1)), 1.0)


@dataclass(frozen=True, eq=False)
class Peaks:
    """How high the detectors rose in windows that no fit had seen: what decides whether something is wrong.

    Detectors rise together, so that a share of the rate for each would waste most of it. Each is measured by its own
    highest clusters, as (value - usual) / excess; the largest of the detectors has one threshold.

    usual, excess: of each detector the level of its highest clusters, and how much beyond is e times as rare, (D,).
    heights: of the clusters of the largest, decreasing, (M,). windows: that were looked at.
    """

    usual: Array
    excess: Array
    heights: Array
    windows: float

    FIELDS = (
        Field("usual", ("detectors",), low=0.0, high=_HIGHEST),
        Field("excess", ("detectors",), low=_LEAST, high=_HIGHEST),
        Field("heights", ("M",), low=-_HIGHEST, high=_HIGHEST),
        Field("windows", low=1.0, high=_MOST_WINDOWS),
    )

    def __post_init__(self) -> None:
        settle(self)
        if len(self.usual) != len(ALARM_DETECTORS) or not self.heights.size:
            count = len(ALARM_DETECTORS)
            raise ValueError(f"its peaks are of other detectors than these {count}: calibrate it again")
        if (self.heights[:-1] < self.heights[1:]).any():
            raise ValueError("its peaks must decrease")

    @staticmethod
    def of(values: Array) -> Peaks:
        """The peaks of a history, from the values of the detectors in it, (T, D)."""
        usual, excess = np.array(
            [
                highest(clusters(column, each.apart), each.least_excess)
                for column, each in zip(values.T, ALARM_DETECTORS, strict=True)
            ]
        ).T
        apart = max(each.apart for each in ALARM_DETECTORS)
        return Peaks(usual, excess, clusters(((values - usual) / excess).max(axis=1), apart), float(len(values)))

    @staticmethod
    def none() -> Peaks:
        """Before anything was counted."""
        return Peaks(np.zeros(len(ALARM_DETECTORS)), np.ones(len(ALARM_DETECTORS)), np.zeros(1), 1.0)

    def limits(self, every: float) -> tuple[Array, Array]:
        """Thresholds for one false alarm in `every` windows, and how much beyond is e times as rare, (D,)."""
        height = level(self.heights, self.windows / every)
        _, excess = highest(self.heights, 1.0)
        return self.usual + height * self.excess, excess * self.excess


def highest(heights: Array, least: float) -> tuple[float, float]:
    """The level of the highest clusters, and how much beyond is e times as rare, at least `least`."""
    top = heights[: TUNING.extrapolated_clusters + 1]
    return float(top[-1]), max(float(np.mean(top[:-1] - top[-1])) if len(top) > 1 else 0.0, least)


def level(heights: Array, wanted: float) -> float:
    """The level that `wanted` of new heights pass, as many windows as these are from.

    Where fewer than three pass, it lies beyond what was seen, and the excesses of the highest k clusters are taken for
    exponential. Their mean a is known from k of them only: a new one is larger than u + x with probability
    (1 + x / (k a))^-k, which the level allows for.
    """
    if wanted >= TUNING.least_clusters:
        return float(heights[min(int(np.ceil(wanted)), len(heights)) - 1])
    usual, excess = highest(heights, 0.0)
    k = max(min(TUNING.extrapolated_clusters, len(heights) - 1), 1)
    return usual + excess * k * ((k / wanted) ** (1.0 / k) - 1.0)
