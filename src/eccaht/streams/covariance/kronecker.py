"""Two factors crossed, such as sites and quantities: S = left (x) right."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance.base import Covariance
from eccaht.streams.covariance.dense import as_covariance


class Kronecker(Covariance):
    """Stream a*right.size + b belongs to row a of `left` and row b of `right`.

    >>> Kronecker([[2.0]], [[1.0, 0.5], [0.5, 1.0]]).column(0)
    array([2., 1.])
    """

    def __init__(self, left: Covariance | ArrayLike, right: Covariance | ArrayLike) -> None:
        self.left, self.right = as_covariance(left), as_covariance(right)
        self.size = self.left.size * self.right.size

    def _apply(self, x: Array, operation: str) -> Array:
        """Apply an operation of `left` along the first axis and of `right` along the second."""
        a, b = self.left.size, self.right.size
        half = getattr(self.left, operation)(x.reshape(a, -1)).reshape(a, b, -1)
        turned = np.moveaxis(half, 1, 0)
        done = getattr(self.right, operation)(turned.reshape(b, -1)).reshape(turned.shape)
        return np.moveaxis(done, 0, 1).reshape(x.shape)

    def diagonal(self) -> Array:
        return np.outer(self.left.diagonal(), self.right.diagonal()).ravel()

    def least_variances(self) -> Array:
        return np.outer(self.left.least_variances(), self.right.least_variances()).ravel()

    def inverse_diagonal(self) -> Array:
        return np.outer(self.left.inverse_diagonal(), self.right.inverse_diagonal()).ravel()

    def column(self, k: int) -> Array:
        """Outer product of two columns."""
        a, b = divmod(range(self.size)[k], self.right.size)
        return np.outer(self.left.column(a), self.right.column(b)).ravel()

    def matvec(self, c: Array) -> Array:
        return self._apply(c, "matvec")

    def solve(self, b: Array) -> Array:
        return self._apply(b, "solve")

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """Outer products of columns of the factors' inverses."""
        x, one = np.zeros((self.left.size, self.right.size)), np.ones(1)
        for k, value in zip(indices.tolist(), values.tolist(), strict=True):
            a, b = divmod(k, self.right.size)
            left = self.left.solve_sparse(np.array([a]), value * one)
            x += np.outer(left, self.right.solve_sparse(np.array([b]), one))
        return x.ravel()

    def eigenvalues(self) -> Array:
        return np.sort(np.outer(self.left.eigenvalues(), self.right.eigenvalues()).ravel())

    def color(self, z: Array) -> Array:
        return self._apply(z, "color")

    def plus_identity(self, a: float) -> Covariance:
        """A factor of one row only scales the other, which then takes the ridge."""
        left, right = self.left, self.right
        if left.size == 1:
            return Kronecker(left, right.plus_identity(a / left.diagonal()[0]))
        if right.size == 1:
            return Kronecker(left.plus_identity(a / right.diagonal()[0]), right)
        return super().plus_identity(a)

    def factorised(self, a: float) -> _Eigenbasis:
        return _Eigenbasis(self, a)

    def parameters(self) -> dict[str, Any]:
        return {"left": self.left, "right": self.right}


class _Eigenbasis:
    """The eigenvectors of the factors, crossed, stay those of S + a I."""

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
    return [*_factors(cov.left), *_factors(cov.right)] if isinstance(cov, Kronecker) else [cov]
