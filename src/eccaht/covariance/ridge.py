"""S + a I with the structure of S kept.

Most operators take a ridge into their own parameters. Where the sum has another form than S (AR1, SparsePrecision,
Kronecker), `Ridged` asks the operator for what is linear in S and a factorisation for solutions and square roots.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky_banded, lapack

from eccaht.arrays import Array, Index, as_number, as_positive, check_rows
from eccaht.covariance.ar1 import AR1
from eccaht.covariance.base import Covariance
from eccaht.covariance.block_diagonal import BlockDiagonal
from eccaht.covariance.circulant import Circulant
from eccaht.covariance.dense import Dense
from eccaht.covariance.diagonal import Diagonal
from eccaht.covariance.kronecker import Kronecker
from eccaht.covariance.low_rank import LowRankPlusDiagonal
from eccaht.covariance.sparse_precision import SparsePrecision
from eccaht.randomness import rng_for

_NEGLIGIBLE = 1e-20  # share of a solution that may be left out
_ACCEPTABLE = 1e-8  # a relative error of coloured noise above this is refused


def with_ridge(cov: Covariance, a: float) -> Covariance:
    """Return S + a I as the most structured operator that fits; a = 0 returns `cov` itself.

    >>> with_ridge(Diagonal([1.0, 4.0]), 0.5).diagonal()
    array([1.5, 4.5])
    >>> with_ridge(AR1(1_000_000, rho=0.8), 0.5)
    Ridged(size=1000000)
    """
    if as_number(a, "ridge") == 0.0:
        return cov
    a = as_positive(a, "ridge")
    if type(cov) not in _RULES:
        raise ValueError(f"a covariance of type {type(cov).__name__} takes no ridge: pass Dense(cov.dense())")
    return _RULES[type(cov)](cov, a)


class Ridged(Covariance):
    """base + ridge I, for a base that is AR1, SparsePrecision or Kronecker; `with_ridge` serves all operators.

    >>> Ridged(AR1(3, rho=0.5), ridge=1.0).column(0)
    array([2.  , 0.5 , 0.25])
    """

    def __init__(self, base: Covariance, ridge: float) -> None:
        if type(base) not in _FACTORISATIONS:
            raise ValueError(f"Ridged cannot factorise a {type(base).__name__}: use with_ridge")
        self.base, self.ridge = base, as_positive(ridge, "ridge")
        self.size = base.size

    @cached_property
    def _factorisation(self) -> _Tridiagonal | _Sparse | _Eigenbasis:
        """Made at first use: a file may claim any size, which is checked only once the operator is there."""
        return _FACTORISATIONS[type(self.base)](self.base, self.ridge)

    def diagonal(self) -> Array:
        """The variances of the base, raised."""
        return self.base.diagonal() + self.ridge

    def least_variances(self) -> Array:
        """Those of the base, raised."""
        return self.base.least_variances() + self.ridge

    def column(self, k: int) -> Array:
        """The column of the base, raised at k."""
        column = self.base.column(k).copy()
        column[k] += self.ridge
        return column

    def matvec(self, c: Array) -> Array:
        """S c + a c."""
        return self.base.matvec(c) + self.ridge * c

    def quad(self, c: Array) -> float:
        """c'S c + a c'c."""
        return self.base.quad(c) + self.ridge * float(c @ c)

    def solve(self, b: Array) -> Array:
        """By the factorisation."""
        return self._factorisation.solve(b)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """By the factorisation, near the nonzeros where that is enough."""
        return self._factorisation.solve_sparse(indices, values)

    def eigenvalues(self) -> Array:
        """Those of the base, raised."""
        return self.base.eigenvalues() + self.ridge

    def color(self, z: Array) -> Array:
        """By the factorisation."""
        return self._factorisation.color(z)

    def parameters(self) -> dict[str, Any]:
        """Base and ridge."""
        return {"base": self.base, "ridge": self.ridge}


class _Tridiagonal:
    """AR1: S = G^-1 D G^-T with G bidiagonal, so S + a I = G^-1 (D + a G G') G^-T with a tridiagonal L L' inside."""

    def __init__(self, base: AR1, a: float) -> None:
        self._base, rho = base, base.rho
        band = np.full((2, base.size), -a * rho)
        band[0] = base._innovations() + a * (1.0 + rho**2)
        band[0, 0] = base.variance + a
        self._factor: Array = np.asfortranarray(cholesky_banded(band, lower=True, check_finite=False))
        # entries of (L L')^-1 fall at least as fast as the powers of this ratio
        ratio = np.abs(self._factor[1, :-1] / self._factor[0, :-1]).max(initial=0.0)
        self._reach = 2 + int(np.log(_NEGLIGIBLE) / np.log(np.clip(ratio, 1e-3, 1.0 - 1e-12)))

    def solve(self, b: Array) -> Array:
        check_rows(b, self._base.size)
        return self._solve_on(slice(None), b)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """A short stretch around each nonzero, which is all of the solution that floating point can tell from 0."""
        x = np.zeros(self._base.size)
        for k, value in zip(indices.tolist(), values.tolist(), strict=True):
            start = max(k - self._reach, 0)
            stretch = slice(start, k + self._reach + 1)
            b = np.zeros(x[stretch].size)
            b[k - start] = value
            x[stretch] += self._solve_on(stretch, b)
        return x

    def _solve_on(self, stretch: slice, b: Array) -> Array:
        """G' (L L')^-1 G b for a b that is zero outside the stretch."""
        u = b.copy()
        u[1:] -= self._base.rho * b[:-1]
        x: Array = lapack.dpbtrs(self._factor[:, stretch], u, lower=1)[0]
        x[:-1] -= self._base.rho * x[1:]
        return x

    def color(self, z: Array) -> Array:
        """G^-1 L z."""
        main, below = self._factor
        y = (main * z.T).T
        y[1:] += (below[:-1] * z[:-1].T).T
        return self._base._recurse(y, backward=False)


class _Sparse:
    """SparsePrecision: S + a I = P^-1 (I + a P), where I + a P and P + a P^2 are sparse precisions themselves."""

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
        """Q loses digits of P where S is largest: there it is put to the test."""
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


class _Eigenbasis:
    """Kronecker: the eigenvectors of the factors, crossed, stay those of S + a I."""

    def __init__(self, base: Kronecker, a: float) -> None:
        pairs = [np.linalg.eigh(factor.dense()) for factor in _factors(base)]
        self._vectors: list[Array] = [vectors for _, vectors in pairs]
        self._values: Array = reduce(np.kron, [values for values, _ in pairs]) + a

    def _turn(self, x: Array, *, back: bool) -> Array:
        """Into the eigenbasis or back: each product takes the first axis of the grid of streams to the end."""
        y = x
        for vectors in self._vectors:
            y = y.reshape(len(vectors), -1).T @ (vectors.T if back else vectors)
        return y.reshape(-1, len(x)).T.reshape(x.shape)

    def solve(self, b: Array) -> Array:
        return self._turn((self._turn(b, back=False).T / self._values).T, back=True)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """A unit vector in the eigenbasis is the outer product of one row of each factor's eigenvectors."""
        turned = values[:, None]
        places = np.unravel_index(indices, [len(vectors) for vectors in self._vectors])
        for vectors, place in zip(self._vectors, places, strict=True):
            turned = (turned[:, :, None] * vectors[place][:, None, :]).reshape(indices.size, -1)
        return self._turn(turned.sum(axis=0) / self._values, back=True)

    def color(self, z: Array) -> Array:
        return self._turn((np.sqrt(self._values) * z.T).T, back=True)


def _factors(cov: Covariance) -> list[Covariance]:
    return [*_factors(cov.left), *_factors(cov.right)] if type(cov) is Kronecker else [cov]


_FACTORISATIONS: dict[type, Callable[[Any, float], _Tridiagonal | _Sparse | _Eigenbasis]] = {
    AR1: _Tridiagonal,
    SparsePrecision: _Sparse,
    Kronecker: _Eigenbasis,
}


def _blocks(cov: BlockDiagonal, a: float) -> BlockDiagonal:
    """Each distinct block once, so that equal neighbours stay one object."""
    distinct = {id(block): block for block in cov.blocks}
    ridged = {key: with_ridge(block, a) for key, block in distinct.items()}
    return BlockDiagonal([ridged[id(block)] for block in cov.blocks])


def _crossed(cov: Kronecker, a: float) -> Covariance:
    """A factor of one row only scales the other, which then takes the ridge."""
    if cov.left.size == 1:
        return Kronecker(cov.left, with_ridge(cov.right, a / cov.left.diagonal()[0]))
    if cov.right.size == 1:
        return Kronecker(with_ridge(cov.left, a / cov.right.diagonal()[0]), cov.right)
    return Ridged(cov, a)


_RULES: dict[type, Callable[[Any, float], Covariance]] = {
    Dense: lambda cov, a: Dense(cov.dense() + a * np.eye(cov.size)),
    Diagonal: lambda cov, a: Diagonal(cov.diagonal() + a),
    Circulant: lambda cov, a: Circulant(cov.column(0) + a * (np.arange(cov.size) == 0)),
    LowRankPlusDiagonal: lambda cov, a: LowRankPlusDiagonal(cov._factors, cov._diagonal + a, cov._weights),
    BlockDiagonal: _blocks,
    Kronecker: _crossed,
    AR1: Ridged,
    SparsePrecision: Ridged,
    Ridged: lambda cov, a: Ridged(cov.base, cov.ridge + a),
}
