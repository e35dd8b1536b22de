"""Independent streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, as_floats, check_finite, check_rows, frozen, support_of
from eccaht.streams.covariance.base import Covariance


class Diagonal(Covariance):
    """diag(variances).

    >>> Diagonal([1.0, 4.0]).quad(np.array([1.0, 1.0]))
    5.0
    """

    exact_inverse = True

    def __init__(self, variances: ArrayLike) -> None:
        v = as_floats(variances, "variances")
        if v.ndim != 1 or v.size == 0:
            raise ValueError(f"variances must be a vector, not of shape {v.shape}")
        check_finite(v, "variances")
        if v.min() <= 0:
            raise ValueError(f"variance {v.min():.3g} of stream {v.argmin()} must be positive")
        self.size = v.size
        self._variances = frozen(v.copy())

    def diagonal(self) -> Array:
        return self._variances

    def column(self, k: int) -> Array:
        column = np.zeros(self.size)
        column[k] = self._variances[k]
        return column

    def matvec(self, c: Array) -> Array:
        check_rows(c, self.size)
        return (self._variances * c.T).T

    def inverse_diagonal(self) -> Array:
        return 1.0 / self._variances

    def solve(self, b: Array) -> Array:
        check_rows(b, self.size)
        return (b.T / self._variances).T

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """As sparse as the right-hand side."""
        x = np.zeros(self.size)
        x[indices] = values / self._variances[indices]
        return x

    def quad(self, c: Array) -> float:
        """Sum of squares weighted by the variances, over the nonzero part of c."""
        check_rows(c, self.size)
        support = support_of(c)
        return float(c[support] ** 2 @ self._variances[support])

    def eigenvalues(self) -> Array:
        return np.sort(self._variances)

    def color(self, z: Array) -> Array:
        """Scale by the standard deviations."""
        check_rows(z, self.size)
        return (np.sqrt(self._variances) * z.T).T

    def plus_identity(self, a: float) -> Diagonal:
        return Diagonal(self._variances + a)

    def parameters(self) -> dict[str, Any]:
        return {"variances": self._variances}
