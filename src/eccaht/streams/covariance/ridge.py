"""S + a I with the structure of S kept.

Each operator says how it takes a ridge (`plus_identity`). Most take it into their own parameters. Where the sum has
another form than S (AR1, SparsePrecision, Kronecker), `Ridged` asks the operator for what is linear in S and its
factorisation of the sum for solutions and square roots.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from eccaht.base.arrays import Array, Index, as_number, as_positive
from eccaht.streams.covariance.base import Covariance, Factorisation


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
    def _factorisation(self) -> Factorisation:
        """Made at first use: a file may claim any size, which is checked only once the operator is there."""
        return self.base.factorised(self.ridge)

    def diagonal(self) -> Array:
        """The variances of the base, raised."""
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
        """By the factorisation, near the nonzeros where that is enough."""
        return self._factorisation.solve_sparse(indices, values)

    def eigenvalues(self) -> Array:
        return self.base.eigenvalues() + self.ridge

    def color(self, z: Array) -> Array:
        return self._factorisation.color(z)

    def plus_identity(self, a: float) -> Ridged:
        return Ridged(self.base, self.ridge + a)

    def parameters(self) -> dict[str, Any]:
        return {"base": self.base, "ridge": self.ridge}
