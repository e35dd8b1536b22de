"""A few common causes plus independent noise: factor models, equicorrelation, spectral mixtures.

With R = sqrt(diagonal) and an orthonormal basis Q of the scaled factors, S = R (I + Q diag(gain) Q') R. Products,
solutions (Woodbury) and square roots of S only change the function applied to `gain`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, as_floats, check_finite, frozen
from eccaht.base.scales import check_entries
from eccaht.streams.covariance.base import Covariance, not_positive_definite


class LowRankPlusDiagonal(Covariance):
    """F diag(weights) F' + diag(diagonal), F of shape (K, r); weights default to 1 and may be negative.

    >>> LowRankPlusDiagonal(np.ones((3, 1)), [1.0, 1.0, 1.0]).solve(np.ones(3))
    array([0.25, 0.25, 0.25])
    """

    def __init__(self, factors: ArrayLike, diagonal: ArrayLike, weights: ArrayLike | None = None) -> None:
        F, d = as_floats(factors, "factors"), as_floats(diagonal, "diagonal")
        F = F[:, None] if F.ndim == 1 else F
        if F.ndim != 2 or F.size == 0:
            raise ValueError(f"factors must have shape (streams, factors), not {F.shape}")
        w = np.ones(F.shape[1]) if weights is None else as_floats(weights, "weights")
        if d.ndim == 0:
            d = np.full(len(F), float(d))
        if d.shape != (len(F),) or w.shape != (F.shape[1],):
            raise ValueError(
                f"factors of shape {F.shape} need {len(F)} diagonal values and {F.shape[1]} weights, "
                f"not {d.shape} and {w.shape}"
            )
        for array, what in ((F, "factors"), (d, "diagonal"), (w, "weights")):
            check_finite(array, what)
            check_entries(array, what)
        if d.min() <= 0:
            raise ValueError(f"diagonal value {d.min():.3g} of stream {d.argmin()} must be positive")
        self.size = len(F)
        self._factors, self._diagonal, self._weights = (frozen(a.copy()) for a in (F, d, w))
        self._root = np.sqrt(d)
        Q, T = np.linalg.qr(F / self._root[:, None])
        with np.errstate(over="ignore", invalid="ignore"):
            inner = (T * w) @ T.T
        if not np.isfinite(inner).all():
            raise ValueError("the factors are too large beside the diagonal to compute with: use other units")
        self._gain, turn = np.linalg.eigh(inner)
        self._basis = np.ascontiguousarray(Q @ turn)
        if 1.0 + self._gain[0] <= self.size * np.finfo(float).eps * (1.0 + self._gain[-1]):
            smallest = float(self.eigenvalues()[0]) if self._uniform else (1.0 + self._gain[0]) * d.min()
            raise not_positive_definite(smallest, max(-smallest, 0.0) * 1.01 + 1e-9 * d.max())

    def _update(self, x: Array, gain: Array) -> Array:
        """(I + Q diag(gain) Q') x."""
        return x + self._basis @ (gain * (x.T @ self._basis)).T

    def diagonal(self) -> Array:
        return self._diagonal + self._factors**2 @ self._weights

    def column(self, k: int) -> Array:
        column = self._factors @ (self._weights * self._factors[k])
        column[k] += self._diagonal[k]
        return column

    def matvec(self, c: Array) -> Array:
        """S c in O(K r)."""
        return (self._root * self._update((self._root * c.T).T, self._gain).T).T

    def solve(self, b: Array) -> Array:
        """Woodbury's identity in O(K r)."""
        return (self._update((b.T / self._root).T, -self._gain / (1.0 + self._gain)).T / self._root).T

    def inverse_diagonal(self) -> Array:
        """Woodbury's identity, row by row."""
        return np.asarray((1.0 - self._basis**2 @ (self._gain / (1.0 + self._gain))) / self._diagonal)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """Woodbury's identity, reading only the touched rows of the factors."""
        scaled = values / self._root[indices]
        x = self._basis @ (-self._gain / (1.0 + self._gain) * (scaled @ self._basis[indices]))
        x[indices] += scaled
        return x / self._root

    def quad(self, c: Array) -> float:
        """A sum of squares and r further terms."""
        u = self._root * c
        along = u @ self._basis
        return float(u @ u + self._gain @ along**2)

    @property
    def _uniform(self) -> bool:
        return bool(np.ptp(self._diagonal) == 0.0)

    def eigenvalues(self) -> Array:
        """Closed form for a constant diagonal; otherwise bisection on the inertia of S - x I."""
        rank = self._gain.size
        if self._uniform:
            d = self._diagonal[0]
            return np.sort(np.concatenate([np.full(self.size - rank, d), d * (1.0 + self._gain)]))
        return _bisect_eigenvalues(self._diagonal, self._root[:, None] * self._basis, self._gain)

    def color(self, z: Array) -> Array:
        """R times the symmetric square root of I + Q diag(gain) Q'."""
        return (self._root * self._update(z, np.sqrt(1.0 + self._gain) - 1.0).T).T

    def plus_identity(self, a: float) -> LowRankPlusDiagonal:
        return LowRankPlusDiagonal(self._factors, self._diagonal + a, self._weights)

    def parameters(self) -> dict[str, Any]:
        return {"factors": self._factors, "diagonal": self._diagonal, "weights": self._weights}


def _bisect_eigenvalues(d: Array, F: Array, gain: Array) -> Array:
    """Eigenvalues of diag(d) + F diag(gain) F' by counting those below x, for all of them at once.

    By Haynsworth's additivity the number below x is that of d - x, plus that of the small matrix
    -(diag(1/gain) + F' (d-x)^-1 F), minus the number of positive gains.
    """
    kept = np.abs(gain) > 1e-300
    F, gain = F[:, kept], gain[kept]
    up, down = gain @ np.square(F * (gain > 0)).sum(0), gain @ np.square(F * (gain < 0)).sum(0)
    low = np.full(d.size, d.min() + down) - 1e-12 * d.max()
    high = np.full(d.size, d.max() + up) + 1e-12 * d.max()
    wanted = np.arange(d.size)
    chunk = max(1, 2_000_000 // d.size)
    while True:
        middle = 0.5 * (low + high)
        moving = (middle > low) & (middle < high) & (high - low > 4e-16 * np.abs(high))
        if not moving.any():
            return middle
        below = np.empty(d.size, dtype=np.intp)
        for start in range(0, d.size, chunk):
            part = slice(start, start + chunk)
            below[part] = _count_below(middle[part], d, F, gain)
        above = below <= wanted
        low = np.where(moving & above, middle, low)
        high = np.where(moving & ~above, middle, high)


def _count_below(x: Array, d: Array, F: Array, gain: Array) -> Index:
    gaps = d - x[:, None]
    gaps[gaps == 0.0] = np.finfo(float).tiny ** 0.5
    small = np.einsum("ka,xk,kb->xab", F, 1.0 / gaps, F, optimize=True)
    small[:, range(gain.size), range(gain.size)] += 1.0 / gain
    negative = (np.linalg.eigvalsh(-small) < 0).sum(axis=1)
    return (gaps < 0).sum(axis=1) + negative - int((gain > 0).sum())
