"""The lasso path of a two-stream contrast, walked until the L1 limit is met.

For lam falling from max|D|, let z(lam) minimise z'S z / 2 - D'z + lam |z|_1. Its optimality condition
S z = D - lam sign(z), scaled to unit contrast, is that of the pair design (eq. 2): min c'S c, c'D = 1, |c|_1 <= B. So
the design is the point of the path where |z|_1 / D'z = B. Between knots z is linear in lam and the
crossing is the root of a linear equation.

Ties are the rule here (equal shifts enter together, symmetric neighbours follow together). At a knot the
direction w of the path is the unique minimiser of w'S w / 2 - s'w over the streams in correlation +-lam, where those
still at zero may only move in the direction s of their correlation: a small non-negative least-squares problem,
solved by an active set. One stream entering or leaving is its simplest case.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from eccaht.base.arrays import Array, Index

_TIE = 1e-10  # relative distance to the bound at which a correlation counts as reaching it


class Crossing(NamedTuple):
    """A point of the path: S_PP z = D_P - lam s_P on the support P."""

    support: Index
    weights: Array  # z on the support
    lam: float


def walk(column: Callable[[int], Array], contrast: Array, budget: float) -> Crossing:
    """Return the point of the lasso path with |z|_1 = budget * contrast'z.

    column(k) gives column k of S restricted to the working set, on which `contrast` lives too. If the limit never
    binds on the working set the end of the path, lam = 0, is returned.
    """
    path = _Path(column, contrast)
    for _ in range(100 + 50 * contrast.size):
        direction = path.turn()
        step = path.next_event(direction)
        crossing = path.crossing(direction, step, budget)
        if crossing is not None:
            return crossing
        path.advance(direction, step)
        if path.lam <= 0.0:
            return path.polish(0.0)
    raise ArithmeticError(f"the lasso path did not reach its crossing; it stopped at lambda = {path.lam:.3g}")


class _Path:
    """A point of the path with its active streams and the Cholesky factor of their covariance."""

    def __init__(self, column: Callable[[int], Array], contrast: Array) -> None:
        self.column, self.contrast = column, contrast
        self.lam = self.start = float(np.abs(contrast).max())
        self.residual = contrast.copy()  # D - S z
        self.z = np.zeros(contrast.size)
        self.active: list[int] = []
        self.places = np.empty(0, dtype=np.intp)  # the same as an array
        self.waiting = np.ones(contrast.size, dtype=bool)  # not active
        self.left = np.zeros(contrast.size, dtype=bool)  # reached zero at this knot
        self.signs = np.zeros(contrast.size)  # of active and tied streams
        self.columns = np.empty((contrast.size, 16), order="F")  # S[:, active]
        self.factor = np.empty((0, 0))  # L L' = S[active, active]

    def turn(self) -> Array:
        """Choose the active set at this knot and return the direction of the active streams."""
        reached = np.abs(self.residual) >= self.lam * (1.0 - _TIE)
        self.tied = tied = (reached & self.waiting).nonzero()[0]
        self.signs[tied] = np.sign(self.residual[tied])
        moving = len(self.active)
        arriving = tied[~self.left[tied]]  # a stream that has just left goes on moving away, unless there is a tie
        self._add(arriving)
        w = self._solve()
        all_move = not self.waiting[tied].any()  # as is usual
        if self._agree(w, moving) and (all_move or self._pull(w).max(initial=-np.inf) <= _TIE):
            return w
        self._forget(moving)
        return self._nonnegative(moving)

    def _pull(self, w: Array) -> Array:
        """How fast each tied stream that stays at zero would pass the bound; positive ones have to move."""
        pull = 1.0 - self.signs[self.tied] * (self.columns[self.tied, : len(self.active)] @ w)
        pull[~self.waiting[self.tied]] = -np.inf
        return pull

    def _agree(self, w: Array, moving: int) -> bool:
        """Do all newcomers move in the direction of their correlation?"""
        return bool((w[moving:] * self.signs[self.places[moving:]] >= 0.0).all())

    def _nonnegative(self, moving: int) -> Array:
        """Lawson and Hanson's active set, with the first `moving` streams free of sign."""
        w = self._solve() if self.active else np.empty(0)
        for _ in range(10 + 10 * self.tied.size):
            pull = self._pull(w)
            if pull.max(initial=-np.inf) <= _TIE:
                return w
            self._add(self.tied[[pull.argmax()]])
            w = np.append(w, 0.0)
            goal = self._solve()
            while not self._agree(goal, moving):
                s = self.signs[self.places]
                against = np.flatnonzero(goal * s < 0.0)
                against = against[against >= moving]
                share = w[against] / (w[against] - goal[against])
                w = w + share.min() * (goal - w)
                leaving = int(against[share.argmin()])
                self._remove(leaving)
                w = np.delete(w, leaving)
                goal = self._solve()
            w = goal
        raise ArithmeticError("a tie of the lasso path could not be resolved")

    def next_event(self, w: Array) -> float:
        """How far lam may fall before a stream enters, leaves, or lam is 0."""
        fall = self.columns[:, : len(self.active)] @ w
        self.fall = fall
        step = self.lam
        current = self.z[self.places]
        leaving = current * w < 0.0
        if leaving.any():
            step = min(step, float((-current[leaving] / w[leaving]).min()))
        for sign in (1.0, -1.0):
            approach = 1.0 - sign * fall
            reaching = self.waiting & (approach > 0.0)
            if self.tied.size:  # those left at the bound by `turn` move away from it
                reaching[self.tied[self.signs[self.tied] == sign]] = False
            distance = (self.lam - sign * self.residual[reaching]) / approach[reaching]
            step = float(distance.min(initial=step))
        return max(step, 0.0)

    def crossing(self, w: Array, step: float, budget: float) -> Crossing | None:
        """The point of this segment that meets the budget, if there is one."""
        signs, d = self.signs[self.places], self.contrast[self.places]
        end = self.z[self.places] + step * w
        if signs @ end < budget * (d @ end) * (1.0 - 1e-13):  # |z|_1 / D'z falls short of B
            return None
        if not self.z.any():  # first segment: its direction does not change, any point will do
            return self.polish(self.lam - 0.5 * step) if signs @ w >= budget * (d @ w) * (1.0 - 1e-13) else None
        return self.polish(None, budget)

    def polish(self, lam: float | None, budget: float = np.inf) -> Crossing:
        """Solve afresh on the active set, so that nothing of the walk's rounding remains."""
        P = self.places
        S, d, s = self.columns[P, : P.size], self.contrast[P], self.signs[P]
        factor = np.asarray(np.linalg.cholesky(S), dtype=np.float64)
        u, q = (_refined(S, factor, b) for b in (d, s))
        if lam is None:
            lam = float((s @ u - budget * (d @ u)) / (s @ q - budget * (d @ q)))
        lam = max(lam, 0.0)
        z = u - lam * q
        kept = z * s > 0.0 if lam > 0.0 else z != 0.0
        return Crossing(P[kept], z[kept], lam)

    def advance(self, w: Array, step: float) -> None:
        """Go to the next knot; streams that reach zero leave."""
        places, before = self.places, self.z[self.places]
        after = before + step * w
        scale = np.abs(after).max(initial=0.0)
        gone = (before != 0.0) & ((after * before < 0.0) | (np.abs(after) <= 1e-14 * scale))
        self.z[places] = np.where(gone, 0.0, after)
        self.residual -= step * self.fall
        self.lam -= step
        self.residual[places] = self.lam * self.signs[places]
        self.left[:] = False
        for place in gone.nonzero()[0][::-1].tolist():
            self.left[self.active[place]] = True
            self._remove(place)

    def _solve(self) -> Array:
        return lapack.dpotrs(self.factor, self.signs[self.places], lower=1)[0].ravel()

    def _add(self, streams: Index) -> None:
        """Border the factor by some streams."""
        if streams.size == 0:
            return
        old, new = len(self.active), len(self.active) + streams.size
        while new > self.columns.shape[1]:
            self.columns = np.asfortranarray(np.hstack([self.columns, np.empty_like(self.columns)]))
        for place, k in enumerate(streams.tolist()):
            self.columns[:, old + place] = self.column(k)
        self.waiting[streams] = False
        block = self.columns[streams, old:new]
        grown = np.zeros((new, new), order="F")
        if old:
            side = blas.dtrsm(1.0, self.factor, self.columns[self.places, old:new], lower=1)
            block = block - side.T @ side
            grown[:old, :old], grown[old:, :old] = self.factor, side.T
        grown[old:, old:] = np.sqrt(block) if block.size == 1 and block[0, 0] > 0.0 else np.linalg.cholesky(block)
        self.factor = grown
        self.active += streams.tolist()
        self.places = np.array(self.active, dtype=np.intp)

    def _forget(self, count: int) -> None:
        """Drop all streams but the first `count`, of which the factor is a corner."""
        self.waiting[self.active[count:]] = True
        del self.active[count:]
        self.places = self.places[:count]
        self.factor = np.array(self.factor[:count, :count], order="F")

    def _remove(self, place: int) -> None:
        """Drop one stream and rotate the factor back to triangular form."""
        count = len(self.active)
        self.columns[:, place : count - 1] = self.columns[:, place + 1 : count].copy()
        self.waiting[self.active.pop(place)] = True
        self.places = np.array(self.active, dtype=np.intp)
        L = np.empty((count - 1, count), order="F")
        L[:place], L[place:] = self.factor[:place], self.factor[place + 1 :]
        for k in range(place, count - 1):
            left, right = L.item(k, k), L.item(k, k + 1)
            radius = float(np.hypot(left, right))
            cos, sin = left / radius, right / radius
            pair = L[k:, k : k + 2]
            turned = pair[:, ::-1] * (sin, -sin)
            turned += pair * cos
            pair[:] = turned
        self.factor = np.asfortranarray(L[:, :-1])


def _refined(S: Array, factor: Array, b: Array) -> Array:
    """Solve S x = b with one step of iterative refinement."""
    x: Array = lapack.dpotrs(factor, b, lower=1)[0].ravel()
    x += lapack.dpotrs(factor, b - S @ x, lower=1)[0].ravel()
    return x
