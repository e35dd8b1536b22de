"""Array types and the checks that guard every public entrance."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def as_floats(value: ArrayLike, what: str) -> Array:
    """Return `value` as a float array that owns its memory, or say which argument is not numeric.

    Allocators return multiples of 16 bytes, a view may lie anywhere, and the last bits of some BLAS differ there.
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value if value.flags.owndata else value.copy()
    try:
        array = np.asarray(value)
        if np.iscomplexobj(array):
            raise TypeError
        array = array.astype(np.float64, copy=False)
        return array if array.flags.owndata else array.copy()
    except (TypeError, ValueError):
        raise ValueError(f"{what} must hold real numbers") from None


def check_finite(array: Array, what: str) -> None:
    """Refuse NaN and infinities, naming the first place."""
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(k) for k in np.argwhere(~finite)[0])
        where = "" if not place else f" at index {place[0] if len(place) == 1 else place}"
        raise ValueError(f"{what} has a non-finite value{where}: replace or remove it")


def check_rows(x: Array, size: int) -> None:
    """Refuse a vector, or columns, of another length than the number of streams."""
    if len(x) != size:
        raise ValueError(f"{len(x)} values for {size} streams: give one for each stream")


def as_vector(value: ArrayLike, size: int, what: str) -> Array:
    """Return a read-only finite vector of length `size`; a scalar is spread without using memory.

    >>> as_vector(2.0, 3, "shift")
    array([2., 2., 2.])
    """
    array = as_floats(value, what)
    if array.ndim == 0:
        check_finite(array, what)
        return np.broadcast_to(array, (size,))
    if array.shape != (size,):
        raise ValueError(
            f"{what} has shape {array.shape}, but there are {size} streams: give a number or {size} values"
        )
    check_finite(array, what)
    return frozen(array.copy())


def as_count(value: Any, what: str, *, least: int) -> int:
    """Return a whole number that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def as_number(value: Any, what: str) -> float:
    """Return one finite real number."""
    if type(value) is float and math.isfinite(value):  # the usual case, in the innermost loop
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ValueError(f"{what} must be a real number, not {value!r:.60}")
    try:
        number = float(value)
    except OverflowError:  # a whole number with hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, not {value!r:.60}")
    return number


def as_positive(value: Any, what: str) -> float:
    """Return one finite number above zero."""
    number = as_number(value, what)
    if number <= 0:
        raise ValueError(f"{what} must be positive, not {value!r}")
    return number


def check_alpha(alpha: Any) -> float:
    """Return an error level, which lies strictly between 0 and 1."""
    level = as_number(alpha, "alpha")
    if not 0 < level < 1:
        raise ValueError(f"alpha is an error probability and must lie strictly between 0 and 1, not {alpha!r}")
    return level


def rounded_up(x: float, digits: int = 6) -> str:
    """Write a positive number with a few digits, never below itself, so that what a message suggests works.

    >>> rounded_up(1 / 3), rounded_up(2.0), rounded_up(1.01, 2)
    ('0.333334', '2', '1.1')
    """
    unit = 10.0 ** (math.floor(math.log10(x)) + 1 - digits)
    return f"{math.ceil(x / unit - 1e-9) * unit:.{digits}g}"


def support_of(c: Array) -> Index:
    """Return the places where c is not zero; comparing first is several times faster than on floats."""
    return (c != 0.0).nonzero()[0]


_LONG = 4096  # a vector this long is worth compressing to its nonzero entries first


def inner(c: Array, x: Array) -> float:
    """Return c'x for a c that may be sparse."""
    if c.size <= _LONG:
        return float(c @ x)
    support = support_of(c)
    return float(c[support] @ x[support])


def l1_norm(c: Array) -> float:
    """Return |c|_1 for a c that may be sparse; the norm of BLAS, dasum, would round by where in memory c lies."""
    part = c if c.size <= _LONG else c[support_of(c)]
    return float(np.sign(part).dot(part))


def frozen(array: Array) -> Array:
    """Mark an array read-only and return it."""
    array.flags.writeable = False
    return array
