"""Normal operation: what each sensor should read, given all others now and all sensors in the window before.

Windows are z = (x - centre) / scale, in units of each sensor's spread. With P the precision of y_t = (z_t, z_{t-1}),
g = (P y)_now and Q = P_now,now:

- residual: r_k = g_k / sqrt(Q_kk), the distance of sensor k from what all others now and all sensors before predict,
  in units of what that leaves open; 1 / sqrt(Q_kk) of the sensor's own spread is one unit;
- drift: the mean of r_k over LONG windows, times sqrt(LONG), which sees small deviations that last;
- distance: sqrt(g' Q^-1 g), Hotelling's T2 of what the window before does not explain.

How rare each is, is counted on halves of the history by fits to the other half (`tails`). A sensor that is silent is
integrated out: the others say what it should read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.archive import check_keys
from eccaht.base.arrays import Array, Index, frozen
from eccaht.plants.model.detectors import LONG, Peaks, peaks_of, running_mean
from eccaht.plants.model.local import Local, fit_local
from eccaht.plants.model.shrinkage import check_precision, completed, shrunk_covariance, symmetric
from eccaht.plants.model.tails import POINTS, Tails

FEWEST_NORMAL = 40  # windows of a history that say what is rare at all
FARTHEST = 30.0  # spreads: what is farther away says no more
SMALL, SMALL_DRIFT = 0.05, 0.2  # spreads: a deviation given the others that is too small to matter, and one that lasts
_RIDGE = 1e-3  # of the mean variance
_MOSTLY_STILL = 0.2  # a spread that is a smaller share of the standard deviation is that of a sensor that seldom moves
_ROUNDED = 3.0  # deviations of rounding that are usual
_REPEATS, _FOREVER = 0.1, 1e9  # a step, in usual moves, from which on rounded readings repeat without being stuck
_LEAST, _UNKNOWN = 1e-12, 1e30


class Residuals(NamedTuple):
    """What windows show: residuals and what they are made of, (T, K) each, and distances, (T,)."""

    z: Array
    r: Array
    distance: Array


@dataclass(frozen=True, eq=False)
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
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name} must hold finite values of shape {shape}")
            object.__setattr__(self, name, frozen(array))
        if (self.scale <= 0).any() or (self.high < self.low).any() or (self.repeats < 1).any():
            raise ValueError("its spreads or ranges are damaged")
        if [len(part.edge) for part in (self.tails, self.drifts, self.distances)] != [K, K, 1]:
            raise ValueError(f"its tails do not fit {K} sensors")
        if self.local is not None and len(self.local.middle) != K:
            raise ValueError(f"its levels do not fit {K} sensors")
        check_precision(self.precision)

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
        g = y @ columns
        distance = np.sqrt(np.maximum(np.einsum("tk,tk->t", g @ inverse, g), 0.0))
        return Residuals(y[:, : self.size], g * self.unit, distance)

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

    @staticmethod
    def build(arrays: Mapping[str, Array]) -> Normal:
        """From what `arrays` gave; whatever is not normal operation is refused."""
        plain: dict[str, Any] = {name: array for name, array in arrays.items() if "." not in name}
        parts: dict[str, dict[str, Any]] = {}
        for name, array in arrays.items():
            if "." in name:
                part, _, rest = name.partition(".")
                parts.setdefault(part, {})[rest] = float(array) if array.ndim == 0 else array
        kinds: dict[str, Any] = dict.fromkeys(("tails", "drifts", "distances"), Tails) | {
            "peaks": Peaks,
            "local": Local,
        }
        check_keys(parts, set(kinds), "normal operation")
        for name, kind in kinds.items():
            check_keys(parts[name], {field.name for field in fields(kind)}, f"normal operation ({name})")
        check_keys(plain, {field.name for field in fields(Normal)} - set(kinds), "normal operation")
        return Normal(**plain, **{name: kind(**parts[name]) for name, kind in kinds.items()})


# -- fitting ---------------------------------------------------------------------------------------------


def fit_normal(values: Array, follows: NDArray[np.bool_] | None = None) -> Normal:
    """Normal operation of a history, (T, K), in robust units and without gaps.

    follows: (T - 1,), whether each window directly follows the one before it; all do if not given. Each half of the
    history is judged by a fit to the other half, and what is rare is counted there.
    """
    T = len(values)
    follows = np.ones(T - 1, dtype=bool) if follows is None else follows
    halves = (slice(0, T // 2), slice(T // 2, T))
    shown = []
    for held in halves:
        fitted = _fitted(values, follows, held)
        centre, scale, precision = fitted
        judge = _bare(centre, scale, precision, values)
        shown.append(judge.residuals(values[held], before_of(values[held], follows[held.start : held.stop - 1])))
    whole = _bare(*_fitted(values, follows, None), values)
    r = [part.r for part in shown]
    drifts = [np.sqrt(LONG) * running_mean(part, LONG) for part in r]
    tails = Tails.of(np.concatenate(r), SMALL / whole.unit)
    drift_tails = Tails.of(np.concatenate(drifts), SMALL_DRIFT / whole.unit * np.sqrt(LONG))
    distance = np.concatenate([part.distance for part in shown])[:, None]
    distances = Tails.of(distance)
    peaks = peaks_of(tails(np.concatenate(r)), drift_tails(np.concatenate(drifts)), distances(distance)[:, 0])
    return replace(whole, tails=tails, drifts=drift_tails, distances=distances, peaks=peaks, local=fit_local(values))


def before_of(values: Array, follows: NDArray[np.bool_] | None = None, first: Array | None = None) -> Array:
    """The window before each window, (T, K), NaN where it is missing; first: that before the first one."""
    before = np.vstack([values[:1] * np.nan if first is None else first[None, :], values[:-1]])
    if follows is not None and not follows.all():
        before[1:][~follows] = np.nan
    return before


def longest_repeats(values: Array) -> Array:
    """For how many windows each sensor repeated one value at most, (K,)."""
    T, K = values.shape
    longest = np.ones(K)
    for k in range(K):
        changes = np.flatnonzero(np.diff(values[:, k]) != 0)  # NaN differs from everything
        longest[k] = np.diff(changes, prepend=-1, append=T - 1).max()
    return longest


def _fitted(values: Array, follows: NDArray[np.bool_], held: slice | None) -> tuple[Array, Array, Array]:
    """Centre, scale and precision of the windows that are not held back."""
    kept = np.ones(len(values), dtype=bool)
    if held is not None:
        kept[held] = False
    learnt = values[kept]
    quartiles = np.percentile(learnt, [25, 50, 75], axis=0)
    spread, deviation = (quartiles[2] - quartiles[0]) / 1.349, learnt.std(axis=0)
    scale = np.where(spread > _MOSTLY_STILL * deviation, spread, deviation)
    scale = np.where(scale > _LEAST, scale, _UNKNOWN)  # still in this half, which cannot say what a move is worth
    z = np.clip((values - quartiles[1]) / scale, -FARTHEST, FARTHEST)
    mean = z[kept].mean(axis=0)
    pairs = follows & kept[1:] & kept[:-1]
    y = np.hstack([z[1:][pairs], z[:-1][pairs]]) - np.tile(mean, 2)
    if len(y) < 2:
        raise ValueError("the history has no two windows that follow each other: give one without so many gaps")
    covariance = shrunk_covariance(y)
    ridge = max(_RIDGE * float(np.trace(covariance)) / len(covariance), _LEAST)
    precision = symmetric(np.linalg.inv(covariance + ridge * np.eye(len(covariance))))
    return quartiles[1] + mean * scale, scale, precision


def _bare(centre: Array, scale: Array, precision: Array, values: Array) -> Normal:
    """Normal operation before anything was counted."""
    K = len(centre)
    none = Tails(np.ones(K), np.ones(K), np.zeros((K, POINTS + 1)), 1.0)
    one = Tails(np.ones(1), np.ones(1), np.zeros((1, POINTS + 1)), 1.0)
    low, high, repeats = values.min(axis=0), values.max(axis=0), longest_repeats(values)
    return Normal(centre, scale, precision, low, high, repeats, none, none, one, Peaks.none())
