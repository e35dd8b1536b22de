"""The best direction in a cone: what sign, box, L1 limit and readout noise leave of the pair design, solved exactly.

For weights c = w / s of scale s, eq. 2 with readout noise, max (c'D)^2 / (c'S c + r^2) over low <= c <= high,
|c|_1 <= B, is scale free in (w, s):

    min  w'S w / 2 + r^2 s^2 / 2 - D'w   subject to   low s <= w <= high s,  |w|_1 <= B s,  |w|_1 <= B' D'w.

At its solution (w'D)^2 / (w'S w + r^2 s^2) = D'w is the largest ratio. The last limit is the paper's, per unit of
contrast. Where every stream has a given sign, |w|_1 is linear, and the solution is the projection of a point onto a
cone of linear inequalities A x >= 0: nonnegative least squares for their multipliers finds which of them are active
(Lawson & Hanson 1974, chapter 23), and the equations of those are then solved. Streams without weight that would gain
from the other sign take it, until none would; each time the objective falls, so that this ends.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from eccaht.base.arrays import Array

_TURNS = 50  # rounds in which streams take the other sign; a few are the rule
_HELPFUL = 1e-11  # of max|D|: a pull that is more than rounding
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


def solve(cone: Cone, hint: Array | None = None) -> Point:
    """Return the solution; zeros of w are exact. hint: numbers whose signs the weights are likely to have."""
    cone = scale_free(cone)
    limited = math.isfinite(cone.norm) or math.isfinite(cone.per_contrast)
    two = (cone.low < 0.0) & (cone.high > 0.0) & limited  # streams of which a sign is tried
    sides = np.where((np.linalg.solve(cone.S, cone.D) if hint is None else hint) < 0.0, -1.0, 1.0)
    best, least, top = Point(np.zeros_like(cone.D), 0.0), math.inf, float(np.abs(cone.D).max())
    for _ in range(_TURNS):
        low, high = np.where(two & (sides > 0.0), 0.0, cone.low), np.where(two & (sides < 0.0), 0.0, cone.high)
        point = _projected(cone._replace(low=low, high=high))
        g = pull(cone, point, cone.S @ point.w)
        off = violation(cone, point, g)
        if off < least:
            best, least = point, off
        gain = -sides * g - (point.by_norm + point.by_contrast)
        turned = two & (point.w == 0.0) & (gain > _HELPFUL * top)
        if not turned.any():
            break
        sides = np.where(turned, -sides, sides)
    return best


def _projected(cone: Cone) -> Point:
    """The solution from the multipliers of A x >= 0, x = (w, s), in units in which S has a unit diagonal and r is 1."""
    n, noisy = cone.D.size, cone.noise > 0.0
    unit = 1.0 / np.sqrt(cone.S.diagonal())
    Q = cone.S * np.outer(unit, unit)
    if noisy:
        Q, unit = np.block([[Q, np.zeros((n, 1))], [np.zeros((1, n)), 1.0]]), np.append(unit, 1.0 / cone.noise)
    each, scale = np.eye(n, unit.size), np.eye(unit.size)[-1]
    sign, signed = np.where(cone.high <= 0.0, -1.0, 1.0), (cone.low >= 0.0) | (cone.high <= 0.0)
    above, below = (noisy & np.isfinite(bound) & (bound != 0.0) for bound in (cone.high, cone.low))
    held = [np.flatnonzero(which) for which in (signed, above, below)]
    rows = [(each * sign[:, None])[signed]]
    rows.append(np.outer(cone.high[above], scale) - each[above])
    rows.append(each[below] - np.outer(cone.low[below], scale))
    if math.isfinite(cone.norm):
        rows.append((cone.norm * scale - sign @ each)[None])
    if math.isfinite(cone.per_contrast):
        rows.append(((cone.per_contrast * cone.D - sign) @ each)[None])
    A, d = np.concatenate(rows) * unit, (cone.D @ each) * unit
    y = _multipliers(Q, A, d)
    active = y > 0.0
    x, y[active] = _stationary(Q, A[active], d)
    w, s = (x * unit)[:n], float((x * unit)[-1]) if noisy else 0.0
    for streams, bound in zip(held, (0.0 * sign, cone.high, cone.low), strict=True):
        reached, active = streams[active[: streams.size]], active[streams.size :]
        w[reached] = bound[reached] * s if noisy else 0.0
    w[signed & (w * sign <= 0.0)] = 0.0
    limits = iter(y[y.size - active.size :].clip(0.0).tolist())
    by_norm = next(limits) if math.isfinite(cone.norm) else 0.0
    return Point(w, s, by_norm, next(limits, 0.0))


def _multipliers(Q: Array, A: Array, d: Array) -> Array:
    """Those of A x >= 0 at the minimum of x'Q x / 2 - d'x: with Q = L L' min |L^-1 (d + A'y)| over y >= 0."""
    if not len(A):
        return np.empty(0)
    L = np.linalg.cholesky(Q)
    E = solve_triangular(L, np.column_stack([A.T, -d]), lower=True, check_finite=False)
    lengths = np.sqrt((E**2).sum(axis=0))
    return np.asarray(nnls(E[:, :-1] / lengths[:-1], E[:, -1] / lengths[-1], maxiter=20 * len(A) + 100)[0])


def _stationary(Q: Array, A: Array, d: Array) -> tuple[Array, Array]:
    """min x'Q x / 2 - d'x with A x = 0, and the multipliers of A; refined once."""
    zero = np.zeros((len(A), len(A)))
    system, right = np.block([[Q, -A.T], [A, zero]]), np.concatenate([d, np.zeros(len(A))])
    x = np.linalg.solve(system, right)
    x += np.linalg.solve(system, right - system @ x)
    return x[: len(Q)], x[len(Q) :]


def pull(cone: Cone, point: Point, Sw: Array) -> Array:
    """How much each stream would gain by moving: D (1 + B' mu) - S w."""
    ratio = cone.per_contrast * point.by_contrast if point.by_contrast else 0.0
    return (1.0 + ratio) * cone.D - Sw


def violation(cone: Cone, point: Point, g: Array) -> float:
    """The largest violation of the optimality conditions by a point with this pull, over max|D|."""
    w, s, lam = point.w, point.s, point.by_norm + point.by_contrast
    if ((w > 0.0) & (cone.high <= 0.0) | (w < 0.0) & (cone.low >= 0.0)).any():
        return math.inf
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
    low, high = np.where(cone.low < 0.0, -np.inf, 0.0), np.where(cone.high > 0.0, np.inf, 0.0)
    return cone._replace(low=low, high=high, norm=math.inf)
