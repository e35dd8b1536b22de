"""Normal operation: what each sensor should read, given all others now and all sensors in the window before.

Windows are z = (x - centre) / scale, in units of each sensor's spread. With P the precision of y_t = (z_t, z_{t-1}),
g = (P y)_now and Q = P_now,now:

- residual: r_k = g_k / sqrt(Q_kk), the distance of sensor k from what all others now and all sensors before predict,
  in units of what that leaves open; 1 / sqrt(Q_kk) of the sensor's own spread is one unit;
- drift: the mean of r_k over LONG windows, times sqrt(LONG), which sees small deviations that last;
- distance: sqrt(g' Q^-1 g), Hotelling's T2 of what the window before does not explain.

How rare each is (`Tails`), and from which level on it is an alarm (`Peaks`), is counted on halves of the history by
fits to the other half (fitting.py). A sensor that is silent is integrated out: the others say what it should read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, frozen

if TYPE_CHECKING:
    from eccaht.plants.model.local import Local

FARTHEST = 30.0  # spreads: what is farther away says no more
SHORT, LONG = 4, 12  # windows
DETECTORS = ("rarest", "rarest of 4", "drift", "distance", "distance of 4")
SHARES = len(DETECTORS) + 2  # standstill and range are detectors too
POINTS = 32  # of the counted part of tails, evenly spaced from 0 to the edge
_WORST, _LARGEST = 1e13, 1e15  # condition and eigenvalue of a precision
_ROUNDED = 3.0  # deviations of rounding that are usual
_REPEATS, _FOREVER = 0.1, 1e9  # a step, in usual moves, from which on rounded readings repeat without being stuck

# of tails
_TOP = 100  # one residual in so many lies beyond the edge,
_FEWEST_TOP = 5  # and at least so many
_COMMON = 10.0
_SHAPES = (1.0, 12.0)  # between that of a Cauchy and one that is hardly heavier than a normal one
_LEAST, _FARTHEST = 1e-9, 1e12  # of an edge
_RAREST = 100.0  # nats at the edge

# of peaks
_LEAST_EXCESS = np.array([1.0, 1.0 / SHORT, 1.0, 1.0, 1.0 / SHORT])  # of a rarity, which is -log of a share
_HIGHEST_CLUSTERS = 12  # that say how fast the highest values fall
_HIGHEST, _MOST_WINDOWS = 1e6, 1e12
_FEWEST_WANTED = 3.0  # clusters: a threshold that fewer pass is extended


class Residuals(NamedTuple):
    """What windows show: residuals and what they are made of, (T, K) each, and distances, (T,)."""

    z: Array
    r: Array
    distance: Array


@dataclass(frozen=True, eq=False, repr=False)
class Normal:
    """What normal windows of K sensors do, in robust units.

    centre, scale: (K,). precision: P, (2K, 2K). low, high: the smallest and the largest window of the history, (K,).
    repeats: for how many windows each sensor repeated one value at most, (K,).
    tails, drifts, distances: how rare residuals, their long means and distances are. peaks: how high detectors rose.
    local: normal operation about the level just before, by which sensors are named; None before it is fitted.
    """

    centre: Array
    scale: Array
    precision: Array
    low: Array
    high: Array
    repeats: Array
    tails: Tails
    drifts: Tails
    distances: Tails
    peaks: Peaks
    local: Local | None = None

    def __post_init__(self) -> None:
        K = np.size(self.centre)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("centre", "scale", "low", "high", "repeats"), (K,))
        shapes["precision"] = (2 * K, 2 * K)
        freeze(self, shapes)
        if (self.scale <= 0).any() or (self.high < self.low).any() or (self.repeats < 1).any():
            raise ValueError("its spreads or ranges are damaged")
        if [len(part.edge) for part in (self.tails, self.drifts, self.distances)] != [K, K, 1]:
            raise ValueError(f"its tails do not fit {K} sensors")
        if self.local is not None and len(self.local.middle) != K:
            raise ValueError(f"its levels do not fit {K} sensors")
        check_precision(self.precision)

    def __repr__(self) -> str:
        return f"Normal({self.size} sensors, {self.peaks.windows:.0f} windows)"

    @property
    def size(self) -> int:
        return len(self.centre)

    @cached_property
    def now(self) -> Array:
        """Q, the precision of a window given the one before, (K, K)."""
        return frozen(np.ascontiguousarray(self.precision[: self.size, : self.size]))

    @cached_property
    def others(self) -> Array:
        """The precision of a window alone, the one before being integrated out, (K, K)."""
        K = self.size
        before, cross = self.precision[K:, K:], self.precision[:K, K:]
        return frozen(symmetric(self.now - cross @ np.linalg.solve(before, cross.T)))

    @cached_property
    def unit(self) -> Array:
        """One unit of a residual in spreads of its sensor, (K,)."""
        return frozen(1.0 / np.sqrt(self.now.diagonal()))

    @cached_property
    def _products(self) -> tuple[Array, Array]:
        """P's columns of now, (2K, K), and Q^-1, (K, K)."""
        columns = np.ascontiguousarray(self.precision[:, : self.size])
        return columns, symmetric(np.linalg.inv(self.now))

    def scaled(self, values: Array) -> Array:
        """Windows in robust units, (..., K), as z; NaN stays."""
        return np.clip((values - self.centre) / self.scale, -FARTHEST, FARTHEST)

    def residuals(self, values: Array, before: Array) -> Residuals:
        """Residuals and distances of windows, (T, K), given the ones before each, (T, K); NaN where there is none."""
        return self.residuals_of(self.scaled(values), self.scaled(before))

    def residuals_of(self, z: Array, before: Array) -> Residuals:
        """The same of windows that are scaled already; residuals of silent sensors are 0."""
        y = np.concatenate([z, before], axis=1)
        y = completed(y, self.precision)
        columns, inverse = self._products
        g = y @ columns  # (P y)_now
        distance = np.sqrt(np.maximum(np.einsum("tk,tk->t", g @ inverse, g), 0.0))
        return Residuals(y[:, : self.size], g * self.unit, distance)  # g_k / sqrt(Q_kk)

    def of(self, chosen: Index) -> Normal:
        """Normal operation of some of the sensors: the others are integrated out, the detectors stay as counted."""
        K = self.size
        both = np.concatenate([chosen, chosen + K])
        covariance = np.linalg.inv(self.precision)[np.ix_(both, both)]
        parts = {name: getattr(self, name)[chosen] for name in ("centre", "scale", "low", "high", "repeats")}
        return replace(
            self,
            **parts,
            precision=symmetric(np.linalg.inv(covariance)),
            tails=self.tails.of_sensors(chosen),
            drifts=self.drifts.of_sensors(chosen),
            local=None if self.local is None else self.local.of(chosen),
        )

    def rounded(self, steps: Array) -> Normal:
        """The same for readings that are rounded, to steps of this length in robust units, (K,).

        Rounding adds noise of variance step^2 / 12 to each window, which relations between sensors that hold to many
        digits no longer do; residuals as large as it makes them are usual.
        """
        noise = np.tile((steps / self.scale) ** 2 / 12.0, 2)
        precision = symmetric(np.linalg.inv(np.linalg.inv(self.precision) + np.diag(noise)))
        own = precision.diagonal()[: self.size]
        usual = _ROUNDED * np.sqrt((precision[: self.size] ** 2 @ noise) / own)
        local, repeats = self.local, self.repeats
        if local is not None:
            repeats = np.where(steps > _REPEATS * local.unit, np.maximum(repeats, _FOREVER), repeats)
            local = local.rounded(steps)
        tails, drifts = self.tails.widened(usual), self.drifts.widened(usual)
        return replace(self, precision=precision, repeats=repeats, tails=tails, drifts=drifts, local=local)

    # -- files -----------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                found[field.name] = value
            elif value is not None:
                parts = {part.name: np.asarray(getattr(value, part.name), dtype=np.float64) for part in fields(value)}
                found |= {f"{field.name}.{name}": part for name, part in parts.items()}
        return found


def before_of(values: Array, follows: NDArray[np.bool_] | None = None, first: Array | None = None) -> Array:
    """The window before each window, (T, K), NaN where it is missing; first: that before the first one."""
    before = np.vstack([values[:1] * np.nan if first is None else first[None, :], values[:-1]])
    if follows is not None and not follows.all():
        before[1:][~follows] = np.nan
    return before


# -- how rare residuals are, and which levels are alarms ----------------------------------------------------


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

    def __post_init__(self) -> None:
        size = np.size(self.edge)
        freeze(self, {"edge": (size,), "shape": (size,), "table": (size, POINTS + 1)}, " of its tails")
        if not ((self.edge >= _LEAST) & (self.edge <= _FARTHEST)).all():
            raise ValueError("the edges of its tails must be positive, and no residual is so large")
        if not ((self.shape >= _SHAPES[0]) & (self.shape <= _SHAPES[1])).all():
            raise ValueError(f"the shapes of its tails must lie between {_SHAPES[0]:g} and {_SHAPES[1]:g}")
        if np.ndim(self.base) or not 0.0 <= self.base <= _RAREST:
            raise ValueError("the rarity at the edge of its tails must not be negative")
        if (np.diff(self.table, axis=1) < 0).any() or (self.table < 0).any() or (self.table > self.base + 1e-9).any():
            raise ValueError("the rarities of its tails must increase")

    @staticmethod
    def of(residuals: Array, floor: Array | float = 0.0) -> Tails:
        """Count residuals, (n, K); floor: the least edge, below which a deviation is too small to matter."""
        sizes = np.sort(np.abs(residuals), axis=0)
        n, K = sizes.shape
        top = min(max(n // _TOP, _FEWEST_TOP), n)
        edge = np.maximum(sizes[n - top], _LEAST)
        with np.errstate(divide="ignore"):
            excess = np.log(np.maximum(sizes[n - top :] / edge, 1.0)).mean(axis=0)
        # so few residuals say little about a sensor's tail: that of the median sensor counts as _COMMON of them
        common = np.maximum(excess, np.median(excess)) if K > 1 else excess
        excess = (top * excess + _COMMON * common) / (top + _COMMON)
        shape = np.clip(1.0 / np.maximum(excess, _LEAST), *_SHAPES)
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

    def of_sensors(self, chosen: Index) -> Tails:
        return Tails(self.edge[chosen], self.shape[chosen], self.table[chosen], self.base)


@dataclass(frozen=True, eq=False)
class Peaks:
    """The highest value of each cluster in the history, by detector: what decides whether something is wrong.

    - rarest: the rarest residual of a sensor, in this window and in the mean over SHORT windows;
    - drift: the rarest mean of a sensor's residuals over LONG windows;
    - distance: how rare the distance of the whole window is, in this window and in the mean over SHORT windows.

    The threshold of a detector is the level that clusters of its values pass at an equal share of the false-alarm rate
    in windows that the fit has not seen; what no window of the history reached is extended exponentially. Standstill
    and range take the other two shares: they are counted on the history by themselves.

    heights: (5, M), decreasing. windows: that were looked at.
    """

    heights: Array
    windows: float

    def __post_init__(self) -> None:
        heights = np.array(self.heights, dtype=np.float64)
        if heights.ndim != 2 or len(heights) != len(DETECTORS) or not heights.size:
            raise ValueError(f"its peaks must be those of {len(DETECTORS)} detectors")
        if not ((heights >= 0.0) & (heights <= _HIGHEST)).all() or (heights[:, :-1] < heights[:, 1:]).any():
            raise ValueError("its peaks must decrease")
        if np.ndim(self.windows) or not 1 <= self.windows <= _MOST_WINDOWS:
            raise ValueError("its peaks are of an impossible number of windows")
        object.__setattr__(self, "heights", frozen(heights))

    @staticmethod
    def none() -> Peaks:
        """Before anything was counted."""
        return Peaks(np.zeros((len(DETECTORS), 1)), 1.0)

    def limits(self, every: float) -> tuple[Array, Array]:
        """Thresholds for one false alarm in `every` windows, and how much beyond is e times as rare, (5,)."""
        wanted = self.windows / (every * SHARES)
        found = [_limit(heights, wanted, least) for heights, least in zip(self.heights, _LEAST_EXCESS, strict=True)]
        limits, excesses = np.array(found).T
        return limits, excesses

    def seen(self, every: float) -> bool:
        """Whether the history is long enough to have shown values as rare as the thresholds."""
        return self.windows >= every * SHARES


def _limit(heights: Array, wanted: float, least: float) -> tuple[float, float]:
    top = heights[: _HIGHEST_CLUSTERS + 1]
    excess = max(float(np.mean(top[:-1] - top[-1])) if len(top) > 1 else 0.0, least)
    if wanted >= _FEWEST_WANTED:
        return float(heights[min(int(np.ceil(wanted)), len(heights)) - 1]), excess
    return float(top[-1] + excess * np.log(max(len(top) - 1, 1) / wanted)), excess


def values_of(e: Array, short: Array, drift: Array, distance: Array, distance_short: Array) -> Array:
    """The values of the detectors, (T, 5), from rarities by sensor, (T, K), and of distances, (T,)."""
    return np.stack([e.max(axis=-1), short.max(axis=-1), drift.max(axis=-1), distance, distance_short], axis=-1)


def running_mean(e: Array, length: int = SHORT) -> Array:
    """The means of the last `length` rows, (T, K); what lies before the first counts as 0."""
    sums = np.cumsum(np.vstack([np.zeros((1, e.shape[1])), e]), axis=0)
    first = np.maximum(np.arange(1, len(e) + 1) - length, 0)
    return np.asarray((sums[1:] - sums[first]) / length)


# -- arrays and precisions --------------------------------------------------------------------------------


def freeze(owner: Any, shapes: Mapping[str, tuple[int, ...]], of: str = "") -> None:
    """Make these fields of a value read-only arrays; those of another shape, or not finite, are refused."""
    for name, shape in shapes.items():
        array = np.array(getattr(owner, name), dtype=np.float64)
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"{name}{of} must hold finite values of shape {shape}")
        object.__setattr__(owner, name, frozen(array))


def completed(y: Array, precision: Array) -> Array:
    """Windows whose missing entries, NaN, are what the others predict, so that they bear no evidence."""
    missing = np.isnan(y)
    if not missing.any():
        return y
    filled = np.where(missing, 0.0, y)
    for rows, gone in patterns(missing):
        pull = filled[rows] @ precision[:, gone]
        filled[np.ix_(rows, gone)] = -np.linalg.solve(precision[np.ix_(gone, gone)], pull.T).T
    return filled


def patterns(missing: NDArray[np.bool_]) -> Iterator[tuple[Index, Index]]:
    """The windows in which the same entries are missing, and these entries; windows that are whole are left out."""
    some = np.flatnonzero(missing.any(axis=1))
    if not some.size:
        return
    found, which = np.unique(missing[some], axis=0, return_inverse=True)
    for number, pattern in enumerate(found):
        yield some[which.ravel() == number], np.flatnonzero(pattern)


def check_precision(precision: Array) -> None:
    """Refuse a matrix that is no precision, or one that no fit could have made: every fit adds a ridge."""
    values = np.linalg.eigvalsh(precision)
    if not values[0] > 0.0 or values[-1] > min(_WORST * float(values[0]), _LARGEST):
        raise ValueError("its precisions are not positive definite")


def symmetric(matrix: NDArray[np.floating[Any]]) -> Array:
    """The symmetric part, without what rounding leaves."""
    return np.asarray(0.5 * (matrix + matrix.T))
