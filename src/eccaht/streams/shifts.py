"""How far an anomalous stream is moved: known, or known only in its likely size; and what readings say of a shift."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, as_floats, as_positive, as_vector

__all__ = ["Shift", "UnknownShift", "log_ratio", "log_ratio_of_many"]


@dataclass(frozen=True)
class UnknownShift:
    """A shift of unknown size: Gaussian, so that it can be integrated out in closed form.

    sign="either": N(0, scale^2). sign="positive": N(scale, (scale/2)^2), which puts 98 % of its mass above 0;
    sign="negative" is its mirror image.

    >>> UnknownShift(3.0).moments, UnknownShift(3.0, "negative").moments
    ((0.0, 3.0), (-3.0, 1.5))
    """

    scale: float
    sign: Literal["either", "positive", "negative"] = "either"

    def __post_init__(self) -> None:
        as_positive(self.scale, "the scale of an unknown shift")
        if self.sign not in ("either", "positive", "negative"):
            raise ValueError(f"the sign of an unknown shift is 'either', 'positive' or 'negative', not {self.sign!r}")

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        if self.sign == "either":
            return 0.0, self.scale
        return (self.scale if self.sign == "positive" else -self.scale), 0.5 * self.scale


class ShiftPrior(NamedTuple):
    """Mean and standard deviation of every stream's shift; a standard deviation of 0 means that it is known."""

    mean: Array
    spread: Array


Shift = ArrayLike | UnknownShift | ShiftPrior | Sequence[float | UnknownShift] | Mapping[str, float | UnknownShift]


def shift_prior(shift: Shift, size: int) -> ShiftPrior:
    """Check what was given as `shift`.

    >>> shift_prior([1.0, UnknownShift(2.0)], 2)
    ShiftPrior(mean=array([1., 0.]), spread=array([0., 2.]))
    """
    if isinstance(shift, UnknownShift):
        shift = ShiftPrior(*map(np.asarray, shift.moments))
    elif isinstance(shift, list | tuple) and any(isinstance(value, UnknownShift) for value in shift):
        pairs = [value.moments if isinstance(value, UnknownShift) else (value, 0.0) for value in shift]
        shift = ShiftPrior(*as_floats(pairs, "shift").T)
    elif not isinstance(shift, ShiftPrior):
        shift = ShiftPrior(as_floats(cast(ArrayLike, shift), "shift"), np.zeros(()))
    mean, spread = as_vector(shift.mean, size, "shift"), as_vector(shift.spread, size, "spread of the shift")
    if (spread < 0).any():
        raise ValueError("the spread of a shift must not be negative")
    zero = np.flatnonzero((mean == 0) & (spread == 0))
    if zero.size:
        raise ValueError(f"shift of stream {zero[0]} is 0: an anomaly there is invisible; give it a size or drop it")
    return ShiftPrior(mean, spread)


def log_ratio(shift: Any, total: Any, variance: Any = 1.0, count: Any = None) -> Any:
    """log p(readings | shift) - log p(readings | 0) for readings N(shift, variance) that add up to `total` (eq. 3).

    Numbers or arrays, broadcast. count: how many readings; None is one.
    """
    half = 0.5 * shift if count is None else 0.5 * shift * count
    return shift * (total - half) / variance


def log_ratio_of_many(shifts: Array, b: Array, M: Array) -> float:
    """b'x - x'M x / 2 for shifts x, (n,), with b and M the sums of what readings say of them (eq. 10)."""
    return float(b @ shifts - 0.5 * shifts @ M @ shifts)


def integrated_gain(field: Array, factor: Array) -> Array:
    """What a stream gains by a shift N(0, s^2) whose size is integrated out: f^2 / (2 F) - log(F) / 2.

    field: f = s b. factor: F = 1 + s^2 M.
    """
    return np.asarray(0.5 * field**2 / factor - 0.5 * np.log(factor))
