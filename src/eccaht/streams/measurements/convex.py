"""The best allowed direction for a contrast where the allowed weights are convex, with a certificate.

Everything is solved on a working set of streams (cone.py) and checked against all K by columns of the covariance;
streams that would help are added until none is left. Weights and their opposites are equally informative,
so both sides of the contrast are tried where not both are allowed.
"""

import math
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from eccaht.base.arrays import Array, Index, Mask, scattered
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.budget import (
    ACCEPTABLE,
    inverse,
    largest,
    product,
    too_ill_conditioned,
)
from eccaht.streams.measurements.cone import Cone, Point, pull, scale_free, solve, violation
from eccaht.streams.measurements.region import Region, Solution

_WHOLE = 512  # streams up to which the matrix is formed once and all are solved at once
_WORKING_SET = 32
_HELPFUL = 1e-10  # of max|D|: a pull that brings a stream into the working set
_BARELY = 1e-9
_SIDES = (1.0, -1.0)
_VANISHING = 1e-13  # of max|D|: an entry that is rounding

_matrices: WeakKeyDictionary[Covariance, Array] = WeakKeyDictionary()


class Direction(NamedTuple):
    """Weights up to their scale, the largest (c'D)^2 / (c'S c + r^2), and how far it is from optimal."""

    weights: Array
    value: float
    residual: float
    active: bool  # did a limit bind?


def best_weights(region: Region, covariance: Covariance, D: Array) -> Solution | None:
    """The best allowed weights for a contrast D, (K,); None if none show it."""
    best = best_direction(region, covariance, D)
    if best is None:
        return None
    return Solution(region.scaled(best.weights), best.active, best.residual, best.value)


def best_direction(region: Region, covariance: Covariance, D: Array, among: Index | None = None) -> Direction | None:
    """Solve for a contrast D, (K,), on all usable streams or only `among` some; None if no weights show it."""
    D = np.where(np.abs(D) > _VANISHING * np.abs(D).max(), D, 0.0)
    usable = region.usable
    if among is not None:
        return _among(region, covariance, D, among[usable[among]])
    free = _unlimited(region, covariance, D, usable)
    if free is not None:
        return free
    if bool((region.low == -region.high)[usable].all()) or (not region.noise and region.signs_free):
        return _one_side(region, covariance, D, usable)
    better, other = sorted(
        (
            np.where(usable & np.where(side * D > 0.0, region.high > 0.0, region.low < 0.0), side * D, 0.0)
            for side in _SIDES
        ),
        key=lambda reach: -float(np.abs(reach).max()),
    )
    found = _one_side(region, covariance, _turned(D, better), usable)
    if found is not None and float(other @ covariance.solve(other)) <= found.value:
        return found  # what helps on the other side is too little, even with any weights
    second = _one_side(region, covariance, _turned(D, other), usable)
    return second if found is None or (second is not None and second.value > found.value) else found


def _turned(D: Array, reach: Array) -> Array:
    """The side of the contrast that these entries are of."""
    return D if not reach.any() or (reach * D).sum() > 0.0 else -D


def _unlimited(region: Region, covariance: Covariance, D: Array, usable: Mask) -> Direction | None:
    """S^-1 D, where no sign and no noise of the instrument is in the way."""
    if not usable.all() or not region.signs_free or region.noise:
        return None
    indices = np.flatnonzero(D)
    z = inverse(covariance, indices, D[indices])
    value = float(D @ z)
    if np.abs(z).sum() > region.per_contrast * value * (1.0 + 1e-12):
        return None
    error = 0.0 if covariance.exact_inverse else abs(covariance.quad(z) / value - 1.0)
    if not error < ACCEPTABLE:
        raise too_ill_conditioned(f"relative error {error:.1g}")
    return Direction(z, value, error, False)


def _among(region: Region, covariance: Covariance, D: Array, streams: Index) -> Direction | None:
    """The same on a few streams as if there were no others."""
    if not D[streams].any():
        return None
    few = replace(
        region, size=streams.size, low=region.low[streams], high=region.high[streams], off=region.off[streams]
    )
    found = best_direction(few, Small(block(covariance, streams)), D[streams])
    return None if found is None else found._replace(weights=scattered(D.size, streams, found.weights))


class Small(Covariance):
    """A few streams of a covariance."""

    def __init__(self, S: Array) -> None:
        self.size, self.S = len(S), S

    def matvec(self, c: Array) -> Array:
        return self.S @ c

    def solve(self, b: Array) -> Array:
        return np.asarray(np.linalg.solve(self.S, b), dtype=np.float64)

    def column(self, k: int) -> Array:
        return self.S[k]

    def dense(self) -> Array:
        return self.S


def _one_side(region: Region, covariance: Covariance, D: Array, usable: Mask) -> Direction | None:
    low, high = np.where(usable, region.low, 0.0), np.where(usable, region.high, 0.0)
    reach = np.where(D > 0.0, high > 0.0, low < 0.0) & (D != 0.0)
    if not reach.any():
        return None
    per_contrast, top = region.per_contrast, float(np.abs(D[reach]).max())
    if per_contrast * top < 1.0 - _BARELY:
        return None
    if per_contrast * top <= 1.0 + _BARELY:  # only the streams of largest shift reach the contrast
        kept = reach & (np.abs(D) >= top * (1.0 - _BARELY))
        low, high = np.where(kept & (D < 0.0), low, 0.0), np.where(kept & (D > 0.0), high, 0.0)
        per_contrast = math.inf
    usable = (low < 0.0) | (high > 0.0)
    whole = Cone(np.empty((0, 0)), D, low, high, region.norm, per_contrast, region.noise or 0.0)
    try:
        point, g = _on_enough(whole, covariance, np.flatnonzero(usable))
    except (np.linalg.LinAlgError, RuntimeError) as error:
        raise too_ill_conditioned(str(error)) from None
    residual = violation(scale_free(whole), point, g)
    if not residual < ACCEPTABLE:
        raise too_ill_conditioned(f"KKT residual {residual:.1g}")
    return Direction(point.w, float(D @ point.w), residual, True)


def _on_enough(whole: Cone, covariance: Covariance, usable: Index) -> tuple[Point, Array]:
    """The solution on a working set to which streams are added until none is left that would help."""
    D, low, high = whole.D, whole.low, whole.high
    working, hint = usable, inverse(covariance, np.flatnonzero(D), D[D != 0.0])
    if usable.size > 2 * _WORKING_SET:
        able = np.where(np.where(D > 0.0, high > 0.0, low < 0.0), D, 0.0)
        among = np.isin(np.arange(D.size), usable)
        working = np.union1d(largest(hint * among, _WORKING_SET), largest(able, _WORKING_SET))
    while True:
        point, g = _spread(whole, covariance, working, solve(_part(whole, covariance, working), hint[working]))
        lam = point.by_norm + point.by_contrast
        excess = np.maximum(np.where(high > 0.0, g - lam, 0.0), np.where(low < 0.0, -g - lam, 0.0))
        excess[working] = 0.0
        helpful = np.flatnonzero(excess > _HELPFUL * np.abs(D).max())
        if helpful.size == 0:
            return point, g
        working, hint = (
            np.union1d(working, helpful[largest(excess[helpful], working.size)]),
            point.w + (point.w == 0) * g,
        )


def _part(whole: Cone, covariance: Covariance, streams: Index) -> Cone:
    S = block(covariance, streams)
    return whole._replace(S=S, D=whole.D[streams], low=whole.low[streams], high=whole.high[streams])


def _spread(whole: Cone, covariance: Covariance, streams: Index, point: Point) -> tuple[Point, Array]:
    """A solution on some streams over all of them, and the pull on every stream."""
    point = point._replace(w=scattered(covariance.size, streams, point.w))
    return point, pull(whole, point, product(covariance, point.w))


def block(covariance: Covariance, streams: Index) -> Array:
    """The covariance of some streams; small matrices are formed once."""
    if isinstance(covariance, Small):
        return covariance.S[np.ix_(streams, streams)]
    if covariance.size > _WHOLE:
        return np.column_stack([covariance.column(int(k))[streams] for k in streams])
    if covariance not in _matrices:
        _matrices[covariance] = covariance.dense()
    return _matrices[covariance][np.ix_(streams, streams)]
