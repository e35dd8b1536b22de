"""Array types and the checks that guard every public entrance."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
_LONG = 4096  # a vector this long is worth compressing to its nonzero entries first
SMALLEST, LARGEST = 1e-30, 1e30  # of what has a unit: deviations, shifts, weights
_WEAKEST, _STRONGEST = 1e-15, 1e15  # shifts in noise deviations
_FARTHEST = 1e15  # noise deviations of a reading from its mean
_ROUNDING = 1e-6  # of a noise deviation that may be lost beside a mean
_UNITS = "use other units"
_FAR = f"is more than {_FARTHEST:g} noise deviations from its mean: check its unit, or leave it out"
LARGEST_SUM = 1e150  # of sums over readings: their squares are still finite


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


def inner(c: Array, x: Array) -> float:
    """Return c'x for a c that may be sparse."""
    if c.size <= _LONG:
        return float(c @ x)
    support = support_of(c)
    return float(c[support] @ x[support])


def scattered(size: int, places: Index | int | slice, values: Array | float) -> Array:
    """Return a vector, (size,), that is zero but for `values` at `places`."""
    x = np.zeros(size)
    x[places] = values
    return x


def runs(flags: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """The first place of each run of flags that are set, and the place after its last.

    >>> runs(np.array([0, 1, 1, 0, 1], dtype=bool))
    ((1, 3), (4, 5))
    """
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def l1_norm(c: Array) -> float:
    """Return |c|_1 for a c that may be sparse; the norm of BLAS, dasum, would round by where in memory c lies."""
    part = c if c.size <= _LONG else c[support_of(c)]
    return float(np.sign(part).dot(part))


def frozen(array: Array) -> Array:
    """Mark an array read-only and return it."""
    array.setflags(write=False)
    return array


def check_size(value: float, what: str) -> None:
    """Refuse a positive number whose square could not be computed with."""
    if not SMALLEST <= value <= LARGEST:
        raise ValueError(f"{what} = {value:g} is not between {SMALLEST:g} and {LARGEST:g}: {_UNITS}")


def check_entries(values: Array, what: str) -> None:
    """Refuse entries of a covariance that are not finite, or beyond the largest variance."""
    check_finite(values, what)
    if values.size and not float(np.abs(values).max()) <= LARGEST**2:
        raise ValueError(f"{what} has an entry above {LARGEST**2:g}: {_UNITS}")


def check_problem(variances: Array, shift: Array, spread: Array, mean: Array, noise: float) -> None:
    """Refuse streams whose numbers are too far apart; `noise` is the instrument's in a stream of full weight."""
    size, deviations = np.maximum(np.abs(shift), spread), np.sqrt(variances)
    _check_each(variances, SMALLEST**2, LARGEST**2, "the variance", _UNITS)
    _check_each(size, SMALLEST, LARGEST, "the shift", _UNITS)
    ratio, same = "the ratio of shift to noise deviation", "give both in the same unit"
    _check_each(size / deviations, _WEAKEST, _STRONGEST, ratio, same)
    with np.errstate(over="ignore"):  # infinite is refused, too
        lost = np.abs(mean / np.hypot(deviations, noise)) * np.finfo(float).eps
    beside = "the share of a noise deviation that rounding beside the mean loses"
    _check_each(lost, 0.0, _ROUNDING, beside, "subtract the mean")


def check_weights(weights: Array) -> None:
    """Refuse a measurement whose noise could not be computed."""
    largest = float(np.abs(weights).max())
    if not SMALLEST <= largest <= LARGEST:
        between = f"not between {SMALLEST:g} and {LARGEST:g}: scale it to the budget"
        raise ValueError(f"measurement has a largest weight of {largest:g}, {between}")


def check_reading(residual: float, variance: float) -> None:
    """Refuse a reading that is too far from the mean to be one."""
    if not variance > 0.0:
        raise ValueError(
            f"measurement has a noise variance of {variance:g} after rounding: add a ridge to the covariance"
        )
    if not abs(residual) <= _FARTHEST * math.sqrt(variance):
        raise ValueError(f"reading {_FAR}")


def check_vector(residual: Array, variances: Array) -> None:
    """Refuse a reading of all streams, of which one is too far from its mean; NaN is none."""
    far = np.abs(residual) > _FARTHEST * np.sqrt(variances)
    if far.any():
        raise ValueError(f"reading of stream {int(far.argmax())} {_FAR}")


def _check_each(values: Array, least: float, most: float, what: str, remedy: str) -> None:
    good = (values >= least) & (values <= most)
    if not good.all():
        k = int(good.argmin())
        bound = f"below {least:g}" if values[k] < least else f"above {most:g}"
        raise ValueError(f"{what} of stream {k} is {float(values[k]):.3g}, {bound}: {remedy}")


def whole_numbers(values: Array, what: str, *, least: int = 0, most: float = 2.0**53) -> Index:
    """Return numbers that are whole and in range, as integers.

    >>> whole_numbers(np.array([0.0, 3.0]), "counts", most=3)
    array([0, 3])
    """
    if not ((values >= least) & (values <= most) & (values == np.floor(values))).all():
        raise ValueError(f"its {what} are damaged: not whole numbers in range")
    return values.astype(np.intp)


def check_bounded(values: Array, what: str, largest: float = LARGEST_SUM) -> None:
    """Refuse what is not finite, or so large that no readings could have led there."""
    if not (np.abs(values) <= largest).all():
        raise ValueError(f"its {what} are larger than any readings could have made them")


def check_unmeasured(counts: Array, sums: Array, what: str) -> None:
    """Refuse sums of readings where none was counted."""
    if sums[counts == 0].any():
        raise ValueError(f"its {what} do not agree with each other")


def check_gram(matrix: Array, what: str, rounding: float = 1e-6) -> None:
    """Refuse a matrix that is not symmetric and positive semidefinite, but for rounding."""
    diagonal = matrix.diagonal()
    if (diagonal < 0).any():
        raise ValueError(f"its {what} are no sums of squares")
    root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    with np.errstate(all="ignore"):  # what overflows fails the next check
        scaled = matrix / root
        scaled /= root[:, None]
    if not (np.abs(scaled - scaled.T) <= rounding).all() or scaled[diagonal == 0].any():
        raise ValueError(f"its {what} are not symmetric")
    try:
        np.linalg.cholesky(scaled + np.diag(np.where(diagonal > 0, rounding, 1.0)))
    except np.linalg.LinAlgError:
        raise ValueError(f"its {what} are no sums of squares") from None


def check_same(values: Array, others: Array, what: str) -> None:
    """Refuse numbers that differ from others by more than rounding."""
    if values.shape != others.shape or not np.allclose(values, others, rtol=1e-6, atol=1e-9 * np.abs(others).max()):
        raise ValueError(f"its {what} do not agree with each other")
