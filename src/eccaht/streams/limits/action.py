"""The one measurement that separates a set from all its rivals.

If every anomalous stream has a larger h = shift*c than every other one, by 1 or more, then an exchange of m streams
makes a difference of m or more: only single swaps count, and the best such c is a quadratic program,

    min c'S c   subject to   h_i >= b + 1 for i in A,  h_j <= b for the others,  |c|_1 <= budget.

It measures across the gap between the mean of A and the convex hull of all rival means. Measurements that place
anomalous streams on both sides of the others exist too; the value for a mix bounds what they could add.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from eccaht.base.arrays import Array, Index
from eccaht.streams.problem import Problem

_STEPS = 100
_SHARE = 0.99  # of the way to the boundary
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
        return Action(c, 0.5 / float(c @ S @ c), False)
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
        dx, ds, dy = _direction(factor, A, (s, y), (dual, primal), s * y)
        step = min(room(s, ds), room(y, dy), 1.0)
        mean = float((s + step * ds) @ (y + step * dy)) / len(A)
        target = mu * min(mean / mu, 1.0) ** 3
        dx, ds, dy = _direction(factor, A, (s, y), (dual, primal), s * y + ds * dy - target)
        step = min(_SHARE * min(room(s, ds), room(y, dy)), 1.0)
        x, s, y = x + step * dx, s + step * ds, y + step * dy
    if not gap <= _ACCEPTABLE * float(x @ P @ x) or np.abs(primal).max() > _ACCEPTABLE:
        raise ArithmeticError("the covariance is too ill-conditioned for its limits: add a ridge to its diagonal")
    return x


def _direction(
    factor: tuple[Array, bool], A: Array, sy: tuple[Array, Array], residuals: tuple[Array, Array], complement: Array
) -> tuple[Array, Array, Array]:
    s, y = sy
    dual, primal = residuals
    dx = cho_solve(factor, -dual - A.T @ ((complement + y * primal) / s))
    ds = A @ dx + primal
    return dx, ds, -(complement + y * ds) / s


def room(x: Array, dx: Array) -> float:
    """The largest t for which x + t dx has no negative entry."""
    falling = dx < 0.0
    return float((x[falling] / -dx[falling]).min(initial=np.inf))
