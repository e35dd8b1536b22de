"""Limits on the signs and sizes of weights, and the noise of the instrument: the allowed weights are convex.

Each narrows a `Region`; convex.py solves for a contrast (docs/instruments.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, as_floats, as_number, as_positive, frozen
from eccaht.base.scales import check_size
from eccaht.streams.measurements.combined import Rule
from eccaht.streams.measurements.entries import check_length, number_list, places, stream_list
from eccaht.streams.measurements.region import Region


class Readout(Rule):
    """|c|_1 <= limit with an instrument that adds noise of its own, of standard deviation `noise`, to every reading.

    The best weights for a contrast D maximise (c'D)^2 / (c'S c + noise^2): the instrument's noise, not a limit per unit
    of contrast, decides how far the noise of the streams is cancelled.

    >>> from eccaht import Problem, pair_design
    >>> problem = Problem(0.9 + 0.1 * np.eye(3), shift=1.0, n_anomalies=1, measurements=Readout(1.0, 0.3))
    >>> problem.readout_noise, pair_design(problem, 0, 1).weights
    (0.3, array([ 0.5, -0.5,  0. ]))
    """

    def __init__(self, limit: float, noise: float) -> None:
        self.limit = as_positive(limit, "the limit on |c|_1")
        check_size(self.limit, "the limit on |c|_1")
        self._noise = as_number(noise, "readout noise")
        if self._noise < 0.0:
            raise ValueError(f"readout noise is a standard deviation and must not be negative, not {noise!r}")
        if self._noise:
            check_size(self._noise, "readout noise")

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"limit": self.limit, "noise": self._noise}

    @property
    def noise(self) -> float | None:
        """The instrument's."""
        return self._noise

    @property
    def reshapes(self) -> bool:
        """Noise does; without it every direction is allowed."""
        return self._noise > 0.0

    @property
    def largest_weight(self) -> float:
        """All on one stream."""
        return self.limit

    @property
    def usual_norm(self) -> float:
        """The limit, as of every measurement."""
        return self.limit

    def narrow(self, region: Region) -> None:
        """Limit |c|_1 and set the noise."""
        region.norm = min(region.norm, self.limit)
        _set_noise(region, self._noise)


class Noise(Rule):
    """The noise of the instrument alone, which `Problem(readout_noise=...)` adds to other constraints."""

    def __init__(self, noise: float) -> None:
        self._noise = as_positive(noise, "readout noise")
        check_size(self._noise, "readout noise")

    def parameters(self) -> dict[str, Any]:
        return {"noise": self._noise}

    @property
    def noise(self) -> float | None:
        return self._noise

    def narrow(self, region: Region) -> None:
        _set_noise(region, self._noise)


def _set_noise(region: Region, noise: float) -> None:
    if region.noise not in (None, noise):
        raise ValueError(f"one instrument has one noise: {region.noise:g} and {noise:g} conflict")
    region.noise = noise


class NonNegative(Rule):
    """c_k >= 0, for all streams or those of `where` (a mask, or their numbers): an instrument that only adds.

    >>> (NonNegative() & Box(-1.0, 2.0)).allows(np.array([1.0, 0.0, 2.0]))
    True
    """

    def __init__(self, where: ArrayLike | None = None) -> None:
        self.where = None if where is None else stream_list(where, "where")

    def parameters(self) -> dict[str, Any]:
        return {"where": self.where}

    def stored(self) -> dict[str, Any]:
        where = self.where
        return {"where": None if where is None else np.flatnonzero(where) if where.dtype == np.bool_ else where}

    def narrow(self, region: Region) -> None:
        which = slice(None) if self.where is None else places(self.where, region.size, self)
        region.low[which] = np.maximum(region.low[which], 0.0)


class Signs(Rule):
    """The sign that each stream may have: 1 (only added), -1 (only subtracted) or 0 (either).

    >>> Signs([1, 1, -1]).allows(np.array([0.5, 0.0, -0.5]))
    True
    """

    def __init__(self, signs: ArrayLike) -> None:
        self.signs = number_list(signs, "signs")
        if not np.isin(self.signs, (-1.0, 0.0, 1.0)).all():
            raise ValueError("signs must be 1 (only added), -1 (only subtracted) or 0 (either)")

    def parameters(self) -> dict[str, Any]:
        return {"signs": self.signs}

    def narrow(self, region: Region) -> None:
        check_length(self.signs, region.size, self)
        region.low[self.signs > 0.0] = np.maximum(region.low[self.signs > 0.0], 0.0)
        region.high[self.signs < 0.0] = np.minimum(region.high[self.signs < 0.0], 0.0)


class Box(Rule):
    """low <= c_k <= high, one number for all streams or one for each; infinite where there is no limit.

    A stream may always be left out, so low <= 0 <= high. Without readout noise only the signs matter to the
    information in a reading, which does not depend on the scale of c.

    >>> Box(-1.0, 2.0).scaled(np.array([1.0, -1.0]))
    array([ 1., -1.])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = _bound(low, "low"), _bound(high, "high")
        if (self.low > 0.0).any() or (self.high < 0.0).any():
            raise ValueError(f"{self!r} leaves out 0: every stream may be without weight, so low <= 0 <= high")
        size = np.broadcast_shapes(self.low.shape, self.high.shape) if _same(self.low, self.high) else None
        if size is None:
            raise ValueError(f"Box has {self.low.size} lower and {self.high.size} upper bounds: give the same number")
        for bound in (self.low, self.high):
            for value in bound[np.isfinite(bound) & (bound != 0.0)].tolist():
                check_size(abs(value), "a bound of Box")

    def parameters(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    @property
    def largest_weight(self) -> float:
        return float(max(-self.low.min(), self.high.max()))

    def narrow(self, region: Region) -> None:
        for bound in (self.low, self.high):
            if bound.ndim:
                check_length(bound, region.size, self)
        region.low = np.maximum(region.low, self.low)
        region.high = np.minimum(region.high, self.high)


class Available(Rule):
    """Streams that are off, where the mask is False, have no weight.

    >>> Available([True, False, True]).allows(np.array([1.0, 0.0, -1.0]))
    True
    """

    def __init__(self, mask: ArrayLike) -> None:
        given = np.asarray(mask)
        if given.ndim != 1 or given.dtype != np.bool_:
            raise ValueError("Available needs a mask: True or False for each stream")
        self.mask = given.copy()
        self.mask.flags.writeable = False

    def parameters(self) -> dict[str, Any]:
        return {"mask": self.mask}

    def stored(self) -> dict[str, Any]:
        return {"mask": self.mask.astype(np.intp)}

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> Available:
        mask = stored["mask"]
        if not np.isin(mask, (0, 1)).all():
            raise ValueError("its mask is damaged")
        return cls(mask.astype(bool))

    def narrow(self, region: Region) -> None:
        """No weight on streams that are off."""
        check_length(self.mask, region.size, self)
        region.off = region.off | ~self.mask
        region.low[~self.mask] = region.high[~self.mask] = 0.0


def _bound(value: ArrayLike, what: str) -> Array:
    bound = as_floats(value, f"{what} of Box").copy()
    if bound.ndim > 1 or not bound.size or np.isnan(bound).any():
        raise ValueError(f"{what} of Box must be a number, or one for each stream")
    return frozen(bound)


def _same(low: Array, high: Array) -> bool:
    return low.ndim == 0 or high.ndim == 0 or low.shape == high.shape
