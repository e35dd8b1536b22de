"""How rare residuals are: counted sensor by sensor on windows that the fit has not seen.

e = -log of the share of the history's residuals that are at least as large, in nats. Up to the largest hundredth it is
counted; beyond, the share falls like a power of the residual, with the exponent that the largest hundredth shows
(Hill's estimator), so that evidence grows without bound with the deviation. Sensors are counted by themselves: a pump
that ran four hours in a year makes its own large residuals usual, and no other sensor's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eccaht.base.arrays import Array, Index, frozen

POINTS = 32  # of the counted part, evenly spaced from 0 to the edge
_TOP = 100  # one residual in so many lies beyond the edge,
_FEWEST_TOP = 5  # and at least so many
_COMMON = 10.0
_SHAPES = (1.0, 12.0)  # of the tail: between that of a Cauchy and one that is hardly heavier than a normal one
_LEAST, _FARTHEST = 1e-9, 1e12  # of an edge
_RAREST = 100.0  # nats at the edge


@dataclass(frozen=True, eq=False)
class Tails:
    """The rarity of residuals of K sensors by their size.

    edge: where counting ends, (K,). shape: the exponent beyond it, (K,). table: rarities of residuals of 0, 1/POINTS,
    ... of the edge, (K, POINTS + 1). base: the rarity at the edge.
    """

    edge: Array
    shape: Array
    table: Array
    base: float

    def __post_init__(self) -> None:
        size = np.size(self.edge)
        shapes = {"edge": (size,), "shape": (size,), "table": (size, POINTS + 1)}
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"the {name} of its tails must hold finite values of shape {shape}")
            object.__setattr__(self, name, frozen(array))
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
