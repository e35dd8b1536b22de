"""The L1 budget: the weights of a measurement add up to at most B (paper, eq. 2 and Algorithm 1, line 12).

min c'S c  subject to  c'D = 1, |c|_1 <= B,  for a contrast D; a pair has D = shift_i e_i - shift_j e_j.

Where the limit does not bind this is S^-1 D / (D'S^-1 D). Where it binds, the lasso path (lasso.py) is walked on a
working set of streams and the answer is checked against all K; streams that would help are added until none is left.
So the result is exact, and only columns of the covariance are ever asked for. The answer is then scaled to |c|_1 = B.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar

import numpy as np

from eccaht.base.arrays import Array, Index, as_positive, check_size, l1_norm, rounded_up, scattered, support_of
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.base import Design, Limited
from eccaht.streams.measurements.lasso import Crossing, walk
from eccaht.streams.measurements.region import Region

_FEW = 8  # entries of a contrast up to which columns of the inverse are added up
_WORKING_SET = 128  # streams in the first working set; small problems are solved on all at once
_VIOLATION = 1e-10  # relative excess over the bound that brings a stream into the working set
ACCEPTABLE = 1e-6  # a KKT residual or relative error above this is an error


@dataclass(frozen=True)
class _L1(Limited):
    limit: float
    lasting: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", as_positive(self.limit, "budget"))
        check_size(self.limit, "budget")

    def allows(self, c: Array) -> bool:
        return l1_norm(c) <= self.limit * (1.0 + 1e-9)

    def scaled(self, direction: Array) -> Array:
        return direction * (self.limit / l1_norm(direction))

    def beyond(self, c: Array) -> str:
        return f"a reading has weights of |c|_1 = {l1_norm(c):g}, beyond the budget of {self.limit:g}"


class Budget(_L1):
    """|c|_1 <= limit, also per unit of contrast, as in the paper (eq. 2).

    >>> Budget(2.0).scaled(np.array([3.0, -1.0]))
    array([ 1.5, -0.5])
    """

    @property
    def least_contrast(self) -> float:
        """Unit contrast takes |c|_1 >= 1 / max|D|."""
        return 1.0 / self.limit

    def narrow(self, region: Region) -> None:
        super().narrow(region)
        region.per_contrast = min(region.per_contrast, self.limit)

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        return _solved(covariance, indices, values, self.limit, self.limit)

    def check_pair(self, shifts: Array, labels: tuple[str, str]) -> None:
        """Refuse a budget with which the pair cannot reach unit contrast."""
        least = 1.0 / float(np.abs(shifts).max())
        if self.limit < least * (1.0 - 1e-12):
            raise ValueError(
                f"budget {self.limit:g} cannot separate streams {labels[0]} and {labels[1]}: "
                f"unit contrast needs an L1 norm of at least {rounded_up(least)}; raise the budget to that or the shift"
            )


class Unlimited(_L1):
    """|c|_1 <= limit, but not per unit of contrast: any direction that cancels noise (appendix ECC-AHT-CostFree)."""

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        return _solved(covariance, indices, values, np.inf, self.limit)


def _solved(covariance: Covariance, indices: Index, values: Array, limit: float, scale: float) -> Design:
    """Solve under |c|_1 <= limit per unit of contrast, for weights of |c|_1 = scale."""
    z = inverse(covariance, indices, values)  # maximises eq. 2 where the limit does not bind
    contrast, norm, lam = float(values @ z[indices]), l1_norm(z), 0.0
    if not norm <= limit * contrast * (1.0 + 1e-12):
        places, weights, lam = _either_way(covariance, indices, values, limit, z)
        z = scattered(z.size, places, weights)
        norm = l1_norm(z)
    elif not covariance.exact_inverse:  # at the exact solution z'S z = D'z
        error = abs(covariance.quad(z) / contrast - 1.0)
        if not error < ACCEPTABLE:
            raise too_ill_conditioned(f"relative error {error:.1g}")
    violation = partial(_kkt_residual, covariance, indices, values, z, lam)
    return Design(covariance, indices, values, z * (scale / norm), lam > 0.0, violation)


def inverse(covariance: Covariance, indices: Index, values: Array) -> Array:
    """S^-1 D: column by column where D has few entries."""
    if indices.size <= _FEW:
        return covariance.solve_sparse(indices, values)
    return covariance.solve(scattered(covariance.size, indices, values))


def _either_way(covariance: Covariance, indices: Index, values: Array, limit: float, unlimited: Array) -> Crossing:
    """The limited design; of a pair, (j, i) is (i, j) with the opposite sign to the last bit."""
    if indices.size != 2 or indices[0] < indices[1]:
        return _limited(covariance, indices, values, limit, unlimited)
    places, weights, lam = _limited(covariance, indices[::-1], -values[::-1], limit, unlimited)
    return Crossing(places, -weights, lam)


def too_ill_conditioned(why: str) -> ArithmeticError:

    return ArithmeticError(
        f"the covariance is too ill-conditioned to cancel noise exactly ({why}): add a ridge to its diagonal"
    )


def _limited(covariance: Covariance, indices: Index, values: Array, limit: float, unlimited: Array) -> Crossing:
    """Walk the path on a growing working set until no stream outside it would help."""
    size = covariance.size
    column = cache(covariance.column)  # each is asked for once
    working = np.union1d(largest(unlimited, _WORKING_SET), indices)
    while True:
        contrast = scattered(working.size, np.searchsorted(working, indices), values)
        try:
            support, weights, lam = walk(partial(_on, working, column), contrast, limit)
        except np.linalg.LinAlgError:
            raise too_ill_conditioned("a submatrix cannot be factorised") from None
        support = working[support]
        dual = scattered(size, indices, values)
        for k, weight in zip(support.tolist(), weights.tolist(), strict=True):
            dual -= weight * column(k)
        excess = np.abs(dual) - lam
        excess[working] = 0.0
        helpful = np.flatnonzero(excess > _VIOLATION * np.abs(values).max())
        if helpful.size == 0:
            residual = kkt_violation(dual, scattered(size, support, weights), lam) / float(np.abs(values).max())
            if not residual < ACCEPTABLE:
                raise too_ill_conditioned(f"KKT residual {residual:.1g}")
            return Crossing(support, weights, lam)
        working = np.union1d(working, helpful[largest(excess[helpful], working.size)])


def _on(working: Index, column: Callable[[int], Array], place: int) -> Array:
    return column(int(working[place]))[working]


def largest(x: Array, count: int) -> Index:
    """Places of the largest nonzero magnitudes, at most `count`."""
    nonzero = np.flatnonzero(x)
    if nonzero.size <= count:
        return nonzero
    return nonzero[np.argpartition(-np.abs(x[nonzero]), count - 1)[:count]]


def product(covariance: Covariance, z: Array) -> Array:
    """S z, from columns where z has few entries: long recursions of sparse vectors decay into slow denormals."""
    support = support_of(z)
    if support.size > 32:
        return covariance.matvec(z)
    product = np.zeros(z.size)
    for k in support.tolist():
        product += z[k] * covariance.column(k)
    return product


def _kkt_residual(covariance: Covariance, indices: Index, values: Array, z: Array, lam: float) -> float:
    """How far S z = D - lam sign(z) is from holding on the support of z, and |D - S z| <= lam off it, over max|D|.

    These are the optimality conditions of eq. 2.
    """
    dual = -product(covariance, z)
    dual[indices] += values
    return kkt_violation(dual, z, lam) / float(np.abs(values).max())


def kkt_violation(dual: Array, z: Array, lam: float) -> float:
    """How far dual = D - S z is from a subgradient of lam |z|_1."""
    on = z != 0.0
    violation = np.abs(dual)
    violation -= lam
    violation[on] = np.abs(dual[on] - lam * np.sign(z[on]))
    return float(max(violation.max(), 0.0))
