"""Few numbers for many streams: a few common causes plus independent noise, or direct dependence on a few others.

Common causes: factor models, equicorrelation, spectral mixtures. With R = sqrt(diagonal) and an orthonormal basis Q of
the scaled factors, S = R (I + Q diag(gain) Q') R. Products, solutions (Woodbury) and square roots of S only change the
function applied to `gain`.

Direct dependence: graphical models, whose precision S^-1 is sparse.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.linalg import splu

from eccaht.base.arrays import Array, Index, as_floats, check_entries, frozen
from eccaht.base.randomness import rng_for
from eccaht.streams.covariance.base import Covariance, not_positive_definite

_ACCEPTABLE = 1e-8  # a relative error of coloured noise above this is refused
_INDEFINITE = "precision is not positive definite: add a ridge to its diagonal"


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
        return (self._root * self._update((self._root * c.T).T, self._gain).T).T

    def solve(self, b: Array) -> Array:
        return (self._update((b.T / self._root).T, -self._gain / (1.0 + self._gain)).T / self._root).T

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """Reads only the touched rows of the factors."""
        scaled = values / self._root[indices]
        x = self._basis @ (-self._gain / (1.0 + self._gain) * (scaled @ self._basis[indices]))
        x[indices] += scaled
        return x / self._root

    def quad(self, c: Array) -> float:
        u = self._root * c
        along = u @ self._basis
        return float(u @ u + self._gain @ along**2)

    @property
    def _uniform(self) -> bool:
        return bool(np.ptp(self._diagonal) == 0.0)

    def eigenvalues(self) -> Array:
        """In closed form for a constant diagonal."""
        if not self._uniform:
            return super().eigenvalues()
        d = self._diagonal[0]
        return np.sort(np.concatenate([np.full(self.size - self._gain.size, d), d * (1.0 + self._gain)]))

    def color(self, z: Array) -> Array:
        """R times the symmetric square root of I + Q diag(gain) Q'."""
        return (self._root * self._update(z, np.sqrt(1.0 + self._gain) - 1.0).T).T

    def plus_identity(self, a: float) -> LowRankPlusDiagonal:
        return LowRankPlusDiagonal(self._factors, self._diagonal + a, self._weights)

    def parameters(self) -> dict[str, Any]:
        return {"factors": self._factors, "diagonal": self._diagonal, "weights": self._weights}


class SparsePrecision(Covariance):
    """The covariance whose inverse is the given sparse matrix.

    >>> SparsePrecision([[2.0, -1.0], [-1.0, 2.0]]).matvec(np.array([3.0, 0.0]))
    array([2., 1.])
    """

    exact_inverse = True

    def __init__(self, precision: sp.spmatrix | sp.sparray | ArrayLike) -> None:
        P = sp.csc_array(precision, dtype=np.float64)
        if P.ndim != 2 or P.shape[0] != P.shape[1] or P.shape[0] == 0:
            raise ValueError(f"precision must be a square matrix, not of shape {P.shape}")
        check_entries(P.data, "precision")
        difference = abs(P - P.T)
        if difference.nnz and difference.max() > 1e-10 * abs(P).max():
            raise ValueError("precision is not symmetric: pass (P + P.T)/2 if the difference is rounding")
        self.size = P.shape[0]
        self._precision = sp.csc_array(0.5 * (P + P.T))
        self._precision.eliminate_zeros()
        try:  # symmetric mode with diagonal pivots: P = L D L' in the order `perm_c`
            self._lu = splu(
                self._precision,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:  # exactly singular
            raise ValueError(_INDEFINITE) from None
        pivots = self._lu.U.diagonal()
        straight = np.array_equal(self._lu.perm_r, self._lu.perm_c)
        if not straight or pivots.min() <= self.size * np.finfo(float).eps * pivots.max():
            raise ValueError(_INDEFINITE)

    def least_variances(self) -> Array:
        """1 / P_kk, what is left of a variance once all other streams are known."""
        return 1.0 / self._precision.diagonal()

    def matvec(self, c: Array) -> Array:
        return self._lu.solve(np.ascontiguousarray(c))

    def solve(self, b: Array) -> Array:
        return self._precision @ b

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        return self._precision[:, indices] @ values

    def color(self, z: Array) -> Array:
        """P^-1 L sqrt(D) z: its covariance is P^-1 (L D L') P^-1 = S, with no triangular solve."""
        white = self._lu.L @ (np.sqrt(self._lu.U.diagonal()) * z.T).T
        return self.matvec(white[self._lu.perm_r])

    def factorised(self, a: float) -> _Product:
        """Its inverse is not sparse, but a product of two that are."""
        return _Product(self, a)

    def parameters(self) -> dict[str, Any]:
        """The precision, as the three arrays of a sparse matrix."""
        P = self._precision
        return {"data": P.data, "row_index": P.indices, "column_start": P.indptr}

    @classmethod
    def from_parameters(cls, data: Array, row_index: Index, column_start: Index) -> SparsePrecision:
        """From the arrays of `parameters`, those of a file among them: their indices are not trusted."""
        size = len(column_start) - 1
        precision = sp.csc_array((data, row_index, column_start), shape=(size, size))
        precision.check_format(full_check=True)  # an index beyond the matrix would be followed
        return cls(precision)


class _Product:
    """S + a I = P^-1 (I + a P), where I + a P and P + a P^2 are sparse precisions themselves."""

    def __init__(self, base: SparsePrecision, a: float) -> None:
        self._base, self._ridge = base, a
        self._raised = sp.csc_array(sp.eye_array(base.size) + a * base._precision)
        self._inverse = SparsePrecision(self._raised)

    def solve(self, b: Array) -> Array:
        """(I + a P)^-1 P b."""
        return self._inverse.matvec(self._base.solve(b))

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        return self._inverse.matvec(self._base.solve_sparse(indices, values))

    @cached_property
    def _squared(self) -> SparsePrecision:
        """The precision Q of y in `color`. It loses digits of P along the top eigenvectors of S: tested there."""
        S, squared = self._base, SparsePrecision(self._base._precision @ self._raised)
        v = rng_for(0, "ridge").standard_normal(S.size)
        for _ in range(8):
            v = S.matvec(v / np.linalg.norm(v))
        wanted = S.matvec(v) + self._ridge * v
        error = np.linalg.norm(self._raised @ squared.matvec(self._raised @ v) - wanted) / np.linalg.norm(wanted)
        if not error < _ACCEPTABLE:
            raise ArithmeticError(f"the precision is too ill-conditioned (error {error:.1g}): add a ridge to it, too")
        return squared

    def color(self, z: Array) -> Array:
        """(I + a P) y with y of precision Q = P (I + a P): its covariance is (I + a P) Q^-1 (I + a P) = S + a I."""
        return self._raised @ self._squared.color(z)
