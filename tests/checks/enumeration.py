"""The best allowed measurement by looking at all of them, and convex ones by an interior-point solver: independent
of eccaht, slow, for few streams."""

from itertools import combinations, product

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from eccaht.base.arrays import Array


def best_ratio(
    S: Array,
    D: Array,
    *,
    low: Array | float = -np.inf,
    high: Array | float = np.inf,
    norm: float = np.inf,
    per_contrast: float = np.inf,
    noise: float = 0.0,
    about: float = 1.0,
    tolerance: float = 1e-11,
) -> float | None:
    """max (c'D)^2 / (c'S c + noise^2), low <= c <= high, |c|_1 <= norm and <= per_contrast |c'D|; None if unsolved.

    For c = (p - m) / s: min w'S w + noise^2 s^2 - 2 D'w over a cone, for D and for -D. about: roughly the value, which
    gives the solver's absolute tolerances a meaning.
    """
    K = len(D)
    low, high = np.broadcast_to(low, K), np.broadcast_to(high, K)
    if noise == 0.0:
        low, high, norm = np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0), np.inf
    P = np.zeros((2 * K + 1, 2 * K + 1))
    P[: 2 * K, : 2 * K] = np.block([[S, -S], [-S, S]])
    P[-1, -1] = noise**2 or 1.0
    unit, ones = np.eye(2 * K + 1), np.append(np.ones(2 * K), 0.0)
    weight = unit[:K] - unit[K : 2 * K]
    values = []
    for side in (1.0, -1.0):
        signal = np.concatenate([side * D, -side * D, [0.0]])
        rows = [-unit]
        above, below = np.isfinite(high), np.isfinite(low)
        rows.append(weight[above] - high[above, None] * unit[-1])
        rows.append(low[below, None] * unit[-1] - weight[below])
        rows += [(ones - norm * unit[-1])[None]] if np.isfinite(norm) else []
        rows += [(ones - per_contrast * signal)[None]] if np.isfinite(per_contrast) else []
        A = np.concatenate(rows)
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_iter = False, 200
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        cones = [clarabel.NonnegativeConeT(len(A))]
        solution = clarabel.DefaultSolver(
            sp.csc_matrix(np.triu(P)), -signal / np.sqrt(about), sp.csc_matrix(A), np.zeros(len(A)), cones, settings
        ).solve()
        if solution.status != clarabel.SolverStatus.Solved:
            return None
        values.append(-2.0 * solution.obj_val * about)
    return max(values)


def ratio_of_streams(S: Array, D: Array, *, nonnegative: bool = False, price: float = 0.0) -> float:
    """max (c'D)^2 / (c'S c + price |c|_1^2) by least squares; with a price weights must not be negative."""
    if not nonnegative:
        assert price == 0.0
        return float(D @ np.linalg.solve(S, D))
    L = np.linalg.cholesky(S + price)
    found = 0.0
    for side in (1.0, -1.0):
        w = nnls(L.T, np.linalg.solve(L, side * D))[0]
        found = max(found, float(side * D @ w))
    return found


def best_streams(
    S: Array,
    D: Array,
    most: int,
    *,
    labels: list[int] | None = None,
    nonnegative: bool = False,
    price: float = 0.0,
) -> float:
    """The largest ratio over all sets of at most so many streams, at most one of each label."""
    best = 0.0
    for count in range(1, most + 1):
        for some in combinations(range(len(D)), count):
            T = list(some)
            if labels is not None and len({labels[k] for k in T}) < count:
                continue
            if not D[T].any():
                continue
            best = max(best, ratio_of_streams(S[np.ix_(T, T)], D[T], nonnegative=nonnegative, price=price))
    return best


def best_levels(
    S: Array,
    D: Array,
    levels: list[float],
    *,
    most: int = 99,
    norm: float = np.inf,
    noise: float = 0.0,
    labels: list[int] | None = None,
) -> float:
    """The largest ratio over all weights from the levels."""
    C = np.array(list(product(levels, repeat=len(D))))
    good = C.any(axis=1) & ((C != 0).sum(axis=1) <= most) & (np.abs(C).sum(axis=1) <= norm + 1e-9)
    for label in set(labels or []):
        good &= (C[:, np.array(labels) == label] != 0).sum(axis=1) <= 1
    C = C[good]
    return float(((C @ D) ** 2 / (np.einsum("ij,jk,ik->i", C, S, C) + noise**2)).max())
