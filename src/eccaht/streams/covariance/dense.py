"""Covariances that are given by their entries: a full matrix, or variances alone. And what their spectrum says.

Extreme eigenvalues are picked from all of them. LAPACK finds a few by bisection (`eigh(subset_by_index=...)`, with any
of its drivers), which fails on some processors where several are equal up to rounding, as those of independent streams
are. All, by the divide and conquer of numpy, cost little more: most of the work is the same reduction.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from eccaht.base.arrays import (
    Array,
    Index,
    as_floats,
    check_entries,
    check_finite,
    check_rows,
    frozen,
    scattered,
    support_of,
)
from eccaht.streams.covariance.base import Covariance, check_spectrum

_WELL_CONDITIONED = 1e-4  # reciprocal condition number


class Dense(Covariance):
    """A full matrix: factorised once, inverted once if pair designs ask for it.

    >>> Dense([[2.0, 1.0], [1.0, 2.0]]).solve(np.array([3.0, 3.0]))
    array([1., 1.])
    """

    def __init__(self, matrix: ArrayLike) -> None:
        S = as_floats(matrix, "covariance")
        if S.ndim != 2 or S.shape[0] != S.shape[1] or S.shape[0] == 0:
            raise ValueError(f"covariance must be a square matrix, not of shape {S.shape}")
        check_entries(S, "covariance")
        _check_symmetric(S)
        self.size = len(S)
        self._matrix = frozen(np.array(0.5 * (S + S.T), order="C"))
        self._factor, info = lapack.dpotrf(self._matrix, lower=1)
        self._norm = float(np.abs(self._matrix).sum(axis=0).max())
        rcond = 0.0 if info else lapack.dpocon(self._factor, self._norm, uplo="L")[0]
        if rcond < self.size * np.finfo(float).eps:  # suspicious: let the eigenvalues decide
            eigenvalues = self.eigenvalues()
            check_spectrum(eigenvalues[0], eigenvalues[-1], self.size)

    def diagonal(self) -> Array:
        return self._matrix.diagonal()

    def column(self, k: int) -> Array:
        return self._matrix[k]

    def matvec(self, c: Array) -> Array:
        return self._matrix @ c

    def quad(self, c: Array) -> float:
        """c'S c, on the nonzero part of c where that is small."""
        support = support_of(c)
        if 4 * support.size < self.size:
            part = c[support]
            return float(part @ self._matrix[np.ix_(support, support)] @ part)
        return float(c @ (self._matrix @ c))

    def solve(self, b: Array) -> Array:
        if len(b) != self.size:
            raise ValueError(f"there are {self.size} streams, not {len(b)}: give one number, or row, for each")
        x: Array = lapack.dpotrs(self._factor, b, lower=1)[0]
        return x.reshape(b.shape)

    @cached_property
    def _inverse_columns(self) -> Array:
        """Row k solves S x = e_k. Not symmetrised: that would spoil the small residual of each column.

        Where S is well conditioned, entries at the rounding error of their row are set to zero: if the streams depend
        directly on a few others only, measurements then have few weights, and cost accordingly little.
        """
        rows = np.ascontiguousarray(self.solve(np.eye(self.size)).T)
        size = np.abs(rows)
        if self._norm * float(size.sum(axis=1).max()) < 1.0 / _WELL_CONDITIONED:
            rows[size < 16.0 * np.finfo(float).eps * size.max(axis=1, keepdims=True)] = 0.0
        return frozen(rows)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """A few columns of the inverse, which is formed at the first call."""
        return values @ self._inverse_columns[indices]

    def eigenvalues(self) -> Array:
        return np.asarray(np.linalg.eigvalsh(self._matrix), dtype=np.float64)

    def color(self, z: Array) -> Array:
        """L z with S = L L'."""
        return np.tril(self._factor) @ z

    def plus_identity(self, a: float) -> Dense:
        return Dense(self._matrix + a * np.eye(self.size))

    def parameters(self) -> dict[str, Any]:
        return {"matrix": self._matrix}

    def dense(self) -> Array:
        return self._matrix.copy()


def _check_symmetric(S: Array) -> None:
    asymmetry = np.abs(S - S.T)
    if asymmetry.max() > 1e-10 * np.abs(S).max():
        i, j = np.unravel_index(asymmetry.argmax(), S.shape)
        raise ValueError(
            f"covariance is not symmetric: entries ({i}, {j}) and ({j}, {i}) are {S[i, j]:.6g} and {S[j, i]:.6g}; "
            "pass (S + S.T)/2 if the difference is rounding"
        )


def as_covariance(value: Covariance | ArrayLike) -> Covariance:
    """Return an operator as it is and a matrix as `Dense`."""
    if isinstance(value, Covariance):
        return value
    if hasattr(value, "matvec"):
        kind = type(value).__name__
        raise ValueError(f"{kind} is no covariance operator: derive it from eccaht.covariance.Covariance")
    return Dense(value)


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
        return scattered(self.size, k, self._variances[k])

    def matvec(self, c: Array) -> Array:
        check_rows(c, self.size)
        return (self._variances * c.T).T

    def solve(self, b: Array) -> Array:
        check_rows(b, self.size)
        return (b.T / self._variances).T

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        return scattered(self.size, indices, values / self._variances[indices])

    def quad(self, c: Array) -> float:
        check_rows(c, self.size)
        support = support_of(c)
        return float(c[support] ** 2 @ self._variances[support])

    def eigenvalues(self) -> Array:
        return np.sort(self._variances)

    def color(self, z: Array) -> Array:
        check_rows(z, self.size)
        return (np.sqrt(self._variances) * z.T).T

    def plus_identity(self, a: float) -> Diagonal:
        return Diagonal(self._variances + a)

    def parameters(self) -> dict[str, Any]:
        return {"variances": self._variances}


def effective_rank(cov: Covariance | ArrayLike, kind: Literal["shannon", "participation"] = "shannon") -> float:
    """Return exp(entropy) of the normalised eigenvalues, or (sum)^2 / (sum of squares) (paper, appendix on spectra).

    Both are K for independent streams of one variance and tend to 1 when one direction carries all the noise.

    >>> round(effective_rank(np.eye(5)), 6), round(effective_rank([[1.0, 0.5], [0.5, 1.0]], kind="participation"), 6)
    (5.0, 1.6)
    """
    if kind not in ("shannon", "participation"):
        raise ValueError(f"kind must be 'shannon' or 'participation', not {kind!r}")
    share = as_covariance(cov).eigenvalues()
    share = share / share.sum()
    if kind == "participation":
        return float(1.0 / np.sum(share**2))
    share = share[share > 0]
    return float(np.exp(-np.sum(share * np.log(share))))
