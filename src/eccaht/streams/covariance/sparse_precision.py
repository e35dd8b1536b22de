"""Graphical models: each stream depends directly on a few others only."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import eigvals_banded
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from eccaht.base.arrays import Array, Index, check_finite
from eccaht.base.randomness import rng_for
from eccaht.base.scales import check_entries
from eccaht.streams.covariance.base import Covariance

_ACCEPTABLE = 1e-8  # a relative error of coloured noise above this is refused
_INDEFINITE = "precision is not positive definite: add a ridge to its diagonal"


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
        check_finite(P.data, "precision")
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

    def inverse_diagonal(self) -> Array:
        return np.asarray(self._precision.diagonal())

    def matvec(self, c: Array) -> Array:
        """S c = P^-1 c by the factorisation."""
        return self._lu.solve(np.ascontiguousarray(c))

    def solve(self, b: Array) -> Array:
        return self._precision @ b

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """A few columns of P."""
        return self._precision[:, indices] @ values

    def eigenvalues(self) -> Array:
        """Reciprocals of those of P, which is brought to a narrow band first."""
        order = reverse_cuthill_mckee(sp.csr_array(self._precision), symmetric_mode=True)
        P = sp.coo_array(self._precision[order][:, order])
        lower = P.row >= P.col
        row, col = P.row[lower], P.col[lower]
        band = np.zeros((int((row - col).max()) + 1, self.size))
        band[row - col, col] = P.data[lower]
        return 1.0 / eigvals_banded(band, lower=True)[::-1]

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
