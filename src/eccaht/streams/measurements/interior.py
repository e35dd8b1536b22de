"""The best direction in a cone: what sign, box, L1 limit and readout noise leave of the pair design, solved exactly.

For weights c = w / s of scale s, eq. 2 with readout noise, max (c'D)^2 / (c'S c + r^2) over low <= c <= high,
|c|_1 <= B, is scale free in (w, s):

    min  w'S w / 2 + r^2 s^2 / 2 - D'w   subject to   low s <= w <= high s,  |w|_1 <= B s,  |w|_1 <= B' D'w.

At its solution (w'D)^2 / (w'S w + r^2 s^2) = D'w is the largest ratio. The last limit is the paper's, per unit of
contrast. Mehrotra's predictor-corrector method finds which limits are active; the linear equations of those are then
solved, so that what comes out is as exact as a solution of S x = b. Streams of either sign under a limit on |w|_1 are
split, w = p - m; all but one n x n factorisation a step is arithmetic on vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from eccaht.base.arrays import Array
from eccaht.streams.measurements.exchange import BoundedCone, exchanged, stationary

_STEPS = 80
_SHARE = 0.995  # of the way to the boundary
_TOLERANCE = 1e-10  # duality gap over the value, from where the active limits are plain
_SHORT = 0.7  # a step after which the next one keeps to the centre
_ENOUGH = 1e-11  # violation of the optimality conditions that is rounding
_FAILED = 1e-6  # violation that would be an error
_DOUBTS = (1.0, 1e-2, 1e2, 1e-4, 1e4, 1e-6, 1e6)  # multiplier over slack from where a limit is taken for active
_AT_BOUND = 1e-7  # relative distance to a bound that counts as reaching it


class Cone(NamedTuple):
    """One side of a design on a working set of streams; low <= 0 <= high, not both 0."""

    S: Array  # (n, n)
    D: Array
    low: Array
    high: Array
    norm: float = math.inf  # B
    per_contrast: float = math.inf  # B'
    noise: float = 0.0  # r


class Point(NamedTuple):
    """A direction, its scale, and the multipliers of |w|_1 <= B s and |w|_1 <= B' D'w."""

    w: Array
    s: float
    by_norm: float = 0.0
    by_contrast: float = 0.0


def solve(cone: Cone) -> Point:
    """Return the solution; zeros of w are exact."""
    cone = scale_free(cone)
    sign = np.where(cone.high <= 0.0, -1.0, 1.0)  # streams that may only be subtracted are turned round
    deviation = np.sqrt(cone.S.diagonal())
    unit = math.sqrt(_single(cone)) or 1.0  # what one stream reaches makes the solution of size 1 or more
    scale, r = sign / deviation, cone.noise or 1.0
    turned = sign < 0.0
    low, high = np.where(turned, -cone.high, cone.low), np.where(turned, -cone.low, cone.high)
    search = _Search(
        cone.S * np.outer(scale, scale),
        cone.D * scale / unit,
        low * deviation / r,
        high * deviation / r,
        cone.norm / r,
        cone.per_contrast * unit,
        1.0 / deviation,
        cone.noise > 0.0,
    )
    best, least, nearest = Point(np.zeros_like(scale), 0.0), math.inf, np.zeros(0)

    def offered(x: Array, by_norm: float, by_contrast: float) -> None:
        nonlocal best, least, nearest
        found = Point(x[:-1] * scale * unit + 0.0, float(x[-1]) * unit / r, by_norm * unit, by_contrast * unit)
        off = violation(cone, found, pull(cone, found, cone.S @ found.w))
        if off < least:
            best, least, nearest = found, off, x

    for candidate in search.run():
        offered(*candidate)
        if least <= _ENOUGH:
            break
    if not least < _FAILED and nearest.size:
        settled = exchanged(search.bounded(), nearest[:-1], float(nearest[-1]))
        if settled is not None:
            offered(np.append(settled[0], settled[1]), *settled[2:])
    return best


def pull(cone: Cone, point: Point, Sw: Array) -> Array:
    """How much each stream would gain by moving: D (1 + B' mu) - S w."""
    ratio = cone.per_contrast * point.by_contrast if point.by_contrast else 0.0
    return (1.0 + ratio) * cone.D - Sw


def violation(cone: Cone, point: Point, g: Array) -> float:
    """The largest violation of the optimality conditions by a point of the cone with this pull, over max|D|."""
    w, s, lam = point.w, point.s, point.by_norm + point.by_contrast
    noisy, zero = cone.noise > 0.0, w == 0.0
    with np.errstate(invalid="ignore"):
        reached = noisy & ~zero
        at_high = reached & (np.abs(w - cone.high * s) <= _AT_BOUND * np.abs(w))
        at_low = reached & (np.abs(w - cone.low * s) <= _AT_BOUND * np.abs(w))
    left = g - lam * np.sign(w)
    off, gain = (
        np.abs(left),
        np.maximum(np.where(cone.high > 0.0, g - lam, 0.0), np.where(cone.low < 0.0, -g - lam, 0.0)),
    )
    off[zero] = gain[zero].clip(0.0)
    off[at_high], off[at_low] = (-left[at_high]).clip(0.0), left[at_low].clip(0.0)
    worst = float(off.max(initial=0.0)) / float(np.abs(cone.D).max())
    if noisy:  # the pull on the scale s
        held = float(cone.high[at_high] @ left[at_high] + cone.low[at_low] @ left[at_low])
        held += cone.norm * point.by_norm if point.by_norm else 0.0
        cost = cone.noise**2 * s
        worst = max(worst, abs(cost - held) / max(cost, 1e-300))
    size = float(np.abs(w).sum())
    if not (size > 0.0 and np.isfinite(size) and (s > 0.0 or not noisy) and cone.D @ w > 0.0):
        return math.inf
    over = max(size - cone.norm * s if noisy else 0.0, size - cone.per_contrast * float(cone.D @ w), 0.0)
    beyond = float(np.maximum(w - cone.high * s, cone.low * s - w).max()) if noisy else 0.0
    return max(worst, over / size, beyond / float(np.abs(w).max()))


def scale_free(cone: Cone) -> Cone:
    """Without noise the size of weights does not matter, only their signs."""
    if cone.noise:
        return cone
    low, high = signs_only(cone.low, cone.high)
    return cone._replace(low=low, high=high, norm=math.inf)


def signs_only(low: Array, high: Array) -> tuple[Array, Array]:
    """The same bounds with any size allowed."""
    return np.where(low < 0.0, -np.inf, 0.0), np.where(high > 0.0, np.inf, 0.0)


def _single(cone: Cone) -> float:
    """The largest ratio of one stream alone."""
    room = np.minimum(np.where(cone.D > 0.0, cone.high, -cone.low), cone.norm)
    able = (room > 0.0) & (cone.D != 0.0)
    if not able.any():
        return 0.0
    return float((cone.D[able] ** 2 / (cone.S.diagonal()[able] + (cone.noise / room[able]) ** 2)).max())


class _Rows(NamedTuple):
    """One number for each inequality: p >= 0, m >= 0, high s >= w, w >= low s, and the two limits on |w|_1."""

    p: NDArray[Any]
    m: NDArray[Any]
    u: NDArray[Any]
    l: NDArray[Any]  # noqa: E741
    n: float
    c: float

    def flat(self) -> Array:
        return np.concatenate([self.p, self.m, self.u, self.l, [self.n, self.c]])


class _Search:
    """The problem in units in which S has a unit diagonal, noise is 1 and the solution about 1."""

    def __init__(
        self, S: Array, d: Array, low: Array, high: Array, norm: float, ratio: float, a: Array, noisy: bool
    ) -> None:
        self.S, self.d, self.a, self.noise = S, d, a, 1.0 if noisy else 0.0
        limited = math.isfinite(norm) or math.isfinite(ratio)
        self.two = (low < 0.0) & (high > 0.0) & limited  # split into p - m
        self.has = _Rows(  # which of the inequalities there are
            (low >= 0.0) | self.two,
            self.two,
            np.isfinite(high),
            np.isfinite(low) & (low < 0.0),
            math.isfinite(norm),
            math.isfinite(ratio),
        )
        self.high, self.low = np.where(self.has.u, high, 0.0), np.where(self.has.l, low, 0.0)
        self.norm, self.ratio = norm if self.has.n else 0.0, ratio if self.has.c else 0.0
        self.mask = self.has.flat().astype(float)

    def bounded(self) -> BoundedCone:
        """The same problem, for exchange.py."""
        high, low = np.where(self.has.u, self.high, np.inf), np.where(self.has.l, self.low, -np.inf)
        low = np.where(self.has.p & ~self.two, 0.0, low)
        limits = self.norm if self.has.n else math.inf, self.ratio if self.has.c else math.inf
        return BoundedCone(self.S, self.d, low, high, self.a, *limits, self.noise)

    def run(self) -> Iterator[tuple[Array, float, float]]:
        """Yield candidates for (w, s) and the multipliers of the L1 limits."""
        n = self.d.size
        p = np.where(self.has.p, 1.0, 0.0)
        m = np.where(self.has.m, 1.0, 0.0)
        s, y, z = (2.0 if self.noise else 0.0), np.ones(4 * n + 2), self.mask.copy()
        y[: 2 * n] = np.where(self.mask[: 2 * n] > 0.0, np.concatenate([p, m]), 1.0)
        best, kept, step, count = math.inf, (p, m, s, y, z), 1.0, max(float(self.mask.sum()), 1.0)
        for _ in range(_STEPS):
            w = p - m
            Sw = self.S @ w
            value = max(float(w @ Sw) + self.noise * s * s, 1e-300)
            apart = self._apply(p, m, s) - y * self.mask
            force = self._transposed(z)
            rest = (Sw - self.d - force[0], np.where(self.two, self.d - Sw, 0.0) - force[1], self.noise * s - force[2])
            gap = float((y * z * self.mask).sum())
            off = max(float(np.abs(part).max()) for part in (apart, rest[0], rest[1], np.array(rest[2])))
            error = max(gap / value, off / math.sqrt(value))
            if error < best:
                best, kept = error, (p, m, s, y, z)
            if error <= _TOLERANCE or gap <= 1e-16 * value:
                break
            try:
                factor = self._factor(z / y)
                mu, cautious = gap / count, step < _SHORT
                dx, dy, dz = self._direction(factor, y, z, rest, apart, y * z)
                step = min(room(y, dy), room(z, dz), 1.0)
                mean = float(((y + step * dy) * (z + step * dz) * self.mask).sum()) / count
                target = mu * max(min(mean / mu, 1.0) ** 3, 0.3 if cautious else 0.0)  # cautious: to the centre
                complement = y * z - target if cautious else y * z + dy * dz - target
                dx, dy, dz = self._direction(factor, y, z, rest, apart, complement)
            except (LinAlgError, ValueError):
                break
            step = min(_SHARE * min(room(y, dy), room(z, dz)), 1.0)
            if not np.isfinite(dx[0]).all() or step < 1e-12:
                break
            p, m, s = p + step * dx[0], m + step * dx[1], s + step * dx[2]
            y, z = y + step * dy, z + step * dz
        p, m, s, y, z = kept
        for doubt in _DOUBTS:
            active = self._rows(((z > doubt * y) & (self.mask > 0.0)).astype(float))
            yield from self._polished(p - m, active)
        held, active = self._rows(z * self.mask), self._rows((z > y) * self.mask)
        yield np.append(np.where(self._zero(active), 0.0, p - m), s), held.n, held.c

    def _zero(self, active: _Rows) -> NDArray[np.bool_]:
        return np.where(self.two, (active.p > 0) & (active.m > 0), active.p > 0)

    # -- the inequalities --------------------------------------------------------------------------

    def _apply(self, p: Array, m: Array, s: float) -> Array:
        """Left sides of the inequalities."""
        w, total = p - m, float(self.a @ (p + m))
        rows = _Rows(
            p, m, self.high * s - w, w - self.low * s, self.norm * s - total, self.ratio * float(self.d @ w) - total
        )
        return rows.flat() * self.mask

    def _transposed(self, v: Array) -> tuple[Array, Array, float]:
        """Their transpose, on p, m and s."""
        r = self._rows(v * self.mask)
        pull, both = r.l - r.u + self.ratio * self.d * r.c, self.a * (r.n + r.c)
        on_m = np.where(self.two, r.m - pull - both, 0.0)
        return r.p + pull - both, on_m, float(self.high @ r.u - self.low @ r.l + self.norm * r.n)

    def _rows(self, v: Array) -> _Rows:
        n = self.d.size
        return _Rows(v[:n], v[n : 2 * n], v[2 * n : 3 * n], v[3 * n : 4 * n], float(v[-2]), float(v[-1]))

    # -- Newton's equations ------------------------------------------------------------------------

    def _factor(self, weights: Array) -> tuple[_Rows, tuple[Array, bool], Array, Array, Array]:
        """One n x n factor; s and the L1 limits are borders."""
        W = self._rows(weights * self.mask)
        both = np.where(self.two, W.p + W.m, 1.0)
        matrix = self.S.copy()
        matrix[np.diag_indices_from(matrix)] += W.u + W.l + np.where(self.two, W.p * W.m / both, W.p)
        factor = cho_factor(matrix, check_finite=False)
        h = -(W.u * self.high + W.l * self.low)
        zero = np.zeros_like(h)
        tilt = self.ratio * self.d
        on_p = np.column_stack([h, -self.a if self.has.n else zero, tilt - self.a if self.has.c else zero])
        on_m = np.column_stack([-h, -self.a if self.has.n else zero, -tilt - self.a if self.has.c else zero])
        border = np.concatenate([on_p, np.where(self.two[:, None], on_m, 0.0)])
        small = np.zeros((3, 3))
        small[0, 0] = self.noise + W.u @ self.high**2 + W.l @ self.low**2 if self.noise else 1.0
        small[0, 1] = small[1, 0] = self.norm
        small[1, 1] = -1.0 / W.n if self.has.n else -1.0
        small[2, 2] = -1.0 / W.c if self.has.c else -1.0
        solved = np.column_stack([self._base(W, factor, column) for column in border.T])
        return W, factor, border, solved, small - border.T @ solved

    def _base(self, W: _Rows, factor: tuple[Array, bool], rhs: Array) -> Array:
        n = self.d.size
        a, b = rhs[:n], rhs[n:]
        both = np.where(self.two, W.p + W.m, 1.0)
        dw = cho_solve(factor, np.where(self.two, (a * W.m - b * W.p) / both, a), check_finite=False)
        on_p = np.where(self.two, (a + b + W.m * dw) / both, dw)
        return np.concatenate([on_p, np.where(self.two, (a + b - W.p * dw) / both, 0.0)])

    def _direction(
        self,
        factor: tuple[_Rows, tuple[Array, bool], Array, Array, Array],
        y: Array,
        z: Array,
        rest: tuple[Array, Array, float],
        apart: Array,
        complement: Array,
    ) -> tuple[tuple[Array, Array, float], Array, Array]:
        W, base, border, solved, small = factor
        push = self._transposed((complement + z * apart) / y)
        rhs = -np.concatenate([rest[0] + push[0], rest[1] + push[1]])
        first = self._base(W, base, rhs)
        on_s = -(rest[2] + push[2]) if self.noise else 0.0
        v = np.linalg.solve(small, np.array([on_s, 0.0, 0.0]) - border.T @ first)
        dx = first - solved @ v
        n = self.d.size
        step = (dx[:n], dx[n:], float(v[0]) if self.noise else 0.0)
        dy = (self._apply(*step) + apart) * self.mask
        return step, dy, -(complement + z * dy) / y * self.mask

    # -- the equations of the active limits --------------------------------------------------------

    def _polished(self, w: Array, active: _Rows) -> Iterator[tuple[Array, float, float]]:
        """The solution of the equations of the active limits, if they have one."""
        zero = self._zero(active)
        up, down = (active.u > 0) & ~zero, (active.l > 0) & ~zero
        free, sigma = ~(zero | up | down), np.where(w < 0.0, -1.0, 1.0)
        count = int(free.sum())
        E = np.zeros((w.size, count + 1))  # w = E (w_free, s)
        E[np.flatnonzero(free), np.arange(count)] = 1.0
        E[up, -1], E[down, -1] = self.high[up], self.low[down]
        Q = E.T @ self.S @ E
        Q[-1, -1] += self.noise or 1.0
        rows = []
        if active.n:
            rows.append(-(self.a * sigma) @ E + self.norm * np.eye(count + 1)[-1])
        if active.c:
            rows.append((self.ratio * self.d - self.a * sigma) @ E)
        x = stationary(Q, np.array(rows).reshape(len(rows), count + 1), E.T @ self.d)
        if x is None:
            return
        found, multipliers = E @ x[: count + 1], iter(np.maximum(x[count + 1 :], 0.0).tolist())
        wrong = (found * sigma <= 0.0) & (self.has.p | self.two)  # rounding of streams that are next to zero
        by_norm = next(multipliers) if active.n else 0.0
        by_contrast = next(multipliers) if active.c else 0.0
        scale = float(x[count]) if self.noise else 0.0
        yield np.append(np.where(wrong, 0.0, found), scale), by_norm, by_contrast


def room(x: Array, dx: Array) -> float:
    """The largest t for which x + t dx has no negative entry."""
    falling = dx < 0.0
    return float((x[falling] / -dx[falling]).min(initial=np.inf))
