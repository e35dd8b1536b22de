"""The programs behind the limits: the one measurement that separates a set from all its rivals, and the best mix.

One measurement (eq. 5). If every anomalous stream has a larger h = shift*c than every other one, by 1 or more, then an
exchange of m streams makes a difference of m or more: only single swaps count, and the best c is a quadratic program,

    min c'S c   subject to   h_i >= b + 1 for i in A,  h_j <= b for the others,  |c|_1 <= budget.

It measures across the gap between the mean of A and the convex hull of all rival means. Measurements that place
anomalous streams on both sides of the others exist too; the value for a mix bounds what they could add.

A mix, against given rivals d_k = S^-1/2 (mu_A - mu_A'), is a semidefinite program,

    max over W psd, tr W = 1   of   min over k  d_k'W d_k,

up to scale min tr W subject to d_k'W d_k >= 1, with the dual max sum q subject to sum_k q_k d_k d_k' <= I, q >= 0.
Every constraint has rank one, so the matrix of a Newton step is the elementwise product of two Gram matrices.
Any W and any q give valid bounds: both are evaluated at the final W and q, so that rounding errors do no harm.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from eccaht.base.arrays import Array, Index
from eccaht.streams.problem import Problem

_STEPS = 100
_SHARE, _SHARE_OF_MIX = 0.99, 0.95  # of the way to the boundary
_TOLERANCE = 1e-9
_ACCEPTABLE = 1e-5  # a relative gap above this is refused


class Action(NamedTuple):
    """Weights of unit contrast (None if the budget admits none), nats a reading, and whether the budget binds."""

    weights: Array | None
    rate: float
    budget_active: bool


def best_action(problem: Problem, anomalies: Index, *, limited: bool) -> Action:
    """Return the best measurement with all anomalous streams on one side of the others."""
    K, shift, S = problem.size, np.asarray(problem.shift), problem.covariance.dense()
    side = np.full(K, -1.0)
    side[anomalies] = 1.0
    margin = np.column_stack([np.diag(side * shift), -side])  # times (c, b)
    asked = (side > 0.0).astype(float)
    c = _solved(np.pad(S, (0, 1)), margin, asked)[:K]
    c = c / _contrast(c, shift, side)
    if not limited or np.abs(c).sum() <= problem.budget * (1.0 + 1e-9):
        return Action(c, 0.5 / float(c @ S @ c), False)  # eq. 6 at unit contrast
    thrifty = _least_norm(shift, side)
    if np.abs(thrifty).sum() > problem.budget:
        return Action(None, 0.0, True)
    double = np.block([[S, -S, np.zeros((K, 1))], [-S, S, np.zeros((K, 1))], [np.zeros((1, 2 * K + 1))]])
    norm = np.concatenate([np.full(2 * K, -1.0), [0.0]])
    rows = np.vstack([np.column_stack([margin[:, :K], -margin[:, :K], -side]), norm, np.eye(2 * K, 2 * K + 1)])
    x = _solved(double, rows, np.concatenate([asked, [-problem.budget], np.zeros(2 * K)]))
    c = x[:K] - x[K : 2 * K]
    c = _within(c / _contrast(c, shift, side), thrifty, problem.budget)
    return Action(c, 0.5 / float(c @ S @ c), True)


def _contrast(c: Array, shift: Array, side: Array) -> float:
    """The least difference of h that a single swap makes."""
    h = shift * c
    return float(h[side > 0.0].min() - h[side < 0.0].max())


def _least_norm(shift: Array, side: Array) -> Array:
    """The unit contrast of least |c|_1: weight on the anomalous streams alone, or on the others alone."""
    weights = side / shift
    inside, outside = np.where(side > 0.0, weights, 0.0), np.where(side < 0.0, weights, 0.0)
    return inside if np.abs(inside).sum() <= np.abs(outside).sum() else outside


def _within(c: Array, thrifty: Array, budget: float) -> Array:
    """Undo what rounding put above the budget; both have unit contrast, so their mean has no less."""
    excess = float(np.abs(c).sum()) - budget
    if excess <= 0.0:
        return c
    share = excess / (excess + budget - float(np.abs(thrifty).sum()))
    return (1.0 - share) * c + share * thrifty


def _solved(P: Array, A: Array, b: Array) -> Array:
    """min x'P x / 2 subject to A x >= b by Mehrotra's predictor-corrector method."""
    P = P / float(P.diagonal().max())
    x, s, y = np.zeros(len(P)), np.ones(len(A)), np.ones(len(A))
    gap = np.inf
    for _ in range(_STEPS):
        dual, primal = P @ x - A.T @ y, A @ x - s - b
        gap = float(s @ y)
        value = max(float(x @ P @ x), 1e-300)
        if gap <= _TOLERANCE * value and np.abs(primal).max() <= _TOLERANCE:
            return x
        try:
            factor = cho_factor(P + (A.T * (y / s)) @ A + 1e-14 * np.eye(len(P)))
        except LinAlgError:
            break
        mu = gap / len(A)
        dx, ds, dy = _direction(factor, A, s, y, dual, primal, s * y)
        step = min(_room(s, ds), _room(y, dy), 1.0)
        mean = float((s + step * ds) @ (y + step * dy)) / len(A)
        target = mu * min(mean / mu, 1.0) ** 3
        dx, ds, dy = _direction(factor, A, s, y, dual, primal, s * y + ds * dy - target)
        step = min(_SHARE * min(_room(s, ds), _room(y, dy)), 1.0)
        x, s, y = x + step * dx, s + step * ds, y + step * dy
    if not gap <= _ACCEPTABLE * float(x @ P @ x) or np.abs(primal).max() > _ACCEPTABLE:
        raise ArithmeticError("the covariance is too ill-conditioned for its limits: add a ridge to its diagonal")
    return x


def _direction(
    factor: tuple[Array, bool], A: Array, s: Array, y: Array, dual: Array, primal: Array, complement: Array
) -> tuple[Array, Array, Array]:
    dx = cho_solve(factor, -dual - A.T @ ((complement + y * primal) / s))
    ds = A @ dx + primal
    return dx, ds, -(complement + y * ds) / s


class _Mix(NamedTuple):
    """lower <= value <= upper for the given rivals; W attains the lower, the rivals' weights p the upper bound."""

    lower: float
    upper: float
    W: Array
    p: Array


def best_mix(d: Array, tolerance: float) -> _Mix:
    """Solve for the rivals in the columns of d, shape (K, N), to a relative gap of `tolerance`."""
    (K, N), scale = d.shape, float((d**2).sum(axis=0).min())
    d = d / np.sqrt(scale)
    point = 2.0 * np.eye(K), 2.0 * (d**2).sum(axis=0) - 1.0, np.full(N, 0.5 / np.linalg.eigvalsh(d @ d.T)[-1])
    best: _Mix | None = None
    for _ in range(_STEPS):
        try:
            step = _Newton(d, *point)
            best = step.bounds if best is None else _merged(step.bounds, best)
            if best.upper - best.lower <= tolerance * best.upper:
                break
            point = step.taken()
        except LinAlgError:  # rounding: the bounds so far hold all the same
            break
    if best is None:
        raise ArithmeticError("the covariance is too ill-conditioned for its limits: add a ridge to its diagonal")
    return best._replace(lower=best.lower * scale, upper=best.upper * scale)


class _Newton:
    """One predictor-corrector step in the direction of Helmberg, Kojima and Monteiro.

    It begins strictly inside: s = d'W d - 1 > 0 and q > 0, Z = I - sum q d d' > 0.
    """

    def __init__(self, d: Array, W: Array, s: Array, q: Array) -> None:
        self.d, self.W, self.s, self.q = d, W, s, q
        one = np.eye(len(W))
        self.Z = one - (d * q) @ d.T
        self.roots = cholesky(W, lower=True), cholesky(self.Z, lower=True)
        self.inverse = cho_solve((self.roots[1], True), one)
        P, R = d.T @ (W @ d), d.T @ (self.inverse @ d)
        self.r = np.diag(R).copy()
        upper = float(np.linalg.eigvalsh((d * q) @ d.T)[-1]) / q.sum()
        trace = np.trace(W)
        self.bounds = _Mix(float(P.diagonal().min() / trace), float(upper), W / trace, q / q.sum())
        P *= R
        P[np.diag_indices_from(P)] += s / q
        self.factor = cholesky(P, lower=True, overwrite_a=True)

    def taken(self) -> tuple[Array, Array, Array]:
        """The next W, s and q."""
        W, s, q, Z, count = self.W, self.s, self.q, self.Z, sum(self.d.shape)
        mu = float((W * Z).sum() + s @ q) / count
        dW, ds, dq, dZ = self._direction(0.0, np.zeros_like(W), np.zeros_like(s))
        primal, dual = self._room(dW, ds, dq, dZ, 1.0)
        reached = float(((W + primal * dW) * (Z + dual * dZ)).sum() + (s + primal * ds) @ (q + dual * dq)) / count
        target = mu * max(min(reached / mu, 1.0) ** 2, 1e-3)
        dW, ds, dq, dZ = self._direction(target, _symmetric(dW @ dZ @ self.inverse), ds * dq / q)
        primal, dual = self._room(dW, ds, dq, dZ, _SHARE_OF_MIX)
        return W + primal * dW, s + primal * ds, q + dual * dq

    def _direction(self, mu: float, bend: Array, bend_s: Array) -> tuple[Array, Array, Array, Array]:
        """Towards W Z = mu I and s q = mu; `bend` are the second-order terms of the predictor."""
        d, W, s, q = self.d, self.W, self.s, self.q
        right = 1.0 - mu * self.r + mu / q - bend_s + np.einsum("ik,ik->k", d, bend @ d)
        dq = cho_solve((self.factor, True), right)
        dZ = -(d * dq) @ d.T
        dW = mu * self.inverse - W - _symmetric(W @ dZ @ self.inverse) - bend
        return dW, mu / q - s - s * dq / q - bend_s, dq, dZ

    def _room(self, dW: Array, ds: Array, dq: Array, dZ: Array, share: float) -> tuple[float, float]:
        primal = min(_to_boundary(self.roots[0], dW), _room(self.s, ds))
        dual = min(_to_boundary(self.roots[1], dZ), _room(self.q, dq))
        return min(1.0, share * primal), min(1.0, share * dual)


def _merged(bounds: _Mix, best: _Mix) -> _Mix:
    low = bounds if bounds.lower > best.lower else best
    high = bounds if bounds.upper < best.upper else best
    return _Mix(low.lower, high.upper, low.W, high.p)


def _symmetric(X: Array) -> Array:
    return 0.5 * (X + X.T)


def _room(x: Array, dx: Array) -> float:
    """The largest t for which x + t dx has no negative entry."""
    falling = dx < 0.0
    return float((x[falling] / -dx[falling]).min(initial=np.inf))


def _to_boundary(root: Array, dX: Array) -> float:
    """The largest t for which X + t dX is positive semidefinite, X = root root'."""
    half = solve_triangular(root, dX, lower=True)
    lowest = float(np.linalg.eigvalsh(_symmetric(solve_triangular(root, half.T, lower=True)))[0])
    return np.inf if lowest >= 0.0 else -1.0 / lowest
