"""Groups of streams, independent of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, check_rows, support_of
from eccaht.streams.covariance.base import Covariance
from eccaht.streams.covariance.dense import as_covariance


class BlockDiagonal(Covariance):
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

    def _apply(self, x: Array, operation: Callable[[Covariance, Array], Array]) -> Array:
        """Run one operation on every block: equal blocks become columns of one call."""
        check_rows(x, self.size)
        out, start = np.empty(x.shape), 0
        for block, count in self._runs:
            stop = start + count * block.size
            part = np.moveaxis(x[start:stop].reshape(count, block.size, -1), 0, 1)
            done = operation(block, part.reshape(block.size, -1)).reshape(block.size, count, -1)
            out[start:stop] = np.moveaxis(done, 1, 0).reshape(x[start:stop].shape)
            start = stop
        return out

    def _locate(self, k: int) -> tuple[Covariance, int, int]:
        """The block that holds stream k, where it starts, and the place of k in it."""
        k = range(self.size)[k]
        b = int(np.searchsorted(self._starts, k, side="right")) - 1
        start = int(self._starts[b])
        return self.blocks[b], start, k - start

    def diagonal(self) -> Array:
        return np.concatenate([np.tile(block.diagonal(), count) for block, count in self._runs])

    def least_variances(self) -> Array:
        return np.concatenate([np.tile(block.least_variances(), count) for block, count in self._runs])

    def inverse_diagonal(self) -> Array:
        return np.concatenate([np.tile(block.inverse_diagonal(), count) for block, count in self._runs])

    def column(self, k: int) -> Array:
        block, start, place = self._locate(k)
        column = np.zeros(self.size)
        column[start : start + block.size] = block.column(place)
        return column

    def matvec(self, c: Array) -> Array:
        return self._apply(c, lambda block, part: block.matvec(part))

    def solve(self, b: Array) -> Array:
        return self._apply(b, lambda block, part: block.solve(part))

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

    def eigenvalues(self) -> Array:
        return np.sort(np.concatenate([np.tile(block.eigenvalues(), count) for block, count in self._runs]))

    def color(self, z: Array) -> Array:
        return self._apply(z, lambda block, part: block.color(part))

    def plus_identity(self, a: float) -> BlockDiagonal:
        """Each distinct block once, so that equal neighbours stay one object."""
        ridged = {id(block): block.plus_identity(a) for block in {id(b): b for b in self.blocks}.values()}
        return BlockDiagonal([ridged[id(block)] for block in self.blocks])

    def parameters(self) -> dict[str, Any]:
        return {"blocks": list(self.blocks)}
