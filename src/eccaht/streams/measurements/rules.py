"""The constraints that combine by `&`, each of which narrows a `Region` (docs/how-to/instruments.md).

Limits on signs and sizes, and the noise of the instrument, leave a convex set of weights: convex.py solves for a
contrast. Which streams, which levels, which measurements do not: selection.py chooses streams, grid.py levels and rows.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import (
    Array,
    Index,
    as_count,
    as_floats,
    as_positive,
    check_finite,
    check_size,
    frozen,
)
from eccaht.base.codec import Field, Fields
from eccaht.streams.measurements.base import Limited
from eccaht.streams.measurements.combined import Rule
from eccaht.streams.measurements.region import Region, as_deviation, check_length, number_list


class Noise(Rule):
    """The noise of the instrument alone, which `Problem(readout_noise=...)` adds to other constraints."""

    FIELDS: ClassVar[Fields] = (Field("noise"),)

    def __init__(self, noise: float) -> None:
        self._noise = as_positive(noise, "readout noise")
        check_size(self._noise, "readout noise")

    @property
    def noise(self) -> float:
        return self._noise

    def narrow(self, region: Region) -> None:
        if region.noise not in (None, self._noise):
            raise ValueError(f"one instrument has one noise: {region.noise:g} and {self._noise:g} conflict")
        region.noise = self._noise


class Readout(Limited, Noise):
    """|c|_1 <= limit with an instrument that adds noise of its own, of standard deviation `noise`, to every reading.

    The best weights for a contrast D maximise (c'D)^2 / (c'S c + noise^2): the instrument's noise, not a limit per unit
    of contrast, decides how far the noise of the streams is cancelled.

    >>> from eccaht import Problem, pair_design
    >>> problem = Problem(0.9 + 0.1 * np.eye(3), shift=1.0, n_anomalies=1, measurements=Readout(1.0, 0.3))
    >>> problem.readout_noise, pair_design(problem, 0, 1).weights
    (0.3, array([ 0.5, -0.5,  0. ]))
    """

    FIELDS: ClassVar[Fields] = (Field("limit"), Field("noise"))

    def __init__(self, limit: float, noise: float) -> None:
        self.limit = as_positive(limit, "the limit on |c|_1")
        check_size(self.limit, "the limit on |c|_1")
        self._noise = as_deviation(noise, "readout noise")

    @property
    def reshapes(self) -> bool:
        return self._noise > 0.0  # without noise every direction is allowed

    def narrow(self, region: Region) -> None:
        Limited.narrow(self, region)
        Noise.narrow(self, region)


class NonNegative(Rule):
    """c_k >= 0: an instrument that only adds.

    >>> (NonNegative() & Box(-1.0, 2.0)).allows(np.array([1.0, 0.0, 2.0]))
    True
    """

    def narrow(self, region: Region) -> None:
        region.low = np.maximum(region.low, 0.0)


class Box(Rule):
    """low <= c_k <= high, one number for all streams or one for each; infinite where there is no limit.

    A stream may always be left out, so low <= 0 <= high. Without readout noise only the signs matter to the
    information in a reading, which does not depend on the scale of c.

    >>> Box(-1.0, 2.0).scaled(np.array([1.0, -1.0]))
    array([ 1., -1.])
    """

    FIELDS = tuple(Field(end, (...,), low=-math.inf, high=math.inf) for end in ("low", "high"))

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = _bound(low, "low"), _bound(high, "high")
        if (self.low > 0.0).any() or (self.high < 0.0).any():
            raise ValueError(f"{self!r} leaves out 0: every stream may be without weight, so low <= 0 <= high")
        if self.low.ndim and self.high.ndim and self.low.shape != self.high.shape:
            raise ValueError(f"Box has {self.low.size} lower and {self.high.size} upper bounds: give the same number")
        for bound in (self.low, self.high):
            for value in bound[np.isfinite(bound) & (bound != 0.0)].tolist():
                check_size(abs(value), "a bound of Box")

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

    FIELDS = (Field("mask", ("K",), bool),)

    def __init__(self, mask: ArrayLike) -> None:
        self.mask = np.array(mask)
        if self.mask.ndim != 1 or self.mask.dtype != np.bool_:
            raise ValueError("Available needs a mask: True or False for each stream")
        self.mask.flags.writeable = False

    def narrow(self, region: Region) -> None:
        check_length(self.mask, region.size, self)
        region.off = region.off | ~self.mask
        region.low[~self.mask] = region.high[~self.mask] = 0.0


def _bound(value: ArrayLike, what: str) -> Array:
    bound = as_floats(value, f"{what} of Box").copy()
    if bound.ndim > 1 or not bound.size or np.isnan(bound).any():
        raise ValueError(f"{what} of Box must be a number, or one for each stream")
    return frozen(bound)


class AtMost(Rule):
    """At most m streams have weight: a multiplexer with m inputs.

    >>> AtMost(2).allows(np.array([1.0, -3.0, 0.0])), AtMost(1).allows(np.array([1.0, -3.0, 0.0]))
    (True, False)
    """

    FIELDS = (Field("m", (), int),)

    def __init__(self, m: int) -> None:
        self.m = as_count(m, "the number of streams at once", least=1)

    def narrow(self, region: Region) -> None:
        region.most = min(region.most, self.m)


class OnePerGroup(Rule):
    """At most one stream of each group has weight.

    groups: a label for each stream; None, or -1, for a stream of no group.

    >>> OnePerGroup(["a", "a", "b", None]).allows(np.array([1.0, 0.0, 1.0, 1.0]))
    True
    """

    FIELDS = (Field("groups", ("K",), int, low=-1),)

    def __init__(self, groups: Sequence[Any] | Array) -> None:
        labels = list(groups.tolist() if isinstance(groups, np.ndarray) else groups)
        if not labels or any(isinstance(label, list | tuple | set | np.ndarray) for label in labels):
            raise ValueError("OnePerGroup needs a label for each stream")
        known = {label: number for number, label in enumerate(dict.fromkeys(labels)) if label not in (None, -1)}
        self.groups: Index = np.array([known.get(label, -1) for label in labels], dtype=np.intp)

    def narrow(self, region: Region) -> None:
        check_length(self.groups, region.size, self)
        region.groups.append(self.groups)


class Levels(Rule):
    """Every weight is one of some values: [0, 1] for pooling, [-1, 0, 1] for a balance, a grid of b bits.

    0 is only allowed where it is listed; streams that are off have no weight in any case.

    >>> Levels([-1, 0, 1]).allows(np.array([1.0, 0.0, -1.0])), Levels([0, 1]).allows(np.array([0.5, 1.0]))
    (True, False)
    """

    FIELDS = (Field("values", ("m",)),)

    def __init__(self, values: ArrayLike) -> None:
        levels = np.unique(number_list(values, "levels") + 0.0)
        if not levels.any():
            raise ValueError("Levels needs a value other than 0")
        for value in levels[levels != 0.0].tolist():
            check_size(abs(value), "a level")
        self.values = frozen(levels)

    @property
    def largest_weight(self) -> float:
        return float(np.abs(self.values).max())

    def narrow(self, region: Region) -> None:
        if region.levels is not None:
            common = np.intersect1d(region.levels, self.values)
            if not common.any():
                raise ValueError("no level is in both lists")
            region.levels = common
        else:
            region.levels = self.values


class OneOf(Rule):
    """The measurement is one of the rows of a matrix, exactly: network paths, a codebook.

    >>> OneOf([[1, 1, 0], [0, 1, 1]]).allows(np.array([0.0, 1.0, 1.0]))
    True
    """

    FIELDS = (Field("matrix", ("m", "K")),)

    def __init__(self, matrix: ArrayLike) -> None:
        rows = as_floats(matrix, "the list of measurements")
        if rows.ndim != 2 or not rows.size:
            raise ValueError("OneOf needs a matrix, one allowed measurement a row")
        check_finite(rows, "the list of measurements")
        tops = np.abs(rows).max(axis=1)
        if not tops.all():
            raise ValueError(f"row {int(tops.argmin())} of the list of measurements is all zero: leave it out")
        for top in (tops.min(), tops.max()):
            check_size(float(top), "a row of the list of measurements")
        self.matrix = frozen(rows.copy())

    @property
    def largest_weight(self) -> float:
        return float(np.abs(self.matrix).max())

    def narrow(self, region: Region) -> None:
        if self.matrix.shape[1] != region.size:
            raise ValueError(f"OneOf lists measurements of {self.matrix.shape[1]} streams, but there are {region.size}")
        if region.rows is None:
            region.rows = self.matrix
        else:
            both = (region.rows[:, None, :] == self.matrix[None]).all(axis=2).any(axis=1)
            region.rows = region.rows[both]
