"""Normal operation: what each sensor should read, given all others now and all sensors in the window before.

Windows are z = (x - centre) / scale, in units of each sensor's spread. With P the precision of y_t = (z_t, z_{t-1}),
g = (P y)_now and Q = P_now,now:

- residual: r_k = g_k / sqrt(Q_kk), the distance of sensor k from what all others now and all sensors before predict,
  in units of what that leaves open; 1 / sqrt(Q_kk) of the sensor's own spread is one unit;
- distance: sqrt(g' Q^-1 g), Hotelling's T2 of what the window before does not explain;
- departure: sqrt(z' R z), Hotelling's T2 of the window, R its precision where nothing is known of the one before.

How rare they are, and from which level on they are an alarm, is counted on fifths of the history by fits to the others
(detectors.py, fitting.py). A sensor that is silent is integrated out: the others say what it should read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, frozen
from eccaht.base.codec import Field, Part, settle
from eccaht.plants.model.detectors import RESIDUAL, Peaks, Residuals, Tails, columns, columns_of
from eccaht.plants.tuning import TUNING

if TYPE_CHECKING:
    from eccaht.plants.model.local import Local

_WORST, _LARGEST = 1e13, 1e15  # condition and eigenvalue of a precision
_FOREVER = 1e9  # windows
SMALLEST_SPREAD = 1e-30  # in robust units


@dataclass(frozen=True, eq=False, repr=False)
class Normal:
    """What normal windows of K sensors do, in robust units.

    centre, scale: (K,). precision: P, (2K, 2K). low, high: the smallest and the largest window of the history, (K,).
    repeats: for how many windows each sensor repeated one value at most, (K,).
    rarity: how rare each quantity of the detectors is, side by side. peaks: how high the detectors rose.
    local: normal operation about the level just before, by which sensors are named; None before it is fitted.
    """

    centre: Array
    scale: Array
    precision: Array
    low: Array
    high: Array
    repeats: Array
    rarity: Tails
    peaks: Peaks
    local: Local | None = None

    FIELDS = (
        Field("centre", ("K",)),
        Field("scale", ("K",), low=SMALLEST_SPREAD),
        Field("precision", ("P", "P")),
        Field("low", ("K",)),
        Field("high", ("K",)),
        Field("repeats", ("K",), low=1.0),
        Part("rarity", Tails),
        Part("peaks", Peaks),
    )  # and `local`, a class above this one

    def __post_init__(self) -> None:
        settle(self)
        K = self.size
        if (self.high < self.low).any():
            raise ValueError("its ranges are damaged: they end before they begin")
        if len(self.rarity.edge) != sum(quantity.width(K) for quantity in columns(K)):
            raise ValueError(f"its tails do not fit {K} sensors")
        if len(self.precision) != 2 * K or (self.local is not None and len(self.local.middle) != K):
            raise ValueError(f"its precision or its levels do not fit {K} sensors")
        check_precision(self.precision)

    def __repr__(self) -> str:
        return f"Normal({self.size} sensors, {self.peaks.windows:.0f} windows)"

    @property
    def size(self) -> int:
        return len(self.centre)

    @cached_property
    def tails(self) -> Tails:
        """How rare residuals are, by sensor."""
        return self.rarity.of_columns(columns(self.size)[RESIDUAL])

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
    def _deviations(self) -> Array:
        """What makes residuals, whitened innovations and whitened departures of (z_t, z_t-1), (2K, 3K)."""
        gradient = self.precision[:, : self.size]
        innovation = np.linalg.solve(np.linalg.cholesky(self.now), gradient.T).T  # L^-1 g, with Q = L L'
        departure = np.vstack([np.linalg.cholesky(self.others), np.zeros((self.size, self.size))])
        return frozen(np.hstack([gradient * self.unit, innovation, departure]))  # g_k / sqrt(Q_kk)

    def scaled(self, values: Array) -> Array:
        """Windows in robust units, (..., K), as z; NaN stays."""
        return clipped((values - self.centre) / self.scale)

    def residuals(self, values: Array, before: Array) -> Residuals:
        """What windows, (T, K), show given the ones before each, (T, K); NaN where there is none."""
        return self.residuals_of(self.scaled(values), self.scaled(before))

    def residuals_of(self, z: Array, before: Array) -> Residuals:
        """The same of windows that are scaled already; residuals of silent sensors are 0."""
        return Residuals.of(completed(np.concatenate([z, before], axis=1), self.precision) @ self._deviations)

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
            rarity=self.rarity.of_columns(columns_of(K, chosen)),
            local=None if self.local is None else self.local.of(chosen),
        )

    def rounded(self, steps: Array) -> Normal:
        """The same for readings that are rounded, to steps of this length in robust units, (K,).

        Rounding adds noise of variance step^2 / 12 to each window, which relations between sensors that hold to many
        digits no longer do; residuals as large as it makes them are usual. Deviations are judged up to a limit, and so
        is what rounding adds to them.
        """
        noise = np.tile(np.minimum(steps / self.scale, TUNING.farthest_spreads) ** 2 / 12.0, 2)
        precision = symmetric(np.linalg.inv(np.linalg.inv(self.precision) + np.diag(noise)))
        own = precision.diagonal()[: self.size]
        usual = TUNING.rounding_deviations * np.sqrt((precision[: self.size] ** 2 @ noise) / own)
        local, repeats = self.local, self.repeats
        if local is not None:
            repeats = np.where(steps > TUNING.repeating_step * local.unit, np.maximum(repeats, _FOREVER), repeats)
            local = local.rounded(steps)
        least = np.zeros(len(self.rarity.edge))
        for quantity, place in columns(self.size).items():
            least[place] = usual if quantity.by_sensor else 0.0
        return replace(self, precision=precision, repeats=repeats, rarity=self.rarity.widened(least), local=local)


def clipped(z: Array) -> Array:
    """Deviations, in spreads, as far as relations are judged by them; NaN stays."""
    return np.clip(z, -TUNING.farthest_spreads, TUNING.farthest_spreads)


def before_of(values: Array, follows: NDArray[np.bool_] | None = None, first: Array | None = None) -> Array:
    """The window before each window, (T, K), NaN where it is missing; first: that before the first one."""
    before = np.vstack([values[:1] * np.nan if first is None else first[None, :], values[:-1]])
    if follows is not None and not follows.all():
        before[1:][~follows] = np.nan
    return before


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
