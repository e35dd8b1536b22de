"""What a covariance can be asked.

Nothing in the package touches the entries of a covariance directly: it asks for a column, a product, a
solution, a quadratic form. A structured covariance answers each from its structure, so that K = 10^6 streams
cost O(K), and `eccaht.checks.check_covariance` compares every operator with its dense matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from eccaht.arrays import Array, Index, rounded_up


class Covariance(ABC):
    """A symmetric positive definite matrix S of `size` rows that is known by what it does.

    `matvec`, `solve` and `color` take one vector (K,) or several as the columns of (K, m).
    Arrays handed out may be read-only views.
    """

    size: int
    exact_inverse: bool = False  # S^-1 is known in closed form, so that solutions need no check of their rounding

    @abstractmethod
    def diagonal(self) -> Array:
        """The variances, shape (K,)."""

    def least_variances(self) -> Array:
        """Lower bounds of the variances that cost little, shape (K,): the variances, unless those are dear."""
        return self.diagonal()

    @abstractmethod
    def column(self, k: int) -> Array:
        """Column k of S, shape (K,)."""

    @abstractmethod
    def matvec(self, c: Array) -> Array:
        """S c."""

    @abstractmethod
    def solve(self, b: Array) -> Array:
        """S^-1 b."""

    @abstractmethod
    def eigenvalues(self) -> Array:
        """All K eigenvalues, ascending."""

    @abstractmethod
    def color(self, z: Array) -> Array:
        """A z for some A with A A' = S: turns white noise into noise of this covariance."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, for saving and comparing: numbers, arrays, operators or lists of them."""

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """S^-1 b for a b that is zero except for `values` at the distinct `indices`."""
        b = np.zeros(self.size)
        b[indices] = values
        return self.solve(b)

    def quad(self, c: Array) -> float:
        """c'S c, the noise variance of the measurement c."""
        return float(c @ self.matvec(c))

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Array:
        """Draw from N(0, S): shape (K,), or (size, K)."""
        if size is None:
            return self.color(rng.standard_normal(self.size))
        return np.ascontiguousarray(self.color(rng.standard_normal((size, self.size)).T).T)

    def dense(self) -> Array:
        """The full matrix, for looking at and for tests."""
        return np.column_stack([self.column(k) for k in range(self.size)])

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to other processes as parameters: factorisations cannot."""
        return _rebuild, (type(self), self.parameters())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


def _rebuild(kind: Any, parameters: dict[str, Any]) -> Covariance:
    rebuilt: Covariance = getattr(kind, "from_parameters", kind)(**parameters)
    return rebuilt


def not_positive_definite(smallest: float, ridge: float) -> ValueError:
    """The error for a matrix that is no covariance, with what would mend it."""
    if ridge <= 0.0:
        return ValueError("the covariance is all 0: give the variances of the streams on its diagonal")
    return ValueError(
        f"the covariance is not positive definite (smallest eigenvalue {smallest:.3g}): "
        f"add a ridge of at least {rounded_up(ridge, 3)} to its diagonal, or remove duplicate streams"
    )


def check_spectrum(smallest: float, largest: float, size: int) -> None:
    """Refuse a spectrum that is indefinite or singular in floating point."""
    floor = size * np.finfo(float).eps * max(abs(largest), abs(smallest))
    if not smallest > floor:
        raise not_positive_definite(smallest, max(-smallest, 0.0) * 1.01 + 1e-9 * largest)
