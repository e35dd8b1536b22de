"""What several constraints together leave of the weights of K streams, in plain numbers for the solvers.

And what the solvers answer, and checks of what constraints are made from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, Mask, as_floats, as_number, check_finite, check_size, frozen, l1_norm

_ROUNDING = 1e-9
_NOTHING = 1e-12  # of the largest weight: below it a stream is not used


class Solution(NamedTuple):
    """Allowed weights, whether a limit binds, the KKT residual, and the most that any weights could reach."""

    weights: Array
    active: bool
    residual: float
    ceiling: float  # of (c'D)^2 / noise variance


@dataclass
class Region:
    """Weights with low <= c <= high, |c|_1 <= norm, few streams, some levels or some rows; each limit may be absent."""

    size: int
    low: Array
    high: Array
    off: Mask
    norm: float = math.inf
    per_contrast: float = math.inf  # |c|_1 <= per_contrast * c'D, for continuous weights
    noise: float | None = None  # of the instrument, if a part says so
    most: int = 0  # streams at once
    groups: list[Index] = field(default_factory=list)  # a label for each stream, -1 for none
    levels: Array | None = None
    rows: Array | None = None

    @classmethod
    def whole(cls, size: int) -> Region:
        unlimited = np.full(size, np.inf)
        return cls(size, -unlimited, unlimited, np.zeros(size, dtype=bool), most=size)

    def __post_init__(self) -> None:
        self.low, self.high = np.array(self.low, dtype=float), np.array(self.high, dtype=float)

    @property
    def usable(self) -> Mask:
        return ~self.off & ((self.low < 0.0) | (self.high > 0.0))

    @property
    def signs_free(self) -> bool:
        """May every usable stream have either sign?"""
        usable = self.usable
        return bool((self.low[usable] < 0.0).all() and (self.high[usable] > 0.0).all())

    @property
    def sparse(self) -> bool:
        """Does it matter which streams are used?"""
        return self.most < int(self.usable.sum()) or bool(self.groups)

    def relaxed(self) -> Region:
        """A convex region around it."""
        low, high = self.low, self.high
        if self.levels is not None:
            allowed = self.allowed_levels()
            low = np.where(allowed, self.levels, np.inf).min(axis=1).clip(None, 0.0)
            high = np.where(allowed, self.levels, -np.inf).max(axis=1).clip(0.0, None)
        off = self.off | ((low == 0.0) & (high == 0.0))
        return Region(self.size, low, high, off, self.norm, self.per_contrast, self.noise, self.size)

    def allowed_levels(self) -> Mask:
        """Which level each stream may have, (K, number of levels)."""
        assert self.levels is not None
        levels, slack = self.levels, _ROUNDING * float(np.abs(self.levels).max())
        within = (levels >= self.low[:, None] - slack) & (levels <= self.high[:, None] + slack)
        return np.where(self.off[:, None], levels == 0.0, within)

    def few_enough(self, used: Index) -> bool:
        if used.size > self.most or self.off[used].any():
            return False
        for labels in self.groups:
            own = labels[used]
            own = own[own >= 0]
            if np.unique(own).size < own.size:
                return False
        return True

    def allows(self, c: Array) -> bool:
        top = float(np.abs(c).max())
        if not math.isfinite(top):
            return False
        if self.rows is not None:
            near = np.abs(self.rows - c).max(axis=1) <= _ROUNDING * np.abs(self.rows).max(axis=1)
            return bool(near.any())
        used = np.flatnonzero(np.abs(c) > _NOTHING * top)
        slack = _ROUNDING * top
        inside = bool((c >= self.low - slack).all() and (c <= self.high + slack).all())
        if not (inside and l1_norm(c) <= self.norm * (1.0 + _ROUNDING) and self.few_enough(used)):
            return False
        if self.levels is None:
            return True
        level = np.abs(c[:, None] - self.levels).min(axis=1) <= _ROUNDING * float(np.abs(self.levels).max())
        return bool((level | self.off).all())

    def scaled(self, direction: Array) -> Array:
        size = l1_norm(direction)
        listed = self.rows if self.rows is not None else self.levels
        if listed is not None:
            k = int(np.abs(direction).argmax())
            sizes = listed[:, k] if listed.ndim == 2 else listed
            multiples = np.unique(sizes[sizes * direction[k] > 0.0] / direction[k])[::-1]
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(direction > 0.0, self.high / direction, self.low / direction)
            largest = min(self.norm / size, float(room[direction != 0.0].min()))
            multiples = np.array([largest if math.isfinite(largest) else 1.0 / size])
        for multiple in multiples.tolist():
            if multiple > 0.0 and self.allows(direction * multiple):
                return direction * multiple
        raise ValueError("no multiple of this direction is allowed")

    def impossible(self) -> str | None:
        """Why nothing is allowed, if so."""
        if not self.usable.any():
            return "no stream may have weight"
        if self.rows is not None:
            return None if len(self.rows) else "none of the listed measurements is left"
        if self.levels is not None:
            return self._impossible_levels(self.allowed_levels())
        ends = np.concatenate([self.low[self.usable], self.high[self.usable]])
        if self.noise and not (math.isfinite(self.norm) or np.isfinite(ends).all()):
            return "readout noise needs weights of limited size: add Budget, Readout or Box"
        return None

    def _impossible_levels(self, allowed: Mask) -> str | None:
        assert self.levels is not None
        on = ~self.off
        if not allowed[on].any(axis=1).all():
            return f"no level is left for stream {int(np.flatnonzero(on & ~allowed.any(axis=1))[0])}"
        sizes = np.where(allowed, np.abs(self.levels), np.inf)
        forced = np.flatnonzero(on & (sizes.min(axis=1) > 0.0))  # streams that may not be 0
        if not self.few_enough(forced):
            return f"{forced.size} streams cannot be without weight, which are too many"
        nonzero = np.where(sizes > 0.0, sizes, np.inf).min(axis=1)
        if not np.isfinite(nonzero).any():
            return "every weight would be 0"
        least = float(sizes[forced].min(axis=1).sum()) if forced.size else float(nonzero.min())
        if least > self.norm * (1.0 + _ROUNDING):
            return f"|c|_1 would be at least {least:g}"
        return None


def as_deviation(noise: float, what: str) -> float:
    deviation = as_number(noise, what)
    if deviation < 0.0:
        raise ValueError(f"{what} is a standard deviation and must not be negative, not {noise!r}")
    if deviation:
        check_size(deviation, what)
    return deviation


def number_list(values: ArrayLike, what: str) -> Array:
    array = as_floats(values, what)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{what} must be a list of numbers")
    check_finite(array, what)
    return frozen(array.copy())


def check_length(values: Any, size: int, who: object) -> None:
    if len(values) != size:
        raise ValueError(f"{type(who).__name__} is for {len(values)} streams, but there are {size}")
