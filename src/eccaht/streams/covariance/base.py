"""The interface of a covariance.

Nothing in the package touches the entries of a covariance directly: it asks for a column, a product, a
solution, a quadratic form. A structured covariance answers each from its structure, so that K = 10^6 streams
cost O(K), and `eccaht.checks.check_covariance` compares every operator with its dense matrix.

A ridge keeps the structure, too: most operators take S + a I into their own parameters (`plus_identity`). Where the sum
has another form than S (AR1, SparsePrecision, Kronecker), `Ridged` asks the operator for what is linear in S, and its
factorisation of the sum for solutions and square roots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from eccaht.base.arrays import Array, Index, as_number, as_positive, rounded_up, scattered

if TYPE_CHECKING:
    from eccaht.streams.covariance.dense import Dense

LARGEST = 8192  # streams up to which a full matrix may be formed of a structured one
_BATCH = 256  # unit vectors at once


class _Factorisation(Protocol):
    """What solutions and square roots of a matrix need."""

    def solve(self, b: Array) -> Array:
        """Its inverse times b."""

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """The same for a b that is zero except for `values` at `indices`."""

    def color(self, z: Array) -> Array:
        """A z for some A with A A' the matrix."""


class Covariance(ABC):
    """A symmetric positive definite matrix S of `size` rows, given by its products and solutions, not its entries.

    An operator of one's own sets `size` and defines `matvec`. All else has a default that is exact; those that form the
    full matrix are for up to 8192 streams, and say which method to define for more: `solve` first, then
    `diagonal`, `color`, `eigenvalues` and `plus_identity` as they are needed.

    `matvec`, `solve` and `color` take one vector (K,) or several as the columns of (K, m).
    Arrays handed out may be read-only views.

    >>> class Chain(Covariance):
    ...     size = 4
    ...     def matvec(self, c):
    ...         return 2.0 * c + np.roll(c, 1, axis=0) * 0.5 + np.roll(c, -1, axis=0) * 0.5
    >>> Chain().quad(np.ones(4)), Chain().solve(np.ones(4)).round(3)
    (12.0, array([0.333, 0.333, 0.333, 0.333]))
    """

    size: int
    exact_inverse: bool = False  # S^-1 is known in closed form, so that solutions need no check of their rounding

    def __init_subclass__(cls, **more: Any) -> None:
        """An operator that changes what S is must not take a ridge by its parent's rule."""
        super().__init_subclass__(**more)
        if "matvec" in vars(cls):
            for rule in {"plus_identity", "factorised"} - set(vars(cls)):
                setattr(cls, rule, getattr(Covariance, rule))

    @abstractmethod
    def matvec(self, c: Array) -> Array:
        """S c."""

    def solve(self, b: Array) -> Array:
        """S^-1 b."""
        return self._full("solve").solve(b)

    def diagonal(self) -> Array:
        """The variances, shape (K,); by default from batches of columns."""
        variances = np.empty(self.size)
        for start in range(0, self.size, _BATCH):
            here = np.arange(start, min(start + _BATCH, self.size))
            variances[here] = self.matvec(_units(self.size, here))[here, here - start]
        return variances

    def least_variances(self) -> Array:
        """Cheap lower bounds of the variances, shape (K,): the variances themselves unless costly."""
        return self.diagonal()

    def column(self, k: int) -> Array:
        """Column k of S, shape (K,)."""
        return self.matvec(_units(self.size, np.array([range(self.size)[k]])).ravel())

    def eigenvalues(self) -> Array:
        """All K eigenvalues, ascending."""
        return self._full("eigenvalues").eigenvalues()

    def color(self, z: Array) -> Array:
        """A z for some A with A A' = S: turns white noise into noise of this covariance."""
        return self._full("color").color(z)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """S^-1 b for a b that is zero except for `values` at the distinct `indices`."""
        return self.solve(scattered(self.size, indices, values))

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

    def plus_identity(self, a: float) -> Covariance:
        """S + a I for a > 0; by default by the factorisation of S + a I, or a full matrix where there is none."""
        if type(self).factorised is Covariance.factorised:
            return self._full("plus_identity").plus_identity(a)
        return Ridged(self, a)

    def factorised(self, a: float) -> _Factorisation:
        """A factorisation of S + a I, where the structure of S gives one; `Ridged` makes an operator of it."""
        raise ValueError(f"{type(self).__name__} has no factorisation of S + {a:g} I: define factorised()")

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, for saving and comparing: numbers, arrays, operators or lists of them."""
        raise ValueError(f"{type(self).__name__} does not say what it is made of: define parameters()")

    @cached_property
    def _matrix_form(self) -> Dense:
        from eccaht.streams.covariance.dense import Dense

        return Dense(self.dense())

    def _full(self, method: str) -> Dense:
        if self.size > LARGEST:
            kind = type(self).__name__
            raise ValueError(f"{kind} has {self.size} streams, too many for a full matrix: define its {method}()")
        return self._matrix_form

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by `parameters()`, because factorisations cannot be pickled; without it by attributes."""
        if type(self).parameters is Covariance.parameters:
            return _copied, (type(self), vars(self))
        return _rebuild, (type(self), self.parameters())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


def _units(size: int, places: Index) -> Array:
    units = np.zeros((size, places.size))
    units[places, np.arange(places.size)] = 1.0
    return units


def _copied(kind: type[Covariance], attributes: dict[str, Any]) -> Covariance:
    copy = kind.__new__(kind)
    vars(copy).update(attributes)
    return copy


def _rebuild(kind: Any, parameters: dict[str, Any]) -> Covariance:
    return getattr(kind, "from_parameters", kind)(**parameters)


def not_positive_definite(smallest: float, ridge: float) -> ValueError:
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


def with_ridge(cov: Covariance, a: float) -> Covariance:
    """Return S + a I as the most structured operator that fits; a = 0 returns `cov` itself.

    >>> from eccaht.streams.covariance import AR1, Diagonal
    >>> with_ridge(Diagonal([1.0, 4.0]), 0.5).diagonal()
    array([1.5, 4.5])
    >>> with_ridge(AR1(1_000_000, rho=0.8), 0.5)
    Ridged(size=1000000)
    """
    if not isinstance(cov, Covariance):
        raise ValueError(f"a covariance of type {type(cov).__name__} takes no ridge: pass Dense(matrix)")
    if as_number(a, "ridge") == 0.0:
        return cov
    return cov.plus_identity(as_positive(a, "ridge"))


class Ridged(Covariance):
    """base + ridge I, for a base that defines `factorised`, as AR1 does; `with_ridge` serves all operators.

    >>> from eccaht.streams.covariance import AR1
    >>> Ridged(AR1(3, rho=0.5), ridge=1.0).column(0)
    array([2.  , 0.5 , 0.25])
    """

    def __init__(self, base: Covariance, ridge: float) -> None:
        if type(base).factorised is Covariance.factorised:
            raise ValueError(f"Ridged cannot factorise a {type(base).__name__}: use with_ridge")
        self.base, self.ridge = base, as_positive(ridge, "ridge")
        self.size = base.size

    @cached_property
    def _factorisation(self) -> _Factorisation:
        """Made at first use: a file may claim any size, which is checked only once the operator is there."""
        return self.base.factorised(self.ridge)

    def diagonal(self) -> Array:
        return self.base.diagonal() + self.ridge

    def least_variances(self) -> Array:
        return self.base.least_variances() + self.ridge

    def column(self, k: int) -> Array:
        column = self.base.column(k).copy()
        column[k] += self.ridge
        return column

    def matvec(self, c: Array) -> Array:
        return self.base.matvec(c) + self.ridge * c

    def quad(self, c: Array) -> float:
        return self.base.quad(c) + self.ridge * float(c @ c)

    def solve(self, b: Array) -> Array:
        return self._factorisation.solve(b)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        return self._factorisation.solve_sparse(indices, values)

    def eigenvalues(self) -> Array:
        return self.base.eigenvalues() + self.ridge

    def color(self, z: Array) -> Array:
        return self._factorisation.color(z)

    def plus_identity(self, a: float) -> Ridged:
        return Ridged(self.base, self.ridge + a)

    def parameters(self) -> dict[str, Any]:
        return {"base": self.base, "ridge": self.ridge}
