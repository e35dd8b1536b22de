"""Noise that a reading has beyond that of its problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eccaht.base.arrays import Array, Index


@dataclass(frozen=True)
class Excess:
    """The covariance that missing rows add to a window: common W + diag(own)."""

    common: float
    own: Array
    within: Callable[[Array], Array]  # c -> W c

    def matvec(self, c: Array) -> Array:
        added = self.own * c
        return added + self.common * self.within(c) if self.common else added

    def quad(self, c: Array) -> float:
        """The variance that missing rows add to c'x."""
        return max(float(c @ self.matvec(c)), 0.0)

    def dense(self) -> Array:
        return self.block(np.arange(self.own.size))

    def block(self, chosen: Index) -> Array:
        """The matrix of some sensors."""
        units = np.zeros((self.own.size, chosen.size))
        units[chosen, np.arange(chosen.size)] = 1.0
        columns = np.column_stack([self.matvec(unit) for unit in units.T])[chosen]
        return np.asarray(0.5 * (columns + columns.T))
