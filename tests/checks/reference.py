"""The pair design by an interior-point solver, slow and general, and a bound by convexity: independent of eccaht."""

import clarabel
import numpy as np
import scipy.sparse as sp

from eccaht.base.arrays import Array


def solve_by_interior_point(S: Array, D: Array, budget: float) -> float | None:
    """Return min c'S c, c'D = 1, |c|_1 <= budget, with c = p - m and p, m >= 0; None where the solver gives up.

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
    return scale * solution.obj_val if solution.status == clarabel.SolverStatus.Solved else None


def bound_by_convexity(S: Array, D: Array, budget: float, c: Array) -> float:
    """Return what min x'S x, x'D = 1, |x|_1 <= budget, is at least, whatever c is; the value itself at the best c.

    x'S x >= c'S c + g'(x - c) with g = 2 S c, and g'x >= t - budget max|g - t D| for every t. The best t of this linear
    program lies where two of its pieces meet; D is not zero in two places.
    """
    g, pair = 2.0 * S @ c, np.flatnonzero(D)
    others = float(np.abs(np.delete(g, pair)).max(initial=0.0))
    (a, b), (u, v) = D[pair], g[pair]
    slopes = np.array([a, a, a, b, b, b, a - b, a + b])
    meet = np.array([u, u - others, u + others, v, v - others, v + others, u - v, u + v])
    t = meet[slopes != 0.0] / slopes[slopes != 0.0]
    reach = np.maximum(np.maximum(np.abs(u - t * a), np.abs(v - t * b)), others)
    return float((t - budget * reach).max() - 0.5 * g @ c)


def contrast(shift: Array, i: int, j: int) -> Array:
    D = np.zeros(len(shift))
    D[i], D[j] = shift[i], -shift[j]
    return D


def budget_range(S: Array, D: Array) -> tuple[float, float]:
    """The smallest feasible budget and the one above which the limit no longer binds."""
    u = np.linalg.solve(S, D)
    return 1.0 / float(np.abs(D).max()), float(np.abs(u).sum() / (D @ u))
