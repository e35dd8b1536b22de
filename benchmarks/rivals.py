"""The pair design by general-purpose solvers: min c'S c subject to c'D = 1, |c|_1 <= B.

cvxpy gets the problem as it is written. clarabel and piqp are called directly, each with the formulation that
served it best of those tried: for clarabel a bound t on |c| (the split c = p - m is three times slower and
stalls on rbf), for piqp the split with dense algebra (the bound with sparse algebra is as fast but stalls on
rbf).
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, NamedTuple

import clarabel
import numpy as np
import piqp
import scipy.sparse as sp

from eccaht.base.arrays import Array

warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # the tables say so instead
cp: Any = import_module("cvxpy")  # untyped: its functions are made as it loads
TIGHT = 1e-12


class Answer(NamedTuple):
    """Weights of any scale, and whether the solver says that it met its tolerance."""

    weights: Array
    solved: bool


def contrast_of(shift: Array, i: int, j: int) -> Array:
    """D = shift_i e_i - shift_j e_j."""
    D = np.zeros(shift.size)
    D[i], D[j] = shift[i], -shift[j]
    return D


def osqp_rebuilt(S: Array, D: Array, budget: float) -> Answer:
    """cvxpy and OSQP as they come, the problem written down anew."""
    c = cp.Variable(D.size)
    noise = cp.quad_form(c, cp.psd_wrap(S))
    problem = cp.Problem(cp.Minimize(noise), [D @ c == 1, cp.norm1(c) <= budget])
    problem.solve(solver=cp.OSQP)
    return _answer(c, problem)


def warm_up() -> None:
    """Solve a tiny problem, so that what cvxpy loads late is loaded."""
    osqp_rebuilt(np.eye(2), np.array([1.0, -1.0]), 2.0)


class OsqpParameter:
    """cvxpy and OSQP with D as a parameter: compiled once, factorised once, warm-started."""

    def __init__(self, S: Array, budget: float) -> None:
        self._c, self._D = cp.Variable(len(S)), cp.Parameter(len(S))
        noise = cp.quad_form(self._c, cp.psd_wrap(S))
        limits = [self._D @ self._c == 1, cp.norm1(self._c) <= budget]
        self._problem = cp.Problem(cp.Minimize(noise), limits)

    def __call__(self, D: Array) -> Answer:
        """Solve for another contrast."""
        self._D.value = D
        self._problem.solve(solver=cp.OSQP)
        return _answer(self._c, self._problem)


def _answer(c: Any, problem: Any) -> Answer:
    if c.value is None:
        raise RuntimeError(f"OSQP found no measurement: {problem.status}")
    return Answer(np.asarray(c.value), problem.status == cp.OPTIMAL)


class Clarabel:
    """An interior-point method for conic programs: x = (c, t), -t <= c <= t, sum(t) <= B."""

    def __init__(self, S: Array, D: Array, budget: float, *, tight: bool) -> None:
        K = D.size
        unit, none, ones = sp.identity(K, format="csc"), sp.csc_matrix((1, K)), sp.csc_matrix(np.ones((1, K)))
        self._upper = sp.block_diag([sp.csc_matrix(np.triu(S)), sp.csc_matrix((K, K))], format="csc")
        rows = [[sp.csc_matrix(D[None]), none], [none, ones], [unit, -unit], [-unit, -unit]]
        self._A = sp.bmat(rows, format="csc")
        self._b = np.concatenate([[1.0, budget], np.zeros(2 * K)])
        self._cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * K + 1)]
        self._settings = clarabel.DefaultSettings()
        self._settings.verbose = False
        if tight:
            for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
                setattr(self._settings, name, TIGHT)

    def __call__(self) -> Answer:
        """Set up and solve."""
        q = np.zeros(self._upper.shape[0])
        solver = clarabel.DefaultSolver(self._upper, q, self._A, self._b, self._cones, self._settings)
        solution = solver.solve()
        weights = np.array(solution.x[: q.size // 2])
        return Answer(weights, solution.status == clarabel.SolverStatus.Solved)


class Piqp:
    """A proximal interior-point method for quadratic programs: x = (p, m) >= 0, c = p - m, sum(x) <= B."""

    def __init__(self, S: Array, D: Array, budget: float, *, tight: bool) -> None:
        self._P = np.asfortranarray(np.block([[S, -S], [-S, S]]))
        self._equality = np.asfortranarray(np.concatenate([D, -D])[None])
        self._limit, self._tight = np.array([budget]), tight

    def __call__(self) -> Answer:
        """Set up and solve."""
        size = len(self._P)
        solver = piqp.DenseSolver()
        if self._tight:
            for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
                setattr(solver.settings, name, TIGHT)
        zero, ones = np.zeros(size), np.ones((1, size), order="F")
        solver.setup(self._P, zero, self._equality, np.ones(1), ones, None, self._limit, zero, None)
        status = solver.solve()
        x = np.array(solver.result.x)
        return Answer(x[: size // 2] - x[size // 2 :], status == piqp.PIQP_SOLVED)
