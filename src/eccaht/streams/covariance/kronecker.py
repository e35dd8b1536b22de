"""Covariances made of smaller ones: two factors crossed, such as sites and quantities, or independent blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, check_rows, scattered, support_of
from eccaht.streams.covariance.base import Covariance
from eccaht.streams.covariance.dense import as_covariance


class _Composed(Covariance):
    """An operator that asks its parts the question that it is asked."""

    @abstractmethod
    def _apply(self, x: Array, operation: str) -> Array:
        """What `operation` makes of a vector (K,), or of several as the columns of (K, m)."""

    @abstractmethod
    def _numbers(self, operation: str) -> Array:
        """What `operation` says, one number a stream."""

    def diagonal(self) -> Array:
        return self._numbers("diagonal")

    def least_variances(self) -> Array:
        return self._numbers("least_variances")

    def eigenvalues(self) -> Array:
        return np.sort(self._numbers("eigenvalues"))

    def matvec(self, c: Array) -> Array:
        return self._apply(c, "matvec")

    def solve(self, b: Array) -> Array:
        return self._apply(b, "solve")

    def color(self, z: Array) -> Array:
        return self._apply(z, "color")


class Kronecker(_Composed):
    """S = left (x) right: stream a*right.size + b belongs to row a of `left` and row b of `right`.

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

    def _numbers(self, operation: str) -> Array:
        """All products of one number of `left` and one of `right`."""
        return np.outer(getattr(self.left, operation)(), getattr(self.right, operation)()).ravel()

    def column(self, k: int) -> Array:
        a, b = divmod(range(self.size)[k], self.right.size)
        return np.outer(self.left.column(a), self.right.column(b)).ravel()

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """Outer products of columns of the factors' inverses."""
        x, one = np.zeros((self.left.size, self.right.size)), np.ones(1)
        for k, value in zip(indices.tolist(), values.tolist(), strict=True):
            a, b = divmod(k, self.right.size)
            left = self.left.solve_sparse(np.array([a]), value * one)
            x += np.outer(left, self.right.solve_sparse(np.array([b]), one))
        return x.ravel()

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


class BlockDiagonal(_Composed):
    """Independent blocks, each a matrix or an operator; neighbours that are one object are handled at once.

    >>> BlockDiagonal([[[4.0]], [[2.0, 1.0], [1.0, 2.0]]]).diagonal()
    array([4., 2., 2.])
    """

    def __init__(self, blocks: Sequence[Covariance | ArrayLike]) -> None:
        if not isinstance(blocks, Sequence | np.ndarray) or len(blocks) == 0:
            raise ValueError("blocks must be a non-empty list of matrices or operators")
        self.blocks = tuple(as_covariance(block) for block in blocks)
        self._starts = np.concatenate([[0], np.cumsum([block.size for block in self.blocks])])
        self.size = int(self._starts[-1])
        groups = (list(group) for _, group in groupby(self.blocks, key=id))
        self._runs = [(group[0], len(group)) for group in groups]

    def _apply(self, x: Array, operation: str) -> Array:
        """Run one operation on every block: equal blocks become columns of one call."""
        check_rows(x, self.size)
        out, start = np.empty(x.shape), 0
        for block, count in self._runs:
            stop = start + count * block.size
            part = np.moveaxis(x[start:stop].reshape(count, block.size, -1), 0, 1)
            done = getattr(block, operation)(part.reshape(block.size, -1)).reshape(block.size, count, -1)
            out[start:stop] = np.moveaxis(done, 1, 0).reshape(x[start:stop].shape)
            start = stop
        return out

    def _locate(self, k: int) -> tuple[Covariance, int, int]:
        """The block that holds stream k, where it starts, and the place of k in it."""
        k = range(self.size)[k]
        b = int(np.searchsorted(self._starts, k, side="right")) - 1
        start = int(self._starts[b])
        return self.blocks[b], start, k - start

    def _numbers(self, operation: str) -> Array:
        """One number a stream, block after block."""
        return np.concatenate([np.tile(getattr(block, operation)(), count) for block, count in self._runs])

    def column(self, k: int) -> Array:
        block, start, place = self._locate(k)
        return scattered(self.size, slice(start, start + block.size), block.column(place))

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        x = np.zeros(self.size)
        for k, value in zip(indices.tolist(), values, strict=True):
            block, start, place = self._locate(k)
            x[start : start + block.size] += block.solve_sparse(np.array([place]), value[None])
        return x

    def quad(self, c: Array) -> float:
        check_rows(c, self.size)
        touched = np.unique(np.searchsorted(self._starts, support_of(c), side="right")) - 1
        if 2 * touched.size > len(self.blocks):
            return super().quad(c)
        return sum(self.blocks[b].quad(c[self._starts[b] : self._starts[b + 1]]) for b in touched)

    def plus_identity(self, a: float) -> BlockDiagonal:
        """Each distinct block once, so that equal neighbours stay one object."""
        ridged = {id(block): block.plus_identity(a) for block in {id(b): b for b in self.blocks}.values()}
        return BlockDiagonal([ridged[id(block)] for block in self.blocks])

    def parameters(self) -> dict[str, Any]:
        return {"blocks": list(self.blocks)}
