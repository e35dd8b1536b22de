"""The best mix of measurements against given rivals: a semidefinite program, solved by an interior-point method.

    max over W psd, tr W = 1   of   min over k  d_k'W d_k

is, up to scale, min tr W subject to d_k'W d_k >= 1, with the dual max sum q subject to sum_k q_k d_k d_k' <= I, q >= 0.
Every constraint has rank one, so the matrix of a Newton step is the elementwise product of two Gram matrices.
Any W and any q give valid bounds: both are evaluated at the final W and q, so that rounding errors do no harm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from eccaht.base.arrays import Array
from eccaht.streams.covariance.spectrum import largest_eigenvalue, smallest_eigenvalue
from eccaht.streams.limits.action import room

_STEPS = 100
_SHARE = 0.95  # of the way to the boundary


class Mix(NamedTuple):
    """lower <= value <= upper for the given rivals; W attains the lower, the rivals' weights p the upper bound."""

    lower: float
    upper: float
    W: Array
    p: Array


def best_mix(d: Array, tolerance: float) -> Mix:
    """Solve for the rivals in the columns of d, shape (K, N), to a relative gap of `tolerance`."""
    (K, N), scale = d.shape, float((d**2).sum(axis=0).min())
    d = d / np.sqrt(scale)
    point = 2.0 * np.eye(K), 2.0 * (d**2).sum(axis=0) - 1.0, np.full(N, 0.5 / largest_eigenvalue(d @ d.T))
    best: Mix | None = None
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
        upper = largest_eigenvalue((d * q) @ d.T) / q.sum()
        trace = np.trace(W)
        self.bounds = Mix(float(P.diagonal().min() / trace), float(upper), W / trace, q / q.sum())
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
        primal, dual = self._room(dW, ds, dq, dZ, _SHARE)
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
        primal = min(_to_boundary(self.roots[0], dW), room(self.s, ds))
        dual = min(_to_boundary(self.roots[1], dZ), room(self.q, dq))
        return min(1.0, share * primal), min(1.0, share * dual)


def _merged(bounds: Mix, best: Mix) -> Mix:
    low = bounds if bounds.lower > best.lower else best
    high = bounds if bounds.upper < best.upper else best
    return Mix(low.lower, high.upper, low.W, high.p)


def _symmetric(X: Array) -> Array:
    return 0.5 * (X + X.T)


def _to_boundary(root: Array, dX: Array) -> float:
    """The largest t for which X + t dX is positive semidefinite, X = root root'."""
    half = solve_triangular(root, dX, lower=True)
    lowest = smallest_eigenvalue(_symmetric(solve_triangular(root, half.T, lower=True)))
    return np.inf if lowest >= 0.0 else -1.0 / lowest
