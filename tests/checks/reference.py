"""The pair design by an interior-point solver: slow, general, and independent of eccaht."""

import clarabel
import numpy as np
import scipy.sparse as sp

from eccaht.arrays import Array


def solve_by_interior_point(S: Array, D: Array, budget: float) -> tuple[float, float]:
    """Return primal and dual value of min c'S c, c'D = 1, |c|_1 <= budget, with c = p - m and p, m >= 0.

    S is scaled by the value without the limit, so that the solver's absolute tolerances mean something.
    """
    K = len(D)
    scale = 1.0 / float(D @ np.linalg.solve(S, D))
    Q = 2.0 * S / scale
    P = sp.csc_matrix(np.triu(np.block([[Q, -Q], [-Q, Q]])))
    A = sp.csc_matrix(np.vstack([np.concatenate([D, -D]), np.ones(2 * K), -np.eye(2 * K)]))
    b = np.concatenate([[1.0, budget], np.zeros(2 * K)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * K + 1)]
    solution = clarabel.DefaultSolver(P, np.zeros(2 * K), A, b, cones, settings).solve()
    return scale * solution.obj_val, scale * solution.obj_val_dual


def contrast(shift: Array, i: int, j: int) -> Array:
    D = np.zeros(len(shift))
    D[i], D[j] = shift[i], -shift[j]
    return D


def budget_range(S: Array, D: Array) -> tuple[float, float]:
    """The smallest feasible budget and the one above which the limit no longer binds."""
    u = np.linalg.solve(S, D)
    return 1.0 / float(np.abs(D).max()), float(np.abs(u).sum() / (D @ u))
