"""Which limits are active, by exchanging them: for the few problems on which the method of interior.py stalls.

Where the instrument's noise is all but everything the covariance decides about weights that hardly count, and the
interior method ends before it has found out which of them are at a bound. Here the equations of a guess are solved
exactly, and what is on the wrong side of its condition changes sides until nothing is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index

_ROUNDS, _TOGETHER = 300, 15  # rounds at most, and those in which all change sides at once
_ROUNDING, _AT_BOUND = 1e-12, 1e-7
_ZERO, _FREE, _BOUND = 0, 1, 2  # the sides of a stream, with the sign of its weight


class BoundedCone(NamedTuple):
    """min w'S w / 2 + noise s^2 / 2 - d'w with low s <= w <= high s, a'|w| <= norm s and a'|w| <= ratio d'w."""

    S: Array
    d: Array
    low: Array
    high: Array
    a: Array
    norm: float
    ratio: float
    noise: float


class _Exact(NamedTuple):
    """The solution of the equations of a guess, the multipliers of the L1 limits, and the pull on every stream."""

    w: Array
    s: float
    by_norm: float
    by_contrast: float
    pull: Array


def exchanged(cone: BoundedCone, w: Array, s: float) -> tuple[Array, float, float, float] | None:
    """w, s and the multipliers of the L1 limits, from a guess of w and s; None if nothing settles."""
    with np.errstate(invalid="ignore"):
        bound = (w >= cone.high * s * (1.0 - _AT_BOUND)) | (w <= cone.low * s * (1.0 - _AT_BOUND))
    sides = np.where(w == 0.0, _ZERO, np.where(bound, _BOUND, _FREE)) * np.sign(w).astype(int)
    size = float(cone.a @ np.abs(w))
    limits = size >= cone.norm * s * (1.0 - _AT_BOUND), size >= cone.ratio * float(cone.d @ w) * (1.0 - _AT_BOUND)
    for round_ in range(_ROUNDS):
        found = _solved(cone, sides, *limits)
        if found is None:
            return None
        others, other_limits = _other_sides(cone, sides, found), _other_limits(cone, limits, found)
        wrong = np.flatnonzero(others != sides)
        if not wrong.size and other_limits == limits:
            return found[:4]
        if round_ < _TOGETHER:
            sides, limits = others, other_limits
        elif wrong.size:  # one at a time, or they may go in a circle
            sides = np.where(np.arange(sides.size) == wrong[-1], others, sides)
        else:
            limits = other_limits
    return None


def _solved(cone: BoundedCone, sides: Index, by_norm: bool, by_contrast: bool) -> _Exact | None:
    free = np.flatnonzero(np.abs(sides) == _FREE)
    E = np.zeros((sides.size, free.size + 1))  # w = E (w_free, s)
    E[free, np.arange(free.size)] = 1.0
    E[:, -1] = np.where(sides == _BOUND, cone.high, np.where(sides == -_BOUND, cone.low, 0.0))
    Q = E.T @ cone.S @ E
    Q[-1, -1] += cone.noise or 1.0
    size, rows = (cone.a * np.sign(sides)) @ E, []
    implied = by_norm and not free.size and abs(size[-1] - cone.norm) <= _AT_BOUND * cone.norm  # by the bounds
    if by_norm and not implied:
        rows.append(cone.norm * np.eye(free.size + 1)[-1] - size)
    if by_contrast:
        rows.append(cone.ratio * (cone.d @ E) - size)
    x = stationary(Q, np.array(rows).reshape(len(rows), free.size + 1), E.T @ cone.d)
    if x is None:
        return None
    w, multipliers = E @ x[: free.size + 1], iter(x[free.size + 1 :].tolist())
    first = next(multipliers) if by_norm and not implied else 0.0
    second = next(multipliers) if by_contrast else 0.0
    pull = cone.d * (1.0 + (cone.ratio * second if second else 0.0)) - cone.S @ w
    if implied:  # any multiplier will do that keeps the streams without weight from moving: the least
        gain = np.maximum(np.where(cone.high > 0.0, pull, 0.0), np.where(cone.low < 0.0, -pull, 0.0)) / cone.a
        first = max(float(gain[sides == _ZERO].max(initial=0.0)) - second, 0.0)
    return _Exact(w, float(x[free.size]) if cone.noise else 0.0, first, second, pull)


def stationary(Q: Array, A: Array, d: Array) -> Array | None:
    """Solve min x'Q x / 2 - d'x with A x = 0, refined once: x, then the multipliers of A; None where rounding wins."""
    zero = np.zeros((len(A), len(A)))
    system, right = np.block([[Q, -A.T], [A, zero]]), np.concatenate([d, zero.sum(axis=0)])
    try:
        x = np.linalg.solve(system, right)
        x += np.linalg.solve(system, right - system @ x)
    except np.linalg.LinAlgError:
        return None
    return x if np.isfinite(x).all() else None


def _other_sides(cone: BoundedCone, sides: Index, found: _Exact) -> Index:
    """The side on which each stream should be as far as this solution shows."""
    w, s, g = found.w, found.s, found.pull
    lam = cone.a * (found.by_norm + found.by_contrast)
    slack = _ROUNDING * float(np.abs(cone.d).max())
    kinked = (cone.low >= 0.0) | math.isfinite(cone.norm) | math.isfinite(cone.ratio)
    with np.errstate(invalid="ignore"):
        over, under = (w > cone.high * s) & (s > 0.0), (w < cone.low * s) & (s > 0.0)
    free = np.where(over, _BOUND, np.where(under, -_BOUND, np.where(kinked & (w * sides <= 0.0), _ZERO, sides)))
    more, less = (g - lam > slack) & (cone.high > 0.0), (-g - lam > slack) & (cone.low < 0.0)
    zero = np.where(more, _FREE, np.where(less, -_FREE, _ZERO))
    held = np.where(np.sign(sides) * g - lam < -slack, np.sign(sides) * _FREE, sides)
    return np.where(sides == _ZERO, zero, np.where(np.abs(sides) == _FREE, free, held))


def _other_limits(cone: BoundedCone, limits: tuple[bool, bool], found: _Exact) -> tuple[bool, bool]:
    size = float(cone.a @ np.abs(found.w)) * (1.0 - _ROUNDING)
    by_norm = found.by_norm >= 0.0 if limits[0] else bool(cone.noise) and size > cone.norm * found.s
    by_contrast = found.by_contrast >= 0.0 if limits[1] else size > cone.ratio * float(cone.d @ found.w)
    return by_norm, by_contrast
