"""The measurement that best separates two streams (paper, eq. 2 and Algorithm 1, line 12).

min c'S c  subject to  c'D = 1, |c|_1 <= B,  D = shift_i e_i - shift_j e_j.

Where the limit does not bind this is S^-1 D / (D'S^-1 D). Where it binds, the lasso path (lasso.py) is walked on a
working set of streams and the answer is checked against all K; streams that would help are added until none is left.
So the result is exact, and only columns of the covariance are ever asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from eccaht.arrays import Array, Index, as_count, frozen, l1_norm, rounded_up, support_of
from eccaht.covariance import Covariance
from eccaht.measure.lasso import walk
from eccaht.problem import Problem

_OPPOSITE = np.array([1.0, -1.0])
_FEW = 8  # entries of a contrast up to which columns of the inverse are added up
_WORKING_SET = 128  # streams in the first working set; small problems are solved on all at once
_VIOLATION = 1e-10  # relative excess over the bound that brings a stream into the working set
_ACCEPTABLE = 1e-6  # a KKT residual above this is refused, not handed out


@dataclass(frozen=True)
class Design:
    """An optimal measurement for a pair.

    weights: (K,), scaled to |weights|_1 = budget.
    information: nats that one reading gives between the two hypotheses, (c'D)^2 / (2 c'S c) (paper, eq. 1).
    budget_active: whether the L1 limit kept the noise from being cancelled further.
    kkt_residual: largest violation of the optimality conditions, relative to the size of the dual contrast.
    """

    weights: Array
    information: float
    budget_active: bool
    kkt_residual: float


def pair_design(problem: Problem, i: int, j: int) -> Design:
    """Return the measurement that separates "i is anomalous" from "j is anomalous" best.

    >>> problem = Problem([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], shift=1.0, n_anomalies=1, budget=4.0)
    >>> design = pair_design(problem, 0, 1)
    >>> design.weights, round(design.information, 6)
    (array([ 2., -2.,  0.]), 2.0)
    """
    i, j = _checked_pair(problem, i, j)
    check_budget(problem, i, j)
    solution = solve_pair(problem.covariance, problem.shift, i, j, problem.budget)
    return Design(
        weights=frozen(solution.scaled(problem.budget)),
        information=solution.information,
        budget_active=solution.lam > 0.0,
        kkt_residual=solution.kkt_residual,
    )


class PairDesign:
    """The pair design as a part of a policy: (i, j) -> weights; `limited=False` lifts the L1 limit."""

    def __init__(self, problem: Problem, *, limited: bool = True) -> None:
        self._problem = problem
        self._limit = problem.budget if limited else np.inf
        if limited:
            weakest = np.argpartition(np.abs(problem.shift), 1)[:2]
            check_budget(problem, *sorted(weakest.tolist()))

    def __call__(self, i: int, j: int) -> Array:
        """Return the optimal weights, scaled to the budget."""
        problem = self._problem
        solution = solve_pair(problem.covariance, problem.shift, i, j, self._limit, remember=True)
        return solution.scaled(problem.budget)


class ContrastSolution(NamedTuple):
    """S z = D - lam sign(z), z of any scale; lam = 0 where the limit does not bind."""

    covariance: Covariance
    indices: Index  # where D is not zero: (i, j) for a pair
    values: Array  # D there: (shift_i, -shift_j)
    z: Array
    lam: float
    norm: float  # |z|_1

    def scaled(self, budget: float) -> Array:
        """z scaled to |.|_1 = budget."""
        return self.z * (budget / self.norm)

    @property
    def contrast(self) -> float:
        """D'z."""
        return float(self.values @ self.z[self.indices])

    @property
    def information(self) -> float:
        """(D'z)^2 / (2 z'S z)."""
        return 0.5 * self.contrast**2 / self.covariance.quad(self.z)

    @property
    def kkt_residual(self) -> float:
        """max |D - S z - lam sign(z)| on the support, max(|D - S z| - lam, 0) off it, over max|D|."""
        dual = -_product(self.covariance, self.z)
        dual[self.indices] += self.values
        return _kkt_violation(dual, self.z, self.lam) / float(np.abs(self.values).max())


def solve_pair(
    covariance: Covariance, shift: Array, i: int, j: int, limit: float, *, remember: bool = False
) -> ContrastSolution:
    """Solve for one pair under |c|_1 <= limit per unit of contrast."""
    indices = np.array([i, j], dtype=np.intp)
    values = shift[indices] * _OPPOSITE
    return solve_contrast(covariance, indices, values, limit, _ordered if remember else _limited)


def solve_contrast(
    covariance: Covariance, indices: Index, values: Array, limit: float, limited: _Limited | None = None
) -> ContrastSolution:
    """Solve for any contrast D, zero but for `values` at `indices`, under |c|_1 <= limit per unit of contrast."""
    z = _solve(covariance, indices, values)
    contrast, norm = float(values @ z[indices]), l1_norm(z)
    if norm <= limit * contrast * (1.0 + 1e-12):
        if not covariance.exact_inverse:
            _check_exact(covariance, z, contrast)
        return ContrastSolution(covariance, indices, values, z, 0.0, norm)
    places, weights, lam = (limited or _limited)(covariance, indices, values, limit, z)
    z = np.zeros(z.size)
    z[places] = weights
    return ContrastSolution(covariance, indices, values, z, lam, l1_norm(z))


def _solve(covariance: Covariance, indices: Index, values: Array) -> Array:
    """S^-1 D: column by column where D has few entries."""
    if indices.size <= _FEW:
        return covariance.solve_sparse(indices, values)
    contrast = np.zeros(covariance.size)
    contrast[indices] = values
    return covariance.solve(contrast)


_Sparse = tuple[Index, Array, float]  # support, weights on it, lam
_Limited = Callable[[Covariance, Index, Array, float, Array], _Sparse]
_MEMORY = 16_384  # limited designs kept for a covariance
_memory: WeakKeyDictionary[Covariance, dict[tuple[float, ...], _Sparse]] = WeakKeyDictionary()


def forget_designs() -> None:
    """Drop the designs that policies remember, so that a benchmark measures what a new search pays."""
    _memory.clear()


def _ordered(covariance: Covariance, indices: Index, values: Array, limit: float, unlimited: Array) -> _Sparse:
    """The limited design of a pair, (j, i) always as (i, j) with the opposite sign.

    A search comes back to the same pairs again and again: what is remembered is walked once and changes no bit.
    """
    known = _memory.setdefault(covariance, {})
    turned = bool(indices[0] > indices[1])
    if turned:
        indices, values = indices[::-1], -values[::-1]
    key = (*indices.tolist(), *values.tolist(), limit)
    if key not in known:
        if len(known) >= _MEMORY:
            known.clear()
        known[key] = _limited(covariance, indices, values, limit, unlimited)
    places, weights, lam = known[key]
    return places, -weights if turned else weights, lam


def _check_exact(covariance: Covariance, z: Array, contrast: float) -> None:
    """At the exact solution z'S z = D'z; what is off by more than rounding is refused."""
    error = abs(covariance.quad(z) / contrast - 1.0)
    if not error < _ACCEPTABLE:
        raise _too_ill_conditioned(f"relative error {error:.1g}")


def _too_ill_conditioned(why: str) -> ArithmeticError:
    return ArithmeticError(
        f"the covariance is too ill-conditioned to cancel noise exactly ({why}): add a ridge to its diagonal"
    )


def _limited(covariance: Covariance, indices: Index, values: Array, limit: float, unlimited: Array) -> _Sparse:
    """Walk the path on a growing working set until no stream outside it would help."""
    size = covariance.size
    columns: dict[int, Array] = {}
    working = np.union1d(_largest(unlimited, _WORKING_SET), indices)
    while True:
        contrast = np.zeros(working.size)
        contrast[np.searchsorted(working, indices)] = values
        try:
            support, weights, lam = walk(_restricted(covariance, working, columns), contrast, limit)
        except np.linalg.LinAlgError:
            raise _too_ill_conditioned("a submatrix cannot be factorised") from None
        support = working[support]
        dual = np.zeros(size)
        dual[indices] = values
        for k, weight in zip(support.tolist(), weights.tolist(), strict=True):
            dual -= weight * columns[k]
        excess = np.abs(dual) - lam
        excess[working] = 0.0
        helpful = np.flatnonzero(excess > _VIOLATION * np.abs(values).max())
        if helpful.size == 0:
            z = np.zeros(size)
            z[support] = weights
            residual = _kkt_violation(dual, z, lam) / float(np.abs(values).max())
            if not residual < _ACCEPTABLE:
                raise _too_ill_conditioned(f"KKT residual {residual:.1g}")
            return support, weights, lam
        strongest = helpful[_largest(excess[helpful], working.size)]
        working = np.union1d(working, strongest)


def _restricted(covariance: Covariance, working: Index, columns: dict[int, Array]) -> Callable[[int], Array]:
    """Columns of the covariance on the working set, each asked for once."""

    def column(place: int) -> Array:
        k = int(working[place])
        if k not in columns:
            columns[k] = covariance.column(k)
        return columns[k][working]

    return column


def _largest(x: Array, count: int) -> Index:
    """Places of the largest nonzero magnitudes, at most `count`."""
    nonzero = np.flatnonzero(x)
    if nonzero.size <= count:
        return nonzero
    return nonzero[np.argpartition(-np.abs(x[nonzero]), count - 1)[:count]]


def _product(covariance: Covariance, z: Array) -> Array:
    """S z, from columns where z has few entries: long recursions of sparse vectors decay into slow denormals."""
    support = support_of(z)
    if support.size > 32:
        return covariance.matvec(z)
    product = np.zeros(z.size)
    for k in support.tolist():
        product += z[k] * covariance.column(k)
    return product


def _kkt_violation(dual: Array, z: Array, lam: float) -> float:
    """How far dual = D - S z is from a subgradient of lam |z|_1."""
    on = z != 0.0
    violation = np.abs(dual)
    violation -= lam
    violation[on] = np.abs(dual[on] - lam * np.sign(z[on]))
    return float(max(violation.max(), 0.0))


def check_budget(problem: Problem, i: int, j: int) -> None:
    """Refuse a budget with which the pair cannot reach unit contrast."""
    least = 1.0 / float(np.abs(problem.shift[[i, j]]).max())
    if problem.budget < least * (1.0 - 1e-12):
        raise ValueError(
            f"budget {problem.budget:g} cannot separate streams {problem.label(i)} and {problem.label(j)}: "
            f"unit contrast needs an L1 norm of at least {rounded_up(least)}; raise the budget to that or the shift"
        )


def _checked_pair(problem: Problem, i: int, j: int) -> tuple[int, int]:
    i, j = (as_count(k, "stream", least=0) for k in (i, j))
    if max(i, j) >= problem.size or i == j:
        raise ValueError(f"a pair needs two different streams below {problem.size}, not {i} and {j}")
    return i, j
